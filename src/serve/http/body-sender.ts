import { BufferPool } from './content-stream.js';
import {
  type Coding,
  compressPieces,
  createSender,
  minCompressedBytes,
  negotiateCoding,
} from './encoding.js';
import type { Exchange } from './exchange.js';

/** Maximum uncompressed size of cached replies: packages of some dozen bundles. */
const maxKeptReplyBytes = 8 * 1024 * 1024;
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

/** Maximum responses being compressed, at 256 KiB each; further ones are sent uncompressed. */
const maxCompressors = 200;

interface SentPieces {
  key: readonly string[];
  /** Approximate size of all pieces in bytes. */
  size: number;
  coding: Coding | undefined;
  readPieces: () => AsyncGenerator<Buffer, void, undefined>;
}

/** Sends bodies, compressed as negotiated, within memory limits that all requests share. */
export class BodySender {
  readonly pool = new BufferPool();
  readonly #replies = new CompressedReplies();
  #compressors = 0;

  /** Selects the coding of a body of `size` bytes; undefined for none. */
  selectCoding({ method, request }: Exchange, size: number): Coding | undefined {
    if (method === 'HEAD' || size < minCompressedBytes || this.#compressors >= maxCompressors)
      return undefined;
    const header = request.headers['accept-encoding'];
    return negotiateCoding(Array.isArray(header) ? header.join(',') : header);
  }

  /** Sends the pieces of a key; compressed ones are cached by key. */
  async sendPieces(exchange: Exchange, { key, size, coding, readPieces }: SentPieces): Promise<void> {
    const { response } = exchange;
    const kept =
      coding === undefined || size > maxKeptReplyBytes
        ? undefined
        : await this.#replies.lease(JSON.stringify([...key, coding]), coding, readPieces);
    if (kept === undefined) return await this.stream(exchange, readPieces(), coding);
    if (response.destroyed) return kept.release();
    response.once('close', () => kept.release());
    response.setHeader('Content-Length', kept.body.length);
    exchange.bytes = kept.body.length;
    response.end(kept.body);
  }

  /** Sends pieces, compressed with a coding. A piece is consumed before the next one is read. */
  async stream(
    exchange: Exchange,
    pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
    coding: Coding | undefined,
  ): Promise<void> {
    const { response } = exchange;
    const send = createSender(response);
    const sendAll = async (chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> => {
      for await (const chunk of chunks) {
        if (!(await send(chunk))) return;
        exchange.bytes += chunk.length;
      }
      response.end();
    };
    if (coding === undefined) return await sendAll(pieces);
    this.#compressors++;
    try {
      await sendAll(compressPieces(pieces, coding));
    } finally {
      this.#compressors--;
    }
  }
}
