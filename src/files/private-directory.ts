import { stat } from 'node:fs/promises';
import path from 'node:path';
import { getuid } from 'node:process';
import { makeDirectory } from './make-directory.js';
import { replaceFile } from './replace-file.js';

/** Write permission for group or others. */
const othersMayWrite = 0o022;

/**
 * Returns the problem of a directory that other users may change; undefined if it is private or missing. Write access
 * to a cache controls what is read from it. Directories of the superuser are trusted; systems without users have no
 * rule.
 */
export async function findSharingProblem(directory: string, user = getuid?.()): Promise<string | undefined> {
  if (user === undefined) return undefined;
  const stats = await stat(directory).catch(() => undefined);
  if (stats === undefined) return undefined;
  if (stats.uid !== user && stats.uid !== 0) return `owned by another user (${stats.uid})`;
  if ((stats.mode & othersMayWrite) !== 0)
    return `writable by other users (mode ${(stats.mode & 0o7777).toString(8).padStart(4, '0')})`;
  return undefined;
}

/** Replaces a file in a directory that only this user can read; creates a missing one. Throws OpmateError. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  await makeDirectory(path.dirname(file), 0o700);
  await replaceFile(file, text);
}
