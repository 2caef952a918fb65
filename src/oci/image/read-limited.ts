import { Readable } from 'node:stream';
import { LimitError } from '../../core/errors.js';

/** Reads a stream whole. Throws LimitError, naming `what`, and destroys the stream if it is longer than `limit`. */
export async function readLimited(
  stream: AsyncIterable<unknown>,
  limit: number,
  what: string,
): Promise<Buffer> {
  if (stream instanceof MemoryStream && stream.bytes.length <= limit) return stream.bytes;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw new LimitError(`${what} is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size);
}

/** A stream of content in memory; taking `bytes` costs less than reading it. */
export class MemoryStream extends Readable {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    super();
    this.bytes = bytes;
  }

  override _read(): void {
    if (this.bytes.length > 0) this.push(this.bytes);
    this.push(null);
  }
}
