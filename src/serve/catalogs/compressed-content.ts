import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CancelledError, OpmateError } from '../../core/errors.js';
import type { ContentFile } from './content-file.js';

/** Compressed content, created once for all readers, which may follow while it grows. */
export type CompressedContent = ReturnType<typeof compressContent>;

/** Compresses pieces into a file, which `close` closes. */
export function compressContent(pieces: AsyncIterable<Buffer>, compressor: Transform, file: ContentFile) {
  const waiting = new Set<() => void>();
  let length = 0;
  let state: 'growing' | 'whole' | 'broken' = 'growing';
  let isClosed = false;

  function wake(): void {
    const woken = [...waiting];
    waiting.clear();
    for (const resolve of woken) resolve();
  }

  async function write(): Promise<void> {
    try {
      await pipeline(pieces, compressor, async (compressed: AsyncIterable<Buffer>) => {
        for await (const piece of compressed) {
          if (isClosed) throw new CancelledError('closed');
          await file.append(piece);
          length += piece.length;
          wake();
        }
      });
      state = 'whole';
    } catch {
      state = 'broken';
    }
    wake();
  }

  const written = write();
  return {
    /** Size in bytes; undefined while it grows. */
    get size() {
      return state === 'whole' ? length : undefined;
    },

    /** Writing has failed, for instance on a full disk. */
    get isBroken() {
      return state === 'broken';
    },

    /**
     * Resolves with the number of written bytes once it exceeds `known`, or with `known` at the end. Throws OpmateError IO
     * where writing fails.
     */
    async grownBeyond(known: number): Promise<number> {
      while (length <= known && state === 'growing') {
        await new Promise<void>((resolve) => waiting.add(resolve));
      }
      if (state === 'broken') throw new OpmateError('IO', 'cannot write the compressed catalog');
      return length;
    },

    /** Fills `target` from a position among the written bytes. */
    async read(target: Buffer, position: number): Promise<void> {
      const count = await file.read(target, position);
      if (count < target.length) throw new OpmateError('IO', 'truncated compressed catalog');
    },

    /** Stops writing and closes the file; readers must have finished. */
    async close(): Promise<void> {
      isClosed = true;
      await written;
      await file.close();
    },
  };
}
