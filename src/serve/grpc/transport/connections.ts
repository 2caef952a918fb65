import type { Socket } from 'node:net';
import { type Logger, silentLogger } from '../../../core/log.js';
import { type ReplyLane, createLane } from './reply-limit.js';

/** Calls that a connection may cancel within a second. */
const maxCancelledPerSecond = 500;
const cancelWindowMs = 1_000;
/** How often what is refused is told. */
const tellMs = 60_000;

/** A connection of a gRPC server. */
export interface GrpcConnection {
  readonly socket: Socket;
  readonly peer: string;
  /** Calls under way. */
  calls: number;
  cancelled: number;
  /** When the counting of cancelled calls began. */
  windowStart: number;
  readonly unaryReplies: ReplyLane;
  readonly streamReplies: ReplyLane;
}

interface ConnectionsOptions {
  max: number;
  logger?: Logger | undefined;
}

/**
 * The connections of a gRPC server. Beyond the maximum the one that has been idle longest makes room, or the new one is
 * refused; one whose calls are cancelled faster than anybody can want them (rapid reset) is closed.
 */
export class GrpcConnections {
  readonly #max: number;
  readonly #logger: Logger;
  /** Those that were idle last come last. */
  readonly #open = new Map<string, GrpcConnection>();
  readonly #toldAt = new Map<string, number>();

  constructor({ max, logger = silentLogger }: ConnectionsOptions) {
    this.#max = max;
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
    for (const [peer, { socket, calls }] of this.#open) {
      if (calls > 0) continue;
      this.#open.delete(peer);
      socket.destroy();
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
