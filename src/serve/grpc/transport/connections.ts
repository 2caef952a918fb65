import type { Socket } from 'node:net';
import { type Logger, silentLogger } from '../../../core/log.js';
import { StalledConnections, type WatchedConnection } from '../../server/stalled-connection.js';
import { type ReplyLane, createLane } from './reply-limit.js';

/** Calls that a connection may cancel within a second. */
const maxCancelledPerSecond = 500;
const cancelWindowMs = 1_000;
/** How often what is refused is told. */
const tellMs = 60_000;
/** Bytes that a stalled client moves: pings and their replies are fewer in that time. */
const minMovedBytes = 1024;

/** A connection of a gRPC server. */
export interface GrpcConnection extends WatchedConnection {
  readonly socket: Socket;
  readonly peer: string;
  /** Calls under way. */
  calls: number;
  /** Bytes of replies that its client has not read. */
  unreadBytes: number;
  cancelled: number;
  /** When the counting of cancelled calls began. */
  windowStart: number;
  readonly unaryReplies: ReplyLane;
  readonly streamReplies: ReplyLane;
}

interface ConnectionsOptions {
  max: number;
  /** Time after which a client that reads nothing of its replies makes room for another; default 15 seconds. */
  stalledMs?: number | undefined;
  logger?: Logger | undefined;
}

/**
 * The connections of a gRPC server. Beyond the maximum the one that has been idle longest makes room, or one whose client
 * has stalled, or the new one is refused; one whose calls are cancelled faster than anybody can want them (rapid reset) is closed.
 */
export class GrpcConnections {
  readonly #max: number;
  readonly #logger: Logger;
  /** Those that were idle last come last. */
  readonly #open = new Map<string, GrpcConnection>();
  readonly #stalled: StalledConnections<GrpcConnection>;
  readonly #toldAt = new Map<string, number>();

  constructor({ max, stalledMs, logger = silentLogger }: ConnectionsOptions) {
    this.#max = max;
    this.#stalled = new StalledConnections({
      waitsForClient: ({ unreadBytes }) => unreadBytes > 0,
      minBytes: minMovedBytes,
      stalledMs,
    });
    this.#logger = logger;
  }

  get sockets(): Socket[] {
    return [...this.#open.values()].map(({ socket }) => socket);
  }

  /** Takes a new connection, unless there is no room: then it is closed. */
  accept(socket: Socket): boolean {
    if (!this.#makeRoom()) {
      socket.destroy();
      return false;
    }
    const peer = peerName(socket);
    const connection: GrpcConnection = {
      socket,
      peer,
      calls: 0,
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

  /** Finds the connection of a socket, or of the TLS socket on top of it. */
  find(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): GrpcConnection | undefined {
    return this.#open.get(peerName(socket));
  }

  /** Notes that a call has begun; `end` is called once for each. */
  begin(connection: GrpcConnection): void {
    connection.calls++;
  }

  end(connection: GrpcConnection): void {
    const { peer } = connection;
    if (--connection.calls > 0 || this.#open.get(peer) !== connection) return;
    this.#open.delete(peer);
    this.#open.set(peer, connection);
  }

  /** Counts a call that its client took back. */
  countCancelled(connection: GrpcConnection): void {
    if (connection.socket.destroyed) return;
    const now = performance.now();
    if (now - connection.windowStart >= cancelWindowMs) {
      connection.windowStart = now;
      connection.cancelled = 0;
    }
    if (++connection.cancelled <= maxCancelledPerSecond) return;
    connection.socket.destroy();
    this.#tell(
      `a gRPC connection was closed: more than ${maxCancelledPerSecond} cancelled calls in a second`,
    );
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
    this.#tell(`gRPC connections refused: ${this.#max} are open`);
    return false;
  }

  #tell(message: string): void {
    const now = performance.now();
    if (now - (this.#toldAt.get(message) ?? -Infinity) < tellMs) return;
    this.#toldAt.set(message, now);
    this.#logger.log('warn', message);
  }
}

function peerName({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`;
}
