import {
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  constants,
  createSecureServer,
  createServer,
} from 'node:http2';
import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { Logger } from '../../../core/log.js';
import { quoteGo } from '../../../document/go-json.js';
import type { ServerKeyPair } from '../../server/certificate-files.js';
import { type GrpcConnection, GrpcConnections } from './connections.js';
import { GrpcCall, GrpcCalls, type GrpcMethod, endOptions } from './call.js';
import { acceptedEncodings } from './frames.js';
import { encodeStatusMessage, statusCodes } from './status.js';

/** Calls that a connection may have at once; clients wait with the others. */
const maxStreamsPerConnection = 100;
/** A connection is asked this often whether it is alive, and closed without an answer. */
const keepaliveMs = 60_000;
const keepaliveTimeoutMs = 20_000;
/** A TLS handshake that takes longer is given up. */
const handshakeMs = 20_000;
/** How long `close` waits for calls that are under way, and then for their replies to be read. */
const closeGraceMs = 10_000;
const flushGraceMs = 5_000;
const pollMs = 10;

/** The methods of a service by their names. */
export interface GrpcService {
  /** Full name, as in `api.Registry`. */
  name: string;
  methods: Readonly<Record<string, GrpcMethod>>;
}

interface GrpcTransportOptions {
  services: readonly GrpcService[];
  /** Plain text when left out. */
  certificate?: ServerKeyPair | undefined;
  maxConnections: number;
  /** Time after which a client that reads nothing of its replies makes room for another; default 15 seconds. */
  stalledMs?: number | undefined;
  logger: Logger;
}

/**
 * gRPC over HTTP/2: sessions, and the calls that come on them. Sockets are handed over by whoever listens.
 * (Source: grpc/doc/PROTOCOL-HTTP2.md.)
 */
export class GrpcTransport {
  readonly #server: Http2Server | Http2SecureServer;
  readonly #connections: GrpcConnections;
  readonly #calls: GrpcCalls;
  readonly #methods = new Map<string, GrpcMethod>();
  readonly #services: ReadonlySet<string>;
  readonly #sessions = new Set<ServerHttp2Session>();
  #isClosing = false;

  constructor({ services, certificate, maxConnections, stalledMs, logger }: GrpcTransportOptions) {
    this.#connections = new GrpcConnections({ max: maxConnections, stalledMs, logger });
    this.#calls = new GrpcCalls(this.#connections, logger);
    this.#services = new Set(services.map(({ name }) => name));
    for (const { name, methods } of services) {
      for (const [method, definition] of Object.entries(methods)) {
        this.#methods.set(`/${name}/${method}`, definition);
      }
    }
    const options = {
      // Replies have a limit of their own, which makes calls wait where this one would refuse them.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      settings: { maxConcurrentStreams: maxStreamsPerConnection, enablePush: false },
    };
    this.#server =
      certificate === undefined
        ? createServer(options)
        : createSecureServer({
            ...options,
            ...certificate,
            minVersion: 'TLSv1.2',
            handshakeTimeout: handshakeMs,
          });
    this.#server.on('session', (session) => this.#open(session));
  }

  /** Takes a connection, unless there are too many. */
  accept(socket: Socket): void {
    socket.on('error', () => undefined);
    if (this.#connections.accept(socket)) this.#server.emit('connection', socket);
  }

  /** What new connections are shown from now on. Throws for what is no certificate with its key. */
  replaceCertificate(certificate: ServerKeyPair): void {
    createSecureContext(certificate);
    if ('setSecureContext' in this.#server) {
      this.#server.setSecureContext({ ...certificate, minVersion: 'TLSv1.2' });
    }
  }

  /** Takes no more calls, finishes those under way for some seconds, and closes all connections. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const session of this.#sessions) session.close();
    await within(closeGraceMs, () => this.#calls.underWay === 0);
    // Replies are read to their end; a connection on which nothing came waits for nothing.
    await within(flushGraceMs, () => this.#connections.sockets.every(({ bytesRead }) => bytesRead === 0));
    for (const socket of this.#connections.sockets) socket.destroy();
  }

  #open(session: ServerHttp2Session): void {
    const connection = this.#connections.find(session.socket);
    if (connection === undefined) return session.destroy();
    this.#sessions.add(session);
    const stopKeepalive = keepAlive(session);
    session.on('error', () => undefined);
    session.once('close', () => {
      stopKeepalive();
      this.#sessions.delete(session);
    });
    session.on('stream', (stream, headers) => this.#call(stream, headers, connection));
    if (this.#isClosing) session.close();
  }

  #call(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, connection: GrpcConnection): void {
    // Of each error a close follows.
    stream.on('error', ignoreError);
    if (headers[':method'] !== 'POST') return refuse(stream, constants.HTTP_STATUS_METHOD_NOT_ALLOWED);
    if (headers['content-type']?.startsWith('application/grpc') !== true) {
      return refuse(stream, constants.HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE);
    }
    const path = headers[':path'] ?? '';
    const method = this.#methods.get(path);
    if (method !== undefined) return new GrpcCall(stream, headers, method, connection, this.#calls).start();
    refuse(stream, constants.HTTP_STATUS_OK, {
      'content-type': 'application/grpc',
      'grpc-accept-encoding': acceptedEncodings,
      'grpc-status': String(statusCodes.UNIMPLEMENTED),
      'grpc-message': encodeStatusMessage(this.#describeUnknown(path)),
    });
  }

  #describeUnknown(path: string): string {
    const [, service, method] = /^\/(.*)\/(.*)$/.exec(path) ?? [];
    if (service === undefined) return `malformed method name: ${quoteGo(path)}`;
    if (!this.#services.has(service)) return `unknown service ${service}`;
    return `unknown method ${method} for service ${service}`;
  }
}

const ignoreError = (): void => undefined;

/** Responds with headers alone, and reads no request. */
function refuse(stream: ServerHttp2Stream, status: number, headers: Record<string, string> = {}): void {
  stream.respond({ ':status': status, ...headers }, endOptions);
  stream.resume();
}

/** Pings a connection from time to time, and closes it without a response. Returns what ends that. */
function keepAlive(session: ServerHttp2Session): () => void {
  let expiry: NodeJS.Timeout | undefined;
  const ping = (): void => {
    if (session.destroyed) return;
    expiry = setTimeout(() => session.destroy(), keepaliveTimeoutMs).unref();
    const isSent = session.ping(() => {
      clearTimeout(expiry);
      timer.refresh();
    });
    if (!isSent) session.destroy();
  };
  const timer = setTimeout(ping, keepaliveMs).unref();
  return () => {
    clearTimeout(timer);
    clearTimeout(expiry);
  };
}

/** Waits until a condition holds, for no longer than this time. */
async function within(limitMs: number, holds: () => boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!holds() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, pollMs));
}
