import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { Server as SecureServer, createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { OpmateError, getMessage, redact, systemCode } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { HostRule } from './host-rule.js';
import { StalledConnections, type WatchedConnection } from './stalled-connection.js';

/** A client has this long to send the headers of its request. (Source: catalogd.) */
const headersMs = 5_000;
/** A TLS handshake that takes longer is given up. */
const handshakeMs = 5_000;
/** A connection on which nothing moves for this long is closed; one between two requests earlier. */
const defaultIdleMs = 5 * 60 * 1000;
const defaultKeepAliveMs = 60_000;
/** Request line and headers together. */
const maxHeaderBytes = 16 * 1024;
/** Headers of a request that are kept. Without it some thousands of tiny ones take fifteen times their bytes. */
const maxHeaders = 200;
/** Requests that a client may send ahead on a connection, and all clients together: each takes some 10 KB. */
const maxPipelined = 100;
const maxPipelinedInAll = 1_000;
/** How often a refused connection is told. */
const refusalLogMs = 60_000;
/** How long the end of a server waits for handlers whose connections are gone. */
const settleMs = 5_000;
/** How long requests that are under way may take when a server closes. (Source: catalogd.) */
const defaultGraceMs = 30_000;

export const defaultMaxConnections = 1_000;

/** Certificate chain and key, PEM. */
export interface ServerCertificate {
  cert: string | Buffer;
  key: string | Buffer;
}

/** Why a request is refused before it is looked at. */
export interface RequestRefusal {
  status: number;
  message: string;
  hint: string;
}

export interface HttpServerOptions {
  /** Answers a request. Called for one request of a connection at a time. What it throws ends the connection. */
  handle: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
  /** Names that requests may call the server by, and how others are answered. */
  hosts: HostRule;
  refuse: (refusal: RequestRefusal, request: IncomingMessage, response: ServerResponse) => void;
  /** Plain HTTP without. */
  certificate?: ServerCertificate | undefined;
  /** Time for a whole request, its body included; no limit when 0. */
  requestMs?: number | undefined;
  idleMs?: number | undefined;
  keepAliveMs?: number | undefined;
  stalledMs?: number | undefined;
  /** Beyond it the longest idle connection makes room, or one whose client has stalled, or the new one is refused. */
  maxConnections?: number | undefined;
  logger?: Logger | undefined;
}

const foreignHost: RequestRefusal = {
  status: 421,
  message: 'this server does not go by this name',
  hint: 'use its address or localhost, or add the name to its allowed hosts',
};

/**
 * Makes an HTTP server with limits on time, headers and connections; the caller listens with `listenOn` and ends it
 * with `closeHttpServer`. Requests of a connection are answered one after the other, so that each response learns
 * when its client goes away. Throws OpmateError INVALID for a certificate that cannot be used.
 */
export function createHttpServer(options: HttpServerOptions): Server {
  const { certificate, requestMs = headersMs, idleMs = defaultIdleMs } = options;
  const limits = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: options.keepAliveMs ?? defaultKeepAliveMs,
    // How exactly these times are kept.
    connectionsCheckingInterval: 1_000,
    maxHeaderSize: maxHeaderBytes,
    noDelay: true,
  };
  let server: Server;
  if (certificate === undefined) server = createServer(limits);
  else {
    checkCertificate(certificate);
    server = createSecureServer({
      ...limits,
      ...certificate,
      minVersion: 'TLSv1.2',
      handshakeTimeout: handshakeMs,
      ALPNProtocols: ['http/1.1'],
    });
  }
  server.setTimeout(idleMs);
  server.maxHeadersCount = maxHeaders;
  connectionsByServer.set(server, new Connections(server, options));
  return server;
}

/** Stops listening, lets requests that are under way finish, and cuts off those that take longer than the grace. */
export async function closeHttpServer(server: Server, graceMs: number = defaultGraceMs): Promise<void> {
  await connectionsByServer.get(server)?.close(graceMs);
}

/**
 * Serves new connections with another certificate; those that are open keep theirs. Throws OpmateError INVALID when
 * the certificate cannot be used, and goes on with the one before.
 */
export function replaceCertificate(server: Server, certificate: ServerCertificate): void {
  checkCertificate(certificate);
  if (!(server instanceof SecureServer)) {
    throw new OpmateError('INTERNAL', 'a server without TLS has no certificate to replace');
  }
  server.setSecureContext({ ...certificate, minVersion: 'TLSv1.2' });
}

function checkCertificate({ cert, key }: ServerCertificate): void {
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const mismatch = systemCode(cause) === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH';
    throw new OpmateError(
      'INVALID',
      `TLS certificate and key: ${mismatch ? 'do not belong together' : 'cannot be read'}`,
      { hint: 'use PEM files, and the key of this certificate', cause },
    );
  }
}

const connectionsByServer = new WeakMap<Server, Connections>();

interface Connection extends WatchedConnection {
  socket: Socket;
  /** The response that is being made. */
  current: ServerResponse | undefined;
  /** Requests that were sent ahead. */
  waiting: [IncomingMessage, ServerResponse][];
}

/** The connections of a server. The one that has been idle longest comes first. */
class Connections {
  readonly #server: Server;
  readonly #options: HttpServerOptions;
  readonly #logger: Logger;
  readonly #max: number;
  readonly #open = new Map<Socket, Connection>();
  /** Of a server with TLS, by peer, until it is known who is there. */
  readonly #handshakes = new Map<string, Socket>();
  readonly #handling = new Set<Promise<void>>();
  /** Requests that wait for others of their connections. */
  #waiting = 0;
  #refused = { count: 0, toldAt: -Infinity };
  readonly #stalled: StalledConnections<Connection>;
  #closing: Promise<void> | undefined;

