import type { BigIntStats, Stats } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { fileError, systemCode } from '../core/errors.js';

/**
 * Returns the status of a file, following links; undefined if missing. Throws OpmateError for other failures: an
 * unreadable directory does not prove that a path is free.
 */
export function statIfPresent(file: string): Promise<Stats | undefined> {
  return ifPresent(stat(file), file);
}

/** Returns the status of a file or link; otherwise like `statIfPresent`. */
export function lstatIfPresent(file: string): Promise<Stats | undefined> {
  return ifPresent(lstat(file), file);
}

/** Fields that identify a file and its content. */
type IdentityStats = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs'>;

/** Returns a text that changes when a file is replaced or written. Moving, linking and `chmod` do not change it. */
export function getFileIdentity({ dev, ino, size, mtimeNs }: IdentityStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}`;
}

/**
 * Returns a text that changes more often than that of `getFileIdentity`: also when a date is set back after writing,
 * and so after moving, linking and `chmod`. For callers that prefer rereading a file to missing a change.
 */
export function getFileState(stats: IdentityStats & Pick<BigIntStats, 'ctimeNs'>): string {
  return `${getFileIdentity(stats)}:${stats.ctimeNs}`;
}

/** Returns the names in a directory; none if missing. Throws OpmateError for other failures. */
export async function readdirIfPresent(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw fileError(`open ${directory}`, error, { file: directory });
  }
}

/** Reports whether a system error says that a file does not exist. */
function isAbsence(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
}

async function ifPresent(status: Promise<Stats>, file: string): Promise<Stats | undefined> {
  try {
    return await status;
  } catch (error) {
    // A name that is too long cannot exist.
    if (isAbsence(error) || systemCode(error) === 'ENAMETOOLONG') return undefined;
    throw fileError(`stat ${file}`, error, { file });
  }
}
