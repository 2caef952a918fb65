import { type Coding, compressPieces } from './encoding.js';

/** Replies up to this size, before compression, are kept: packages of some dozen bundles. */
export const maxKeptReplyBytes = 8 * 1024 * 1024;
/** Compressed bytes that are kept, and those together that are kept or being sent. */
const defaultMaxKeptBytes = 32 * 1024 * 1024;
const maxHeldBytes = 64 * 1024 * 1024;
/** Replies that are compressed at once. */
const maxMaking = 8;

interface Reply {
  body: Promise<Buffer>;
  /** Compressed bytes; 0 while it is made. */
  length: number;
  users: number;
}

/** A compressed reply that is kept until it is released. */
interface LeasedReply {
  body: Buffer;
  release(): void;
}

/** Compressed replies in memory, made once however many read them; those used longest ago make room. */
export class CompressedReplies {
  readonly #maxKeptBytes: number;
  /** The last used at the end. */
  readonly #replies = new Map<string, Reply>();
  #bytes = 0;
  #making = 0;

  constructor(maxKeptBytes = defaultMaxKeptBytes) {
    this.#maxKeptBytes = maxKeptBytes;
  }

  /**
   * Returns the reply of a key, which `readPieces` reads where it is not kept, until this resolves; undefined where too many
   * are being made or sent. Throws what reading throws.
   */
  async lease(
    key: string,
    coding: Coding,
    readPieces: () => AsyncIterable<Buffer>,
  ): Promise<LeasedReply | undefined> {
    let reply = this.#replies.get(key);
    if (reply === undefined) {
      if (this.#making >= maxMaking || this.#bytes > maxHeldBytes) return undefined;
      reply = this.#make(key, coding, readPieces);
    } else this.#replies.delete(key);
    this.#replies.set(key, reply);
    reply.users++;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      reply.users--;
      this.#makeRoom();
    };
    try {
      return { body: await reply.body, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #make(key: string, coding: Coding, readPieces: () => AsyncIterable<Buffer>): Reply {
    this.#making++;
    const body = compress(coding, readPieces()).finally(() => this.#making--);
    const reply: Reply = { body, length: 0, users: 0 };
    body.then(
      ({ length }) => {
        reply.length = length;
        this.#bytes += length;
        this.#makeRoom();
      },
      () => {
        if (this.#replies.get(key) === reply) this.#replies.delete(key);
      },
    );
    return reply;
  }

  #makeRoom(): void {
    for (const [key, { length, users }] of this.#replies) {
      if (this.#bytes <= this.#maxKeptBytes) return;
      if (users > 0 || length === 0) continue;
      this.#replies.delete(key);
      this.#bytes -= length;
    }
  }
}

async function compress(coding: Coding, pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const compressed: Buffer[] = [];
  for await (const chunk of compressPieces(pieces, coding)) compressed.push(chunk);
  return Buffer.concat(compressed);
}
