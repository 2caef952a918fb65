import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { type Server as TlsServer, createServer as createTlsServer } from 'node:tls';
import type { Logger } from '../../../core/log.js';
import { quoteGo } from '../../../document/go-json.js';
import { type ServerCertificate, createTlsOptions } from '../../server/tls.js';
import type { ConnectionLimits } from '../../server/connections.js';
import { type GrpcConnection, GrpcConnections } from './connections.js';
import {
  GrpcCall,
  GrpcCalls,
  type GrpcMethod,
  type RequestHeaders,
  type RequestLimits,
  refuseStream,
} from './call.js';
import { encodingsHeader } from './frames.js';
import { openHttp2Session } from './session.js';
import { encodeStatusMessage, statusCodes } from './status.js';

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
  readonly #sessions = new Set<ServerHttp2Session>();
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
    const session = openHttp2Session(socket);
    session.on('stream', (stream, headers) => this.#call(stream, headers, connection));
    this.#sessions.add(session);
    socket.once('close', () => this.#sessions.delete(session));
    if (this.#isClosing) session.close();
  }

  #call(stream: ServerHttp2Stream, headers: RequestHeaders, connection: GrpcConnection): void {
    stream.on('error', ignoreError);
    // Frames of a closed connection that have arrived still open streams; to destroy its session here would abort Node.js.
    if (!this.#connections.mayOpen(connection)) return;
    if (headers[':method'] !== 'POST') return refuseStream(stream, { ':status': 405 });
    if (headers['content-type']?.startsWith('application/grpc') !== true)
      return refuseStream(stream, { ':status': 415 });
    const path = headers[':path'] ?? '';
    const method = this.#methods.get(path);
    if (method !== undefined) return new GrpcCall(stream, headers, method, connection, this.#calls).start();
    refuseStream(stream, {
      ':status': 200,
      'content-type': 'application/grpc',
      ...encodingsHeader,
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

/** Waits until a condition is true, up to a time limit. */
async function waitUntil(limitMs: number, isTrue: () => boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!isTrue() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, pollMs));
}
