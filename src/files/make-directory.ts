import { mkdir, open, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { systemCode } from '../core/errors.js';
import { statIfPresent } from './file-status.js';

/**
 * Creates a directory and its missing parents. Node.js's own `recursive` reports a full disk as ENOENT, and never
 * ends if the parent exists and ENOENT is still returned, as in /proc. Throws system errors, ENOTDIR or EEXIST if a
 * file is in the way.
 */
export async function makeDirectory(directory: string, mode?: number): Promise<void> {
  try {
    await makeOne(directory, mode);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || path.dirname(directory) === directory) throw error;
    await makeDirectory(path.dirname(directory), mode);
    await makeOne(directory, mode);
  }
}

async function makeOne(directory: string, mode: number | undefined): Promise<void> {
  try {
    await mkdir(directory, mode === undefined ? {} : { mode });
  } catch (error) {
    const stats = await stat(directory).catch(() => undefined);
    if (!stats?.isDirectory()) throw error;
  }
}

/** Returns the directories that creating `directory` would create, topmost first. Throws system errors. */
export async function missingDirectories(directory: string): Promise<string[]> {
  const missing: string[] = [];
  for (
    let where = path.resolve(directory);
    (await statIfPresent(where)) === undefined;
    where = path.dirname(where)
  ) {
    missing.unshift(where);
    if (path.dirname(where) === where) break;
  }
  return missing;
}

/** Removes empty directories, last first. Never throws; other directories stay. */
export async function removeEmptyDirectories(directories: readonly string[]): Promise<void> {
  for (const directory of [...directories].reverse()) await rmdir(directory).catch(() => undefined);
}

/** Syncs a directory to disk, if the file system can. Never throws. */
export async function syncDirectory(directory: string): Promise<void> {
  try {
    const handle = await open(directory, 'r');
    await handle.sync().finally(() => handle.close());
  } catch {
    // Not every file system can do this for directories; the files themselves are on disk.
  }
}
