import type { Socket } from 'node:net';
import { type Logger, silentLogger } from '../../../core/log.js';
import { StalledConnections, type WatchedConnection } from '../../server/stalled-connection.js';
import { type ReplyLane, createLane } from './reply-limit.js';

/** Maximum cancelled calls per connection and second. */
const maxCancelledPerSecond = 500;
const cancelWindowMs = 1_000;
/** Interval of repeated warnings. */
const warnMs = 60_000;

/** A connection of a gRPC server. */
export interface GrpcConnection extends WatchedConnection {
  readonly socket: Socket;
  readonly peer: string;
  /** Open calls whose method has begun, and all. */
  calls: number;
  allCalls: number;
  /** Bytes of replies that the client has not read. */
  unreadBytes: number;
  cancelled: number;
  /** Start of the window of `cancelled`. */
  windowStart: number;
  readonly unaryReplies: ReplyLane;
  readonly streamReplies: ReplyLane;
}

interface ConnectionsOptions {
  max: number;
  /** Time after which a connection whose client reads no replies may be replaced; default 15 seconds. */
  stalledMs?: number | undefined;
  logger?: Logger | undefined;
}

/**
 * Connections of a gRPC server. Beyond the maximum, the longest idle or a stalled one is closed, or else the new one
 * refused. A connection that cancels too many calls (rapid reset) is closed.
 */
export class GrpcConnections {
  readonly #max: number;
  readonly #logger: Logger;
  /** By peer, most recently idle last. */
  readonly #open = new Map<string, GrpcConnection>();
  readonly #stalled: StalledConnections<GrpcConnection>;
  readonly #warnedAt = new Map<string, number>();

  constructor({ max, stalledMs, logger = silentLogger }: ConnectionsOptions) {
    this.#max = max;
    this.#stalled = new StalledConnections({
      waitsForClient: ({ unreadBytes }) => unreadBytes > 0,
      stalledMs,
    });
    this.#logger = logger;
  }

  get sockets(): Socket[] {
    return [...this.#open.values()].map(({ socket }) => socket);
  }

  /** Adds a new connection, or closes it where there is no room. */
  accept(socket: Socket): boolean {
    if (!this.#makeRoom()) {
      socket.destroy();
      return false;
    }
    const peer = getPeer(socket);
    const connection: GrpcConnection = {
      socket,
      peer,
      calls: 0,
      allCalls: 0,
      unreadBytes: 0,
      moved: { bytes: 0, since: performance.now() },
      cancelled: 0,
      windowStart: 0,
      unaryReplies: createLane(),
      streamReplies: createLane(),
    };
    this.#open.set(peer, connection);
    socket.once('close', () => {
      if (this.#open.get(peer) === connection) this.#open.delete(peer);
    });
    return true;
  }

  /** Finds the connection of a socket or of its TLS socket. */
  find(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): GrpcConnection | undefined {
    return this.#open.get(getPeer(socket));
  }

  /** Counts an open call; `end` is called once for each. */
  begin(connection: GrpcConnection): void {
    connection.calls++;
  }

  end(connection: GrpcConnection): void {
    const { peer } = connection;
    if (--connection.calls > 0 || this.#open.get(peer) !== connection) return;
    this.#open.delete(peer);
    this.#open.set(peer, connection);
  }

  countCancelled(connection: GrpcConnection): void {
    if (connection.socket.destroyed) return;
    const now = performance.now();
    if (now - connection.windowStart >= cancelWindowMs) {
      connection.windowStart = now;
      connection.cancelled = 0;
    }
    if (++connection.cancelled <= maxCancelledPerSecond) return;
    connection.socket.destroy();
    this.#warn(`gRPC connection closed: more than ${maxCancelledPerSecond} cancelled calls per second`);
  }

  #makeRoom(): boolean {
    if (this.#open.size < this.#max) return true;
    const connections = [...this.#open.values()];
    const idle = connections.find(({ calls, unreadBytes }) => calls === 0 && unreadBytes === 0);
    const closed = idle ?? this.#stalled.find(connections);
    if (closed !== undefined) {
      this.#open.delete(closed.peer);
      closed.socket.destroy();
      return true;
    }
    this.#warn(`gRPC connections refused: ${this.#max} are open`);
    return false;
  }

  #warn(message: string): void {
    const now = performance.now();
    if (now - (this.#warnedAt.get(message) ?? -Infinity) < warnMs) return;
    this.#warnedAt.set(message, now);
    this.#logger.log('warn', message);
  }
}

function getPeer({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`;
}
