import { readdir, realpath, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError, systemCode } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { changeDirectory } from './change-directory.js';
import { statIfPresent } from './file-status.js';
import { recoverDirectory } from './journal.js';
import { makeDirectory, missingDirectories, removeEmptyDirectories } from './make-directory.js';
import { isChangeName, stagingBeside, sweepLeftovers } from './staging.js';

/** Requires that a directory is missing or empty, after removing what a killed run left in it. Throws OpmateError. */
export async function requireEmptyDirectory(directory: string): Promise<void> {
  requireName(directory);
  try {
    if ((await readNames(directory)).length === 0) return;
    await recoverDirectory(await realpath(directory));
    if ((await readNames(directory)).length > 0) throw notEmpty(directory);
  } catch (error) {
    throw fileError(`output dir ${quoteGo(directory)}`, error);
  }
}

async function readNames(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
}

/** An empty name does not exist for the file system, but is the working directory for path.resolve. */
function requireName(directory: string): void {
  if (directory === '') throw new OpmateError('NOT_FOUND', 'output dir "": no such file or directory');
}

function notEmpty(directory: string): OpmateError {
  return new OpmateError('INVALID', `output dir ${quoteGo(directory)} must be empty`, {
    hint: 'specify a directory that does not exist yet',
  });
}

/**
 * Fills a missing or empty directory with what `write` writes to its argument: everything appears when it is
 * complete; a failure leaves nothing. An existing directory may be a mount point or a working directory: it is filled
 * in place, with a journal until it is complete, so that it is not read as a catalog before. With `isShared` it may
 * hold other entries, but none of the same names. Throws OpmateError, and what `write` throws.
 */
export async function fillDirectory(
  directory: string,
  write: (staging: string) => Promise<void>,
  { isShared = false } = {},
): Promise<void> {
  if (isShared) requireName(directory);
  else await requireEmptyDirectory(directory);
  const target = path.resolve(directory);
  const subject = `output dir ${quoteGo(directory)}`;
  try {
    if ((await statIfPresent(target)) === undefined) await makeFilled(target, write);
    else await fillExisting(target, directory, write, isShared);
  } catch (error) {
    // Another process created it first.
    if (systemCode(error) === 'ENOTEMPTY' || systemCode(error) === 'EEXIST') throw notEmpty(directory);
    throw fileError(subject, error);
  }
}

async function makeFilled(target: string, write: (staging: string) => Promise<void>): Promise<void> {
  const staging = stagingBeside(target);
  const made = await missingDirectories(path.dirname(target));
  try {
    await makeDirectory(staging);
    await sweepLeftovers(path.dirname(target));
    await write(staging);
    await rename(staging, target);
  } catch (error) {
    await rm(staging, { recursive: true, force: true }).catch(() => undefined);
    await removeEmptyDirectories(made);
    throw error;
  }
}

async function fillExisting(
  target: string,
  directory: string,
  write: (staging: string) => Promise<void>,
  isShared: boolean,
): Promise<void> {
  await changeDirectory(target, { filling: !isShared, subject: directory }, async ({ staging, add }) => {
    await write(staging);
    const there = new Set((await readdir(target)).filter((name) => !isChangeName(name)));
    const names = await readdir(staging);
    if (!isShared && there.size > 0) throw notEmpty(directory);
    const taken = names.find((name) => there.has(name));
    if (taken !== undefined) {
      throw new OpmateError('INVALID', `output dir ${quoteGo(target)}: ${quoteGo(taken)} already exists`, {
        hint: 'specify a directory that does not exist yet',
      });
    }
    for (const name of names) add(path.join(staging, name), name);
  });
}
