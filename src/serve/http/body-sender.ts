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

/** Responses that are compressed at once, at a quarter of a megabyte each; those beyond it are sent as they are. */
const maxCompressors = 200;

interface SentPieces {
  key: readonly string[];
  /** Bytes of all pieces, or about so many. */
  size: number;
  coding: Coding | undefined;
  readPieces: () => AsyncGenerator<Buffer, void, undefined>;
}

/** Sends bodies, compressed where clients want it, within bounds of memory that all requests share. */
export class BodySender {
  readonly pool = new BufferPool();
  readonly #replies = new CompressedReplies();
  #compressors = 0;

  /** Returns the coding of a body of `size` bytes for the client of a request; undefined for none. */
  codingFor({ method, request }: Exchange, size: number): Coding | undefined {
    if (method === 'HEAD' || size < minCompressedBytes || this.#compressors >= maxCompressors)
      return undefined;
    const header = request.headers['accept-encoding'];
    return negotiateCoding(Array.isArray(header) ? header.join(',') : header);
  }

  /** Sends what `readPieces` reads, which is the same for the same key: compressed where a coding is given, and kept so. */
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

  /** Sends pieces, compressed where a coding is given. A piece is done with before the next one is asked for. */
  async stream(
    exchange: Exchange,
    pieces: AsyncGenerator<Buffer, void, undefined>,
    coding: Coding | undefined,
  ): Promise<void> {
    const { response } = exchange;
    const send = createSender(response);
    const sendAll = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
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
