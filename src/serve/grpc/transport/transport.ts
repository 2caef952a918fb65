import type { Socket } from 'node:net';
import { type Server as TlsServer, createServer as createTlsServer } from 'node:tls';
import type { Logger } from '../../../core/log.js';
import { quoteGo } from '../../../document/go-json.js';
import { type ServerCertificate, createTlsOptions } from '../../server/tls.js';
import type { ConnectionLimits } from '../../server/connections.js';
import { encodeHeaderBlock } from '../http2/hpack.js';
import type { RequestHeaders } from '../http2/request-headers.js';
import { Http2Session } from '../http2/session.js';
import type { Http2Stream } from '../http2/stream.js';
import { type GrpcConnection, GrpcConnections } from './connections.js';
import { GrpcCall, GrpcCalls, type GrpcMethod, type RequestLimits } from './call.js';
import { acceptedEncodings } from './frames.js';
import { encodeStatusMessage, statusCodes } from './status.js';

/** Maximum open calls per connection; clients queue further ones. */
const maxStreamsPerConnection = 100;
/** Interval of pings, and the time after which a connection without a reply is closed. */
const keepaliveMs = 60_000;
const keepaliveTimeoutMs = 20_000;
/** Time that `close` waits for open calls, and then for their replies to be read. */
const closeGraceMs = 10_000;
const flushGraceMs = 5_000;
const pollMs = 10;

export interface GrpcService {
  /** Full name, such as `api.Registry`. */
  name: string;
  methods: Readonly<Record<string, GrpcMethod>>;
}

interface GrpcTransportOptions extends ConnectionLimits, RequestLimits {
  services: readonly GrpcService[];
  /** Default plain text. */
  certificate?: ServerCertificate | undefined;
  logger: Logger;
}

/** gRPC over HTTP/2 on sockets of a listener. (Source: grpc/doc/PROTOCOL-HTTP2.md.) */
export class GrpcTransport {
  /** TLS server for handshakes; undefined for plain text. */
  readonly #handshakes: TlsServer | undefined;
  readonly #connections: GrpcConnections;
  readonly #calls: GrpcCalls;
  readonly #methods = new Map<string, GrpcMethod>();
  readonly #services: ReadonlySet<string>;
  readonly #sessions = new Set<Http2Session>();
  #isClosing = false;

  constructor({ services, certificate, ...limits }: GrpcTransportOptions) {
    this.#connections = new GrpcConnections(limits);
    this.#calls = new GrpcCalls(this.#connections, limits);
    this.#services = new Set(services.map(({ name }) => name));
    for (const { name, methods } of services) {
      for (const [method, definition] of Object.entries(methods)) {
        this.#methods.set(`/${name}/${method}`, definition);
      }
    }
    if (certificate === undefined) return;
    this.#handshakes = createTlsServer({ ...createTlsOptions(certificate), ALPNProtocols: ['h2'] });
    this.#handshakes.on('tlsClientError', (_, socket) => socket.destroy());
    this.#handshakes.on('secureConnection', (socket) => {
      socket.on('error', ignoreError);
      this.#open(socket);
    });
  }

  /** Accepts a connection, unless there are too many. */
  accept(socket: Socket): void {
    socket.on('error', ignoreError);
    if (this.#connections.accept(socket) === undefined) return;
    if (this.#handshakes === undefined) this.#open(socket);
    else this.#handshakes.emit('connection', socket);
  }

  /** Replaces the certificate for new connections. Throws for an invalid certificate or key. */
  replaceCertificate(certificate: ServerCertificate): void {
    this.#handshakes?.setSecureContext(createTlsOptions(certificate));
  }

  /** Refuses new calls, waits some seconds for open ones, and closes all connections. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const session of this.#sessions) session.close();
    const areEnded = (): boolean => this.#calls.openCalls === 0;
    await waitUntil(closeGraceMs, areEnded);
    // Replies are read to the end, unless calls have not ended; a connection without input has none.
    await waitUntil(areEnded() ? flushGraceMs : 0, () =>
      this.#connections.list.every(({ socket }) => socket.bytesRead === 0),
    );
    for (const { socket } of this.#connections.list) socket.destroy();
  }

  #open(socket: Socket): void {
    const connection = this.#connections.find(socket);
    if (connection === undefined) return void socket.destroy();
    const session = new Http2Session(socket, {
      maxStreams: maxStreamsPerConnection,
      onStream: (stream, headers) => this.#call(stream, headers, connection),
    });
    this.#sessions.add(session);
    const stopKeepalive = keepAlive(socket, session);
    socket.once('close', () => {
      stopKeepalive();
      this.#sessions.delete(session);
    });
    if (this.#isClosing) session.close();
  }

  #call(stream: Http2Stream, headers: RequestHeaders, connection: GrpcConnection): void {
    if (headers[':method'] !== 'POST') return refuse(stream, 405);
    if (headers['content-type']?.startsWith('application/grpc') !== true) return refuse(stream, 415);
    const path = headers[':path'] ?? '';
    const method = this.#methods.get(path);
    if (method !== undefined) return new GrpcCall(stream, headers, method, connection, this.#calls).start();
    refuse(stream, 200, {
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

/** Responds with headers only, without reading the request. */
function refuse(stream: Http2Stream, status: number, headers: Record<string, string> = {}): void {
  stream.respond(encodeHeaderBlock({ ':status': String(status), ...headers }), true);
}

/** Pings a connection regularly, and closes it without a reply. Returns a function that stops this. */
function keepAlive(socket: Socket, session: Http2Session): () => void {
  let expiry: NodeJS.Timeout | undefined;
  const ping = (): void => {
    expiry = setTimeout(() => socket.destroy(), keepaliveTimeoutMs).unref();
    session.ping(() => {
      clearTimeout(expiry);
      timer.refresh();
    });
  };
  const timer = setTimeout(ping, keepaliveMs).unref();
  return () => {
    clearTimeout(timer);
    clearTimeout(expiry);
  };
}

/** Waits until a condition is true, up to a time limit. */
async function waitUntil(limitMs: number, isTrue: () => boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!isTrue() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, pollMs));
}
