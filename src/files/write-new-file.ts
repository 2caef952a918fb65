import { withOpen } from '../core/concurrency.js';
import { open, rm } from 'node:fs/promises';

/** Text, or the pieces of a file. */
export type FileContent = string | Uint8Array | AsyncIterable<string | Uint8Array>;

/** Writes and syncs a new file; removes it if that fails. Throws system errors, and what `content` throws. */
export async function writeNewFile(
  file: string,
  content: FileContent,
  { mode = 0o666 }: { mode?: number | undefined } = {},
): Promise<void> {
  await withOpen(open(file, 'wx', mode), async (handle) => {
    try {
      if (typeof content === 'string' || content instanceof Uint8Array) await handle.writeFile(content);
      else for await (const piece of content) await handle.writeFile(piece);
      await handle.sync();
    } catch (error) {
      await rm(file, { force: true });
      throw error;
    }
  });
}
