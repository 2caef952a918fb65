import type { Socket } from 'node:net';
import { type Logger, silentLogger } from '../../core/log.js';

export const defaultMaxConnections = 1_000;
/** Default time without progress after which a client is stalled. */
const defaultStalledMs = 15_000;
/** Bytes below which there is no progress: clients may drip, and pings and their replies are fewer. */
const minMovedBytes = 1024;
/** Minimum average rate of a request, in bytes per second. */
const minRate = 1024;
/** Time of a new connection or request before slower ones make room. */
const newMs = 500;
/** Time after a search for stalled clients in vain. */
const checkMs = 100;
/** Interval of repeated warnings. */
const warnMs = 60_000;

/** A connection of a server, with TLS from its handshake on. */
export interface ServedConnection {
  /** TCP socket. */
  readonly socket: Socket;
  readonly peer: string;
  /** Bytes sent and received at the last progress, and its time. */
  moved: { bytes: number; since: number };
  /** Bytes received before the current request, and the time of its headers; while idle, the time of the last response. */
  request: { offset: number; since: number };
}

/** Work of a client that a server waits for: to send more of a request, or anything while bytes are in a buffer. */
type ClientWork = 'sending' | 'buffered';

export interface ConnectionLimits {
  /** Default 1000. */
  maxConnections?: number | undefined;
  /** Time after which a connection whose client neither reads nor sends may be replaced; default 15 seconds. */
  stalledMs?: number | undefined;
  logger?: Logger | undefined;
}

interface ConnectionRules<T> {
  /** Start of warnings: `gRPC connections`. */
  kind: string;
  create: (connection: ServedConnection) => T;
  isIdle: (connection: T) => boolean;
  findClientWork: (connection: T) => ClientWork | undefined;
}

/**
 * Open connections of a server. Beyond the maximum, the longest idle one is closed, or the slowest of those that send
 * less than 1 KB per second or have stalled, or else the new one is refused.
 */
export class Connections<T extends ServedConnection> {
  readonly #limits: ConnectionLimits;
  readonly #rules: ConnectionRules<T>;
  /** By peer, most recently idle last. */
  readonly #open = new Map<string, T>();
  readonly #warnedAt = new Map<string, number>();
  #refused = 0;
  #checkedAt = -Infinity;

  constructor(limits: ConnectionLimits, rules: ConnectionRules<T>) {
    this.#limits = limits;
    this.#rules = rules;
  }

  get list(): T[] {
    return [...this.#open.values()];
  }

  /** Adds a new connection; undefined, and closed, where there is no room. */
  accept(socket: Socket): T | undefined {
    if (!this.#makeRoom()) {
      socket.destroy();
      return undefined;
    }
    const [peer, since] = [getPeer(socket), performance.now()];
    const connection = this.#rules.create({
      socket,
      peer,
      moved: { bytes: 0, since },
      request: { offset: 0, since },
    });
    this.#open.set(peer, connection);
    socket.once('close', () => {
      if (this.#open.get(peer) === connection) this.#open.delete(peer);
    });
    return connection;
  }

  /** Finds the connection of a socket or of its TLS socket. */
  find(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): T | undefined {
    return this.#open.get(getPeer(socket));
  }

  /** Begins the time of a request, whose headers the server has received. */
  markBusy({ request }: T): void {
    request.since = performance.now();
  }

  /** Makes a connection the most recently idle one. */
  markIdle(connection: T): void {
    connection.request = { offset: connection.socket.bytesRead, since: performance.now() };
    if (this.#open.get(connection.peer) !== connection) return;
    this.#open.delete(connection.peer);
    this.#open.set(connection.peer, connection);
  }

  /** Logs a warning, at most once a minute each; `count` precedes it. */
  warn(message: string, count = ''): boolean {
    const now = performance.now();
    if (now - (this.#warnedAt.get(message) ?? -Infinity) < warnMs) return false;
    this.#warnedAt.set(message, now);
    (this.#limits.logger ?? silentLogger).log('warn', count + message);
    return true;
  }

  #makeRoom(): boolean {
    const { maxConnections = defaultMaxConnections } = this.#limits;
    if (this.#open.size < maxConnections) return true;
    const idle = this.list.find(this.#rules.isIdle);
    // The headers of a new connection are on their way: under an attack, it would not live to see them.
    const isNew = idle === undefined || performance.now() - idle.request.since < newMs;
    const closed = isNew ? (this.#findSlowest() ?? idle) : idle;
    if (closed !== undefined) {
      this.#open.delete(closed.peer);
      closed.socket.destroy();
      return true;
    }
    const message = `${this.#rules.kind} refused: ${maxConnections} are open`;
    if (this.warn(message, `${++this.#refused} `)) this.#refused = 0;
    return false;
  }

  /** Finds the slowest client of those that are too slow, or have stalled as observed by calls of this method. */
  #findSlowest(): T | undefined {
    const now = performance.now();
    const { stalledMs = defaultStalledMs } = this.#limits;
    if (now - this.#checkedAt < Math.min(checkMs, stalledMs)) return undefined;
    let [slowest, lowestRate]: [T | undefined, number] = [undefined, Infinity];
    for (const connection of this.#open.values()) {
      const { socket, moved, request } = connection;
      const bytes = socket.bytesRead + socket.bytesWritten;
      const work = this.#rules.findClientWork(connection);
      if (work === undefined || bytes - moved.bytes >= minMovedBytes) {
        connection.moved = { bytes, since: now };
      }
      const requestMs = now - request.since;
      const rate = (1000 * (socket.bytesRead - request.offset)) / requestMs;
      const isSlow = work === 'sending' && requestMs >= newMs && rate < minRate;
      if ((isSlow || now - connection.moved.since >= stalledMs) && rate < lowestRate) {
        [slowest, lowestRate] = [connection, rate];
      }
    }
    if (slowest === undefined) this.#checkedAt = now;
    return slowest;
  }
}

function getPeer({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`;
}