  constructor(server: Server, options: HttpServerOptions) {
    this.#server = server;
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#max = options.maxConnections ?? defaultMaxConnections;
    this.#stalled = new StalledConnections({
      waitsForClient: ({ socket, current }) => current?.req.complete === false || socket.writableLength > 0,
      stalledMs: options.stalledMs,
    });
    const isSecure = server instanceof SecureServer;
    server.on('connection', (socket: Socket) => {
      if (!this.#makeRoom()) return void socket.destroy();
      if (!isSecure) return this.#accept(socket);
      const peer = getPeer(socket);
      this.#handshakes.set(peer, socket);
      socket.once('close', () => {
        if (this.#handshakes.get(peer) === socket) this.#handshakes.delete(peer);
      });
    });
    if (isSecure) {
      server.on('secureConnection', (socket: Socket) => {
        this.#handshakes.delete(getPeer(socket));
        this.#accept(socket);
      });
    }
    server.on('request', (request, response) => this.#take(request, response));
  }

  close(graceMs: number): Promise<void> {
    return (this.#closing ??= this.#close(graceMs));
  }

  async #close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { socket, current } of [...this.#open.values()]) {
      // Of a request that has not come in whole nothing is under way.
      if (current === undefined) socket.destroy();
      else if (!current.headersSent) current.setHeader('Connection', 'close');
    }
    for (const socket of this.#handshakes.values()) socket.destroy();
    const timer = setTimeout(() => {
      for (const { socket } of [...this.#open.values()]) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
    let settle: NodeJS.Timeout | undefined;
    const tooLong = new Promise<void>((resolve) => (settle = setTimeout(resolve, settleMs)));
    await Promise.race([Promise.all(this.#handling), tooLong]);
    clearTimeout(settle);
  }

  /** Whether there is room for one more connection. */
  #makeRoom(): boolean {
    if (this.#closing !== undefined) return false;
    if (this.#open.size + this.#handshakes.size < this.#max) return true;
    for (const { socket, current } of this.#open.values()) {
      if (current !== undefined) continue;
      this.#open.delete(socket);
      socket.destroy();
      return true;
    }
    const stalled = this.#stalled.find(this.#open.values());
    if (stalled !== undefined) {
      this.#open.delete(stalled.socket);
      stalled.socket.destroy();
      return true;
    }
    this.#refused.count++;
    const now = performance.now();
    if (now - this.#refused.toldAt >= refusalLogMs) {
      const { count } = this.#refused;
      this.#logger.log('warn', `${count} connections refused: ${this.#max} are open`);
      this.#refused = { count: 0, toldAt: now };
    }
    return false;
  }

  #accept(socket: Socket): void {
    if (this.#closing !== undefined) return void socket.destroy();
    const moved = { bytes: 0, since: performance.now() };
    const connection: Connection = { socket, current: undefined, waiting: [], moved };
    this.#open.set(socket, connection);
    limitParsing(socket, () => socket.destroyed || this.#hasTooManyWaiting(connection));
    socket.once('close', () => {
      if (this.#open.get(socket) === connection) this.#open.delete(socket);
      // Node.js has held them until now.
      this.#waiting -= connection.waiting.length;
      connection.waiting = [];
    });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#open.get(socket);
    if (connection === undefined) return void socket.destroy();
    if (socket.destroyed) return;
    if (connection.current === undefined) return this.#begin(connection, request, response);
    if (this.#hasTooManyWaiting(connection)) return void socket.destroy();
    connection.waiting.push([request, response]);
    this.#waiting++;
  }

  #hasTooManyWaiting({ current, waiting }: Connection): boolean {
    if (current === undefined) return false;
    return waiting.length >= maxPipelined || this.#waiting >= maxPipelinedInAll;
  }

  #begin(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    const { socket } = connection;
    if (socket.destroyed) return;
    connection.current = response;
    response.once('close', () => this.#end(connection));
    if (this.#closing !== undefined) response.setHeader('Connection', 'close');
    if (!this.#options.hosts.allows(request)) {
      response.setHeader('Connection', 'close');
      return this.#options.refuse(foreignHost, request, response);
    }
    const handled = this.#handle(request, response).finally(() => this.#handling.delete(handled));
    this.#handling.add(handled);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#options.handle(request, response);
    } catch (error) {
      const url = (request.url ?? '').slice(0, 300);
      this.#logger.log('error', `${request.method} ${url}: ${redact(getMessage(error))}`);
      response.destroy();
    }
  }

  #end(connection: Connection): void {
    const { socket, waiting } = connection;
    connection.current = undefined;
    if (socket.destroyed) return;
    // A server that closes answers what is under way, and nothing after it.
    if (this.#closing !== undefined) return void socket.destroySoon();
    const next = waiting.shift();
    if (next !== undefined) {
      this.#waiting--;
      return this.#begin(connection, ...next);
    }
    // It is the youngest of those that are idle.
    this.#open.delete(socket);
    this.#open.set(socket, connection);
  }
}

/** A return value that the parser takes for a fault. */
const parseFault = -1;

/**
 * Ends a connection, as one with a syntax error, before the next request once `isOver` holds. Node.js makes objects of all
 * requests in a piece that came in, thousands of them on each of a thousand connections, before it closes the first. Its
 * parser is no public interface: without it requests are refused after they are made.
 */
function limitParsing(socket: Socket, isOver: () => boolean): void {
  type Take = (...args: unknown[]) => unknown;
  const { parser } = socket as { parser?: { onIncoming?: Take | null } | null };
  const take = parser?.onIncoming;
  if (typeof take !== 'function') return;
  (parser as { onIncoming: Take }).onIncoming = (...args) =>
    isOver() ? parseFault : Reflect.apply(take, parser, args);
}

function getPeer({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
