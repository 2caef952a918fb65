import type { Socket } from 'node:net';
import { type Logger, silentLogger } from '../../core/log.js';

export const defaultMaxConnections = 1_000;
/** Default time without progress after which a client is stalled. */
const defaultStalledMs = 15_000;
/** Bytes below which there is no progress: clients may drip, and pings and their replies are fewer. */
const minMovedBytes = 1024;
/** Minimum interval of searches for stalled clients. */
const checkMs = 1_000;
/** Interval of repeated warnings. */
const warnMs = 60_000;

/** A connection of a server, with TLS from its handshake on. */
export interface Connection {
  /** TCP socket. */
  readonly socket: Socket;
  readonly peer: string;
  /** Bytes sent and received at the last progress, and its time. */
  moved: { bytes: number; since: number };
}

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
  create: (connection: Connection) => T;
  isIdle: (connection: T) => boolean;
  /** Reports whether the server waits for the client to read or send. */
  waitsForClient: (connection: T) => boolean;
}

/**
 * Open connections of a server. Beyond the maximum, the longest idle or a stalled one is closed, or else the new one
 * refused.
 */
export class Connections<T extends Connection> {
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
    const peer = getPeer(socket);
    const moved = { bytes: 0, since: performance.now() };
    const connection = this.#rules.create({ socket, peer, moved });
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

  /** Makes a connection the most recently idle one. */
  markIdle(connection: T): void {
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
    const closed = this.list.find(this.#rules.isIdle) ?? this.#findStalled();
    if (closed !== undefined) {
      this.#open.delete(closed.peer);
      closed.socket.destroy();
      return true;
    }
    const message = `${this.#rules.kind} refused: ${maxConnections} are open`;
    if (this.warn(message, `${++this.#refused} `)) this.#refused = 0;
    return false;
  }

  /** Finds a connection whose client has stalled, as observed by calls of this method; searches at most once a second. */
  #findStalled(): T | undefined {
    const now = performance.now();
    const { stalledMs = defaultStalledMs } = this.#limits;
    if (now - this.#checkedAt < Math.min(checkMs, stalledMs)) return undefined;
    for (const connection of this.#open.values()) {
      const { socket, moved } = connection;
      const bytes = socket.bytesRead + socket.bytesWritten;
      if (!this.#rules.waitsForClient(connection) || bytes - moved.bytes >= minMovedBytes) {
        connection.moved = { bytes, since: now };
      } else if (now - moved.since >= stalledMs) return connection;
    }
    this.#checkedAt = now;
    return undefined;
  }
}

function getPeer({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`;
}
