import { CompressedReplies, maxKeptReplyBytes } from './compressed-replies.js';
import { BufferPool } from './content-stream.js';
import {
  type Coding,
  compressPieces,
  createSender,
  minCompressedBytes,
  negotiateCoding,
} from './encoding.js';
import type { Exchange } from './exchange.js';

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
