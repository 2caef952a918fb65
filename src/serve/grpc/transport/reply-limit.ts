/** Bytes of unread replies of all connections, beyond which a connection makes one at a time. */
const maxUnreadBytes = 64 * 1024 * 1024;

/** The replies of one connection under a limit. */
export interface ReplyLane {
  /** In the making or not read yet. */
  replies: number;
  waiting: (() => void)[];
}

export function createLane(): ReplyLane {
  return { replies: 0, waiting: [] };
}

/** Limits the replies that are in the making or unread: a connection that does not read gets few. */
export class ReplyLimit {
  readonly #maxReplies: number;
  #unreadBytes = 0;

  /** `maxReplies` is for each connection. */
  constructor(maxReplies: number) {
    this.#maxReplies = maxReplies;
  }

  /** Calls `work`, at once or when earlier replies of the connection have been read. */
  enter(lane: ReplyLane, work: () => void): void {
    if (lane.waiting.length > 0 || !this.#hasRoom(lane)) {
      lane.waiting.push(work);
      return;
    }
    lane.replies++;
    work();
  }

  /** Gives up waiting. Returns whether the work was still waiting. */
  withdraw(lane: ReplyLane, work: () => void): boolean {
    const place = lane.waiting.indexOf(work);
    if (place >= 0) lane.waiting.splice(place, 1);
    return place >= 0;
  }

  /** Counts bytes of a reply that are unread; negative where they have been read. */
  addUnread(bytes: number): void {
    this.#unreadBytes += bytes;
  }

  /** Ends a reply that was entered. */
  leave(lane: ReplyLane): void {
    lane.replies--;
    // Later: the other calls of a closed connection are withdrawn first.
    if (lane.waiting.length > 0) setImmediate(() => this.#startWaiting(lane));
  }

  #startWaiting(lane: ReplyLane): void {
    while (lane.waiting.length > 0 && this.#hasRoom(lane)) {
      lane.replies++;
      lane.waiting.shift()?.();
    }
  }

  #hasRoom({ replies }: ReplyLane): boolean {
    return replies === 0 || (replies < this.#maxReplies && this.#unreadBytes < maxUnreadBytes);
  }
}
