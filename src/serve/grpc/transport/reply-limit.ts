/** Unread bytes of all connections beyond which each connection has one reply at a time. */
const maxUnreadBytes = 64 * 1024 * 1024;
/** Bytes that a reply counts in addition: most of those that enter at once have not produced theirs. */
const reservedBytes = 256 * 1024;

/** Replies of one connection under a limit. */
export interface ReplyLane {
  /** Replies in progress or unread. */
  replies: number;
  waiting: (() => void)[];
}

export function createLane(): ReplyLane {
  return { replies: 0, waiting: [] };
}

/** Limits replies in progress or unread per connection. */
export class ReplyLimit {
  readonly #maxReplies: number;
  #unreadBytes = 0;

  constructor(maxReplies: number) {
    this.#maxReplies = maxReplies;
  }

  /** Replies of all connections have too many unread bytes. */
  get isCrowded(): boolean {
    return this.#unreadBytes >= maxUnreadBytes;
  }

  /** Calls `work` at once, or when earlier replies of the connection have been read. */
  enter(lane: ReplyLane, work: () => void): void {
    if (lane.waiting.length > 0 || !this.#hasRoom(lane)) {
      lane.waiting.push(work);
      return;
    }
    this.#start(lane, work);
  }

  /** Removes waiting work. Returns whether it was waiting. */
  withdraw(lane: ReplyLane, work: () => void): boolean {
    const place = lane.waiting.indexOf(work);
    if (place >= 0) lane.waiting.splice(place, 1);
    return place >= 0;
  }

  /** Counts unread bytes of a reply; negative once read. */
  addUnread(bytes: number): void {
    this.#unreadBytes += bytes;
  }

  /** Ends a reply that has entered. */
  leave(lane: ReplyLane): void {
    lane.replies--;
    this.#unreadBytes -= reservedBytes;
    // Deferred: other calls of a closed connection withdraw first.
    if (lane.waiting.length > 0) setImmediate(() => this.#startWaiting(lane));
  }

  #startWaiting(lane: ReplyLane): void {
    while (this.#hasRoom(lane)) {
      const work = lane.waiting.shift();
      if (work === undefined) return;
      this.#start(lane, work);
    }
  }

  #start(lane: ReplyLane, work: () => void): void {
    lane.replies++;
    this.#unreadBytes += reservedBytes;
    work();
  }

  #hasRoom({ replies }: ReplyLane): boolean {
    return replies === 0 || (replies < this.#maxReplies && !this.isCrowded);
  }
}
