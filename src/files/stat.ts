import type { Stats } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { fileError, systemCode } from '../core/errors.js';

/** Codes of paths that name nothing: also those below a file, and those too long for any file system. */
const absent: readonly string[] = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'];

/**
 * Returns what a path names, links followed; undefined where it names nothing. Throws OpmateError for any other
 * failure: a directory that may not be searched is no proof that the path is free.
 */
export function statIfExists(file: string): Promise<Stats | undefined> {
  return ifExists(stat(file), file);
}

/** Returns what a path names, be it a link; otherwise as `statIfExists`. */
export function lstatIfExists(file: string): Promise<Stats | undefined> {
  return ifExists(lstat(file), file);
}

async function ifExists(found: Promise<Stats>, file: string): Promise<Stats | undefined> {
  try {
    return await found;
  } catch (error) {
    if (absent.includes(systemCode(error) ?? '')) return undefined;
    throw fileError(`stat ${file}`, error);
  }
}
