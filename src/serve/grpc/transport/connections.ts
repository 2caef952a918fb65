import { type ServedConnection, type ConnectionLimits, Connections } from '../../server/connections.js';
import { maxStreamsPerConnection } from './session.js';
import { type ReplyLane, createLane } from './reply-limit.js';

/** Maximum cancelled calls per connection and second. */
const maxCancelledPerSecond = 200;
const cancelWindowMs = 1_000;

/** A connection of a gRPC server. */
export interface GrpcConnection extends ServedConnection {
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

/** Connections of a gRPC server. One that cancels too many calls (rapid reset) is closed. */
export class GrpcConnections extends Connections<GrpcConnection> {
  constructor(limits: ConnectionLimits) {
    super(limits, {
      kind: 'gRPC connections',
      create: (connection) => ({
        ...connection,
        calls: 0,
        allCalls: 0,
        unreadBytes: 0,
        cancelled: 0,
        windowStart: 0,
        unaryReplies: createLane(),
        streamReplies: createLane(),
      }),
      isIdle: ({ calls, unreadBytes }) => calls === 0 && unreadBytes === 0,
      findClientWork: ({ unreadBytes }) => (unreadBytes > 0 ? 'buffered' : undefined),
    });
  }

  /** Counts an open call; `end` is called once for each. */
  begin(connection: GrpcConnection): void {
    connection.calls++;
  }

  end(connection: GrpcConnection): void {
    if (--connection.calls === 0) this.markIdle(connection);
  }

  countCancelled(connection: GrpcConnection): void {
    if (connection.socket.destroyed) return;
    const now = performance.now();
    if (now - connection.windowStart >= cancelWindowMs) {
      connection.windowStart = now;
      connection.cancelled = 0;
    }
    if (++connection.cancelled > maxCancelledPerSecond) this.#closeFlooded(connection);
  }

  /**
   * Reports whether a connection may open a call. Calls beyond the maximum of open streams have been cancelled, though
   * their streams have yet to report it.
   */
  mayOpen(connection: GrpcConnection): boolean {
    if (connection.allCalls > maxStreamsPerConnection + maxCancelledPerSecond) this.#closeFlooded(connection);
    return !connection.socket.destroyed;
  }

  #closeFlooded(connection: GrpcConnection): void {
    if (connection.socket.destroyed) return;
    connection.socket.destroy();
    this.warn(`gRPC connection closed: more than ${maxCancelledPerSecond} cancelled calls per second`);
  }
}
