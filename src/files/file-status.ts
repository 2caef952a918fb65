import type { BigIntStats, Stats } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { fileError, systemCode } from '../core/errors.js';

/**
 * Returns the status of a file, links followed; undefined if missing. Throws OpmateError for any other failure:
 * a directory that may not be searched is no proof that the path is free.
 */
export function statIfPresent(file: string): Promise<Stats | undefined> {
  return ifPresent(stat(file), file);
}

/** Returns the status of a file or link; otherwise as `statIfPresent`. */
export function lstatIfPresent(file: string): Promise<Stats | undefined> {
  return ifPresent(lstat(file), file);
}

/** What tells one file from another, and from itself before it was written to. */
type IdentityStats = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs'>;

/**
 * Returns a text that differs once a file is replaced or written to. What moving, linking and `chmod` change is left out.
 */
export function getFileIdentity({ dev, ino, size, mtimeNs }: IdentityStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}`;
}

/**
 * The same for who would rather read a file again than miss a change: also where a date was set back after writing, and so
 * after moving, linking and `chmod` too.
 */
export function getFileState(stats: IdentityStats & Pick<BigIntStats, 'ctimeNs'>): string {
  return `${getFileIdentity(stats)}:${stats.ctimeNs}`;
}

/** Returns the names in a directory; none if missing. Throws OpmateError for any other failure. */
export async function readdirIfPresent(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw fileError(`open ${directory}`, error, { file: directory });
  }
}

/** Whether an error of the system says that there is no file of a name. */
function isAbsence(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
}

async function ifPresent(status: Promise<Stats>, file: string): Promise<Stats | undefined> {
  try {
    return await status;
  } catch (error) {
    // No file system has a name that is too long for it.
    if (isAbsence(error) || systemCode(error) === 'ENAMETOOLONG') return undefined;
    throw fileError(`stat ${file}`, error, { file });
  }
}
