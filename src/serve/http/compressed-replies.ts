import { type Coding, compressPieces } from './encoding.js';

/** Maximum uncompressed size of cached replies: packages of some dozen bundles. */
export const maxKeptReplyBytes = 8 * 1024 * 1024;
/** Maximum compressed bytes in the cache, and including those being sent. */
const defaultMaxKeptBytes = 32 * 1024 * 1024;
const maxHeldBytes = 64 * 1024 * 1024;
/** Maximum replies being compressed. */
const maxCompressing = 8;

interface Reply {
  body: Promise<Buffer>;
  /** Compressed bytes; 0 during compression. */
  length: number;
  users: number;
}

/** Least-recently-used cache of compressed replies, each compressed once for all readers. */
export class CompressedReplies {
  readonly #maxKeptBytes: number;
  /** Least recently used first. */
  readonly #replies = new Map<string, Reply>();
  #bytes = 0;
  #compressing = 0;

  constructor(maxKeptBytes = defaultMaxKeptBytes) {
    this.#maxKeptBytes = maxKeptBytes;
  }

  /**
   * Returns the reply of a key, cached until it is released, and compressed from `readPieces` if it is not cached;
   * undefined where too many are being compressed or sent. Throws errors of reading.
   */
  async lease(
    key: string,
    coding: Coding,
    readPieces: () => AsyncIterable<Buffer>,
  ): Promise<{ body: Buffer; release(): void } | undefined> {
    let reply = this.#replies.get(key);
    if (reply === undefined) {
      if (this.#compressing >= maxCompressing || this.#bytes > maxHeldBytes) return undefined;
      reply = this.#add(key, coding, readPieces);
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

  #add(key: string, coding: Coding, readPieces: () => AsyncIterable<Buffer>): Reply {
    this.#compressing++;
    const body = compress(coding, readPieces()).finally(() => this.#compressing--);
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
