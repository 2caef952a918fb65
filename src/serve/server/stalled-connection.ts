/** Default time without progress after which a client is stalled. */
const defaultStalledMs = 15_000;
/** Bytes below which there is no progress: clients may drip, and pings and their replies are fewer. */
const minMovedBytes = 1024;
/** Minimum interval of searches. */
const checkMs = 1_000;

/** A connection whose progress is watched. */
export interface WatchedConnection {
  readonly socket: { readonly bytesRead: number; readonly bytesWritten: number };
  /** Bytes sent and received at the last progress, and its time. */
  moved: { bytes: number; since: number };
}

interface StallRule<T> {
  /** Reports whether the server waits for the client to read or send. */
  waitsForClient: (connection: T) => boolean;
  /** Default 15 seconds. */
  stalledMs?: number | undefined;
}

/** Finds connections of a full server whose clients have stalled. */
export class StalledConnections<T extends WatchedConnection> {
  readonly #rule: StallRule<T>;
  #checkedAt = -Infinity;

  constructor(rule: StallRule<T>) {
    this.#rule = rule;
  }

  /** Finds a stalled connection, as observed by calls of this method; searches at most once a second. */
  find(connections: Iterable<T>): T | undefined {
    const now = performance.now();
    const { waitsForClient, stalledMs = defaultStalledMs } = this.#rule;
    if (now - this.#checkedAt < Math.min(checkMs, stalledMs)) return undefined;
    for (const connection of connections) {
      const { socket, moved } = connection;
      const bytes = socket.bytesRead + socket.bytesWritten;
      if (!waitsForClient(connection) || bytes - moved.bytes >= minMovedBytes) {
        connection.moved = { bytes, since: now };
      } else if (now - moved.since >= stalledMs) return connection;
    }
    this.#checkedAt = now;
    return undefined;
  }
}
