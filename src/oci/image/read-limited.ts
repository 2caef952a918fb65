import { LimitError } from '../../core/errors.js';

/**
 * Reads a stream to its end. Throws LimitError, and gives the stream up, when it is longer than `limit`; `what`
 * names the content there.
 */
export async function readLimited(
  stream: AsyncIterable<unknown>,
  limit: number,
  what: string,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw new LimitError(`${what} is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
