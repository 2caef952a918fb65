import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { systemCode } from '../core/errors.js';
import { makeDirectory } from './make-directory.js';
import { stagingBeside, stagingName } from './staging.js';

/**
 * Moves a finished file or directory to its final path on the same file system in one step; a directory only over a
 * missing or empty one. Creates the parent directory with `mode` if missing. Throws system errors.
 */
export async function moveWhole(from: string, to: string, mode?: number): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    await makeDirectory(path.dirname(to), mode);
    await rename(from, to);
  }
}

/** Moves a finished directory to its final path, replacing an existing file or directory. Throws system errors. */
export async function replaceDirectory(from: string, to: string): Promise<void> {
  try {
    await moveWhole(from, to);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? '')) throw error;
    const aside = stagingBeside(to);
    await rename(to, aside);
    try {
      await rename(from, to);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
  }
}

/**
 * Removes a file or directory in one step, so that it is never seen partly removed; returns false if missing. Moves
 * it to `aside`, a swept directory, or its own parent first. Throws system errors.
 */
export async function removeWhole(target: string, aside = path.dirname(target)): Promise<boolean> {
  const leftover = path.join(aside, stagingName());
  try {
    await rename(target, leftover);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
  await rm(leftover, { recursive: true, force: true });
  return true;
}
