import { Readable } from 'node:stream';
import type { Section } from '../../src/serve/catalogs/content-index.js';
import type { StoredContent } from '../../src/serve/catalogs/stored-content.js';

const pieceBytes = 256 * 1024;

/** Streams a section of stored content, by default everything, with a reader that is opened at once. */
export function streamContent(
  content: StoredContent,
  { offset, length }: Section = { offset: 0, length: content.size },
): Readable {
  const reader = content.openReader();
  async function* readPieces(): AsyncGenerator<Buffer> {
    try {
      for (let done = 0; done < length; done += pieceBytes) {
        const piece = Buffer.alloc(Math.min(pieceBytes, length - done));
        await reader.read(piece, offset + done);
        yield piece;
      }
    } finally {
      reader.close();
    }
  }
  return Readable.from(readPieces(), { objectMode: false });
}
