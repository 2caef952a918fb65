import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { systemCode } from '../core/errors.js';
import { makeDirectory } from './make-directory.js';
import { stagingBeside, stagingName } from './staging.js';

/**
 * Gives a finished file, or a directory where there is none or an empty one, its place on the same file system, in one
 * step; makes the directory above it, with `mode`, if missing. Throws the error of the system.
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

/** Moves a finished directory to its place; a directory or file that is there is removed. Throws the error of the system. */
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
 * Removes a file or directory in one step, so that nobody finds half of it; returns false if missing. It goes
 * by way of `aside`, a directory that is swept, or the one that it is in. Throws the error of the system.
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
