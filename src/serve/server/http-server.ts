import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { Server as SecureServer, createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { OpmateError, getMessage, redactUrls } from '../../core/errors.js';
import { silentLogger } from '../../core/log.js';
import type { HostRule } from './host-rule.js';
import { type ServerCertificate, createTlsOptions } from './tls.js';
import { type ServedConnection, type ConnectionLimits, Connections } from './connections.js';

/** Time limit of request headers, and by default of a request. (Source: catalogd.) */
export const defaultRequestMs = 5_000;
/** Time after which an idle connection is closed, during and between requests. */
export const defaultIdleMs = 5 * 60 * 1000;
const keepAliveMs = 60_000;
/** Maximum size of request line and headers. */
const maxHeaderBytes = 16 * 1024;
/** Maximum headers per request; thousands of tiny ones would take fifteen times their bytes. */
const maxHeaders = 200;
/** Maximum pipelined requests per connection and in total, about 10 KB each. */
const maxPipelined = 100;
const maxPipelinedInAll = 1_000;
/** Time that closing waits for handlers whose connections have ended. */
const settleMs = 5_000;
/** Default time limit of open requests when a server closes. (Source: catalogd.) */
const defaultGraceMs = 30_000;

/** Refusal of a request before its handler. */
export interface RequestRefusal {
  status: number;
  message: string;
  hint: string;
}

export interface HttpListenerOptions extends ConnectionLimits {
  /** Handles a request, one at a time per connection. Its errors end the connection. */
  handle: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
  /** Called for each request; `refuse` responds if its host is not allowed. */
  allowsHost: HostRule;
  refuse: (refusal: RequestRefusal, request: IncomingMessage, response: ServerResponse) => void;
  /** Default plain HTTP. */
  certificate?: ServerCertificate | undefined;
  /** Time limit of a request with its body; 0 for none. */
  requestMs?: number | undefined;
  idleMs?: number | undefined;
}

const foreignHost: RequestRefusal = {
  status: 421,
  message: 'unknown host name',
  hint: 'use its address or localhost, or add the name to its allowed hosts',
};

/**
 * Creates an HTTP server with limits on time, headers and connections; the caller listens with `listenOn` and closes with
 * `closeHttpServer`. Requests of a connection are handled one at a time, so that each response sees its client disconnect.
 * Throws OpmateError INVALID for an unusable certificate.
 */
export function createHttpServer(options: HttpListenerOptions): Server {
  const { certificate, requestMs = defaultRequestMs, idleMs = defaultIdleMs } = options;
  const limits = {
    headersTimeout: defaultRequestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    // Precision of these times.
    connectionsCheckingInterval: 1_000,
    maxHeaderSize: maxHeaderBytes,
    noDelay: true,
  };
  let server: Server;
  if (certificate === undefined) server = createServer(limits);
  else {
    const tls = createTlsOptions(certificate);
    server = createSecureServer({ ...limits, ...tls, ALPNProtocols: ['http/1.1'] });
  }
  server.setTimeout(idleMs);
  server.maxHeadersCount = maxHeaders;
  connectionsOf.set(server, new HttpConnections(server, options));
  return server;
}

/** Stops listening and waits for open requests, up to `graceMs`. */
export async function closeHttpServer(server: Server, graceMs: number = defaultGraceMs): Promise<void> {
  await connectionsOf.get(server)?.close(graceMs);
}

/**
 * Replaces the certificate for new connections. Throws OpmateError INVALID for an unusable one, and keeps the previous
 * certificate.
 */
export function replaceCertificate(server: Server, certificate: ServerCertificate): void {
  const tls = createTlsOptions(certificate);
  if (!(server instanceof SecureServer)) {
    throw new OpmateError('INTERNAL', 'cannot replace the certificate of a server without TLS');
  }
  server.setSecureContext(tls);
}

const connectionsOf = new WeakMap<Server, HttpConnections>();

interface HttpConnection extends ServedConnection {
  /** Response in progress. */
  current: ServerResponse | undefined;
  /** Pipelined requests. */
  waiting: [IncomingMessage, ServerResponse][];
}

/** Handles the connections and requests of a server until it is closed. */
class HttpConnections {
  readonly #server: Server;
  readonly #options: HttpListenerOptions;
  readonly #connections: Connections<HttpConnection>;
  readonly #handling = new Set<Promise<void>>();
  /** Pipelined requests of all connections. */
  #waitingInAll = 0;
  #closing: Promise<void> | undefined;

  constructor(server: Server, options: HttpListenerOptions) {
    this.#server = server;
    this.#options = options;
    this.#connections = new Connections<HttpConnection>(options, {
      kind: 'connections',
      create: (connection) => ({ ...connection, current: undefined, waiting: [] }),
      // Also during a TLS handshake.
      isIdle: ({ current }) => current === undefined,
      findClientWork,
    });
    server.on('connection', (socket: Socket) => this.#accept(socket));
    server.on('secureConnection', (socket) => this.#limitRequests(socket));
    server.on('request', (request, response) => this.#take(request, response));
  }

  #accept(socket: Socket): void {
    if (this.#closing !== undefined) return void socket.destroy();
    const connection = this.#connections.accept(socket);
    if (connection === undefined) return;
    if (!(this.#server instanceof SecureServer)) this.#limitRequests(socket);
    socket.once('close', () => {
      // Node.js has kept them until now.
      this.#waitingInAll -= connection.waiting.length;
      connection.waiting = [];
    });
  }

  /** Closes the server once; requests in progress have `graceMs`. */
  close(graceMs: number): Promise<void> {
    return (this.#closing ??= this.#close(graceMs));
  }

  async #close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { socket, current } of this.#connections.list) {
      // A connection without a complete request has no work in progress.
      if (current === undefined) socket.destroy();
      else if (!current.headersSent) current.setHeader('Connection', 'close');
    }
    const timer = setTimeout(() => {
      for (const { socket } of this.#connections.list) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
    let settle: NodeJS.Timeout | undefined;
    const tooLong = new Promise<void>((resolve) => (settle = setTimeout(resolve, settleMs)));
    await Promise.race([Promise.all(this.#handling), tooLong]);
    clearTimeout(settle);
  }

  #limitRequests(socket: Socket): void {
    const connection = this.#connections.find(socket);
    if (connection === undefined) return void socket.destroy();
    limitParsing(socket, () => socket.destroyed || this.#hasTooManyWaiting(connection));
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#connections.find(socket);
    if (connection === undefined) return void socket.destroy();
    if (socket.destroyed) return;
    if (connection.current === undefined) return this.#begin(connection, request, response);
    if (this.#hasTooManyWaiting(connection)) return void socket.destroy();
    connection.waiting.push([request, response]);
    this.#waitingInAll++;
  }

  #hasTooManyWaiting({ current, waiting }: HttpConnection): boolean {
    if (current === undefined) return false;
    return waiting.length >= maxPipelined || this.#waitingInAll >= maxPipelinedInAll;
  }

  #begin(connection: HttpConnection, request: IncomingMessage, response: ServerResponse): void {
    if (request.socket.destroyed) return;
    connection.current = response;
    this.#connections.markBusy(connection);
    response.once('close', () => this.#end(connection, request.socket));
    if (this.#closing !== undefined) response.setHeader('Connection', 'close');
    if (!this.#options.allowsHost(request)) {
      response.setHeader('Connection', 'close');
      return this.#options.refuse(foreignHost, request, response);
    }
    const handled = this.#respond(request, response).finally(() => this.#handling.delete(handled));
    this.#handling.add(handled);
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#options.handle(request, response);
    } catch (error) {
      const url = (request.url ?? '').slice(0, 300);
      const { logger = silentLogger } = this.#options;
      logger.log('error', `${request.method} ${url}: ${redactUrls(getMessage(error))}`);
      response.destroy();
    }
  }

  #end(connection: HttpConnection, socket: Socket): void {
    connection.current = undefined;
    if (socket.destroyed) return;
    // A closing server finishes the current response only.
    if (this.#closing !== undefined) return void socket.destroySoon();
    const next = connection.waiting.shift();
    if (next !== undefined) {
      this.#waitingInAll--;
      return this.#begin(connection, ...next);
    }
    this.#connections.markIdle(connection);
  }
}

/** Returns what a connection waits for its client to do; undefined for other work. */
function findClientWork({ current }: HttpConnection): 'sending' | 'buffered' | undefined {
  if (current === undefined) return undefined;
  const { complete, readableLength, socket } = current.req;
  if (!complete) return readableLength === 0 ? 'sending' : 'buffered';
  return socket.writableLength > 0 ? 'buffered' : undefined;
}

/** Return value that the parser treats as an error. */
const parseFault = -1;

/**
 * Ends a connection before its next request once `isOver` returns true, as after a syntax error. Otherwise Node.js creates
 * objects for all requests of a chunk, thousands per connection, before closing. Its parser is not a public interface:
 * without it, requests are refused after they are created.
 */
function limitParsing(socket: Socket, isOver: () => boolean): void {
  type Take = (...args: unknown[]) => unknown;
  const { parser } = socket as { parser?: { onIncoming?: Take | null } | null };
  const take = parser?.onIncoming;
  if (typeof take !== 'function') return;
  (parser as { onIncoming: Take }).onIncoming = (...args) =>
    isOver() ? parseFault : Reflect.apply(take, parser, args);
}
