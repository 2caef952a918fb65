/** A client that takes and sends nothing for this long, though the server waits for it, makes room for a new one. */
const defaultStalledMs = 15_000;
/** How often connections are searched for such clients. */
const checkMs = 1_000;

/** A connection whose bytes are compared. */
export interface WatchedConnection {
  readonly socket: { readonly bytesRead: number; readonly bytesWritten: number };
  /** Bytes that had been sent and received when they were last compared, and since when they are the same. */
  moved: { bytes: number; since: number };
}

interface StallRule<T> {
  /** Whether the server can do nothing for a connection before its client takes or sends something. */
  waitsForClient: (connection: T) => boolean;
  /** Bytes that a client has to move within the time; 1 when left out. */
  minBytes?: number | undefined;
  /** 15 seconds when left out. */
  stalledMs?: number | undefined;
}

/** Finds connections of a full server whose clients have stalled. */
export class StalledConnections<T extends WatchedConnection> {
  readonly #rule: StallRule<T>;
  #checkedAt = -Infinity;

  constructor(rule: StallRule<T>) {
    this.#rule = rule;
  }

  /** Finds one whose client has moved nothing for the time, as seen by calls of this; at most once a second. */
  find(connections: Iterable<T>): T | undefined {
    const now = performance.now();
    const { waitsForClient, minBytes = 1, stalledMs = defaultStalledMs } = this.#rule;
    if (now - this.#checkedAt < Math.min(checkMs, stalledMs)) return undefined;
    for (const connection of connections) {
      const { socket, moved } = connection;
      const bytes = socket.bytesRead + socket.bytesWritten;
      if (!waitsForClient(connection) || bytes - moved.bytes >= minBytes) {
        connection.moved = { bytes, since: now };
      } else if (now - moved.since >= stalledMs) return connection;
    }
    this.#checkedAt = now;
    return undefined;
  }
}
