import type { Stats } from 'node:fs';
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
