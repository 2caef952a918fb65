import type { Socket } from 'node:net';
import { type Logger, silentLogger } from '../../core/log.js';

/** Calls that a connection may cancel within a second. */
const maxCancelledPerSecond = 500;
const cancelWindowMs = 1_000;
/** How often what is refused is told. */
const tellMs = 60_000;

interface Connection {
  socket: Socket;
  calls: number;
  cancelled: number;
  /** When the counting of cancelled calls began. */
  windowStart: number;
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
  readonly #open = new Map<string, Connection>();
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
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    const connection = { socket, calls: 0, cancelled: 0, windowStart: 0 };
    this.#open.set(peer, connection);
    socket.once('close', () => {
      if (this.#open.get(peer) === connection) this.#open.delete(peer);
    });
    return true;
  }

  /** Notes that a call of a peer (`ADDRESS:PORT`) has begun; what it returns is called once, at its end. */
  begin(peer: string): (isCancelled: boolean) => void {
    const connection = this.#open.get(peer);
    if (connection === undefined) return () => undefined;
    connection.calls++;
    return (isCancelled) => {
      connection.calls--;
      if (connection.socket.destroyed) return;
      if (isCancelled) this.#countCancelled(connection);
      if (connection.calls > 0 || this.#open.get(peer) !== connection) return;
      this.#open.delete(peer);
      this.#open.set(peer, connection);
    };
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

  #countCancelled(connection: Connection): void {
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

  #tell(message: string): void {
    const now = performance.now();
    if (now - (this.#toldAt.get(message) ?? -Infinity) < tellMs) return;
    this.#toldAt.set(message, now);
    this.#logger.log('warn', message);
  }
}
