import { withOpen } from '../core/concurrency.js';
import { constants } from 'node:fs';
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

/** Appends lines to a file, which is created, and never through a link; they start on a line of their own. Throws system errors. */
export async function appendLines(file: string, lines: readonly string[]): Promise<void> {
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  await withOpen(open(file, flags, 0o644), async (handle) => {
    const { size } = await handle.stat();
    const last = Buffer.alloc(1);
    if (size > 0) await handle.read(last, 0, 1, size - 1);
    // A killed writer leaves a line without end.
    const isTorn = size > 0 && last[0] !== 0x0a;
    await handle.appendFile(`${isTorn ? '\n' : ''}${lines.map((line) => `${line}\n`).join('')}`);
    await handle.sync();
  });
}
