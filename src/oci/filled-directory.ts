import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError, systemCode } from '../core/errors.js';
import { quoteGo } from '../core/go-json.js';
import { makeDirectory } from './make-directory.js';

/** Throws OpmateError unless a directory is absent or empty. */
export async function requireEmptyDirectory(directory: string): Promise<void> {
  requireName(directory);
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw fileError(`output dir ${quoteGo(directory)}`, error);
  }
  if (names.length > 0) throw notEmpty(directory);
}

/** To the file system an empty name is a file that does not exist, to path.resolve the working directory. */
function requireName(directory: string): void {
  if (directory === '') throw new OpmateError('NOT_FOUND', 'output dir "": no such file or directory');
}

function notEmpty(directory: string): OpmateError {
  return new OpmateError('INVALID', `output dir ${quoteGo(directory)} must be empty`, {
    hint: 'give a directory that does not exist yet',
  });
}

/**
 * Fills a directory that is absent or empty with what `write` puts into the one that it is given: all of it appears
 * when the last is complete; a failure leaves nothing. With `isShared` the directory may hold other things, as long
 * as no name at its top is taken. Throws OpmateError, and what `write` throws.
 */
export async function fillDirectory(
  directory: string,
  write: (staging: string) => Promise<void>,
  { isShared = false } = {},
): Promise<void> {
  if (isShared) requireName(directory);
  else await requireEmptyDirectory(directory);
  const target = path.resolve(directory);
  const token = `opmate-${randomBytes(6).toString('hex')}`;
  // What exists may be a mount point or somebody's working directory: it is filled, not replaced.
  const exists = await pathExists(target);
  const staging = exists ? path.join(target, `.${token}`) : `${target}.${token}`;
  try {
    await makeDirectory(staging);
    await write(staging);
    if (exists) await moveEntries(staging, target, isShared);
    else await rename(staging, target);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    if (error instanceof OpmateError) throw error;
    // Somebody else was faster.
    if (systemCode(error) === 'ENOTEMPTY' || systemCode(error) === 'EEXIST') throw notEmpty(directory);
    throw fileError(`output dir ${quoteGo(directory)}`, error);
  }
}

/** Moves what was written up into its place; takes back what it has moved when that fails. */
async function moveEntries(staging: string, target: string, isShared: boolean): Promise<void> {
  const there = new Set(await readdir(target));
  if (!isShared && there.size > 1) throw notEmpty(target);
  const taken = (await readdir(staging)).find((name) => there.has(name));
  if (taken !== undefined) {
    throw new OpmateError('INVALID', `output dir ${quoteGo(target)}: ${quoteGo(taken)} is there already`, {
      hint: 'give a directory that does not exist yet',
    });
  }
  const moved: string[] = [];
  try {
    for (const name of await readdir(staging)) {
      await rename(path.join(staging, name), path.join(target, name));
      moved.push(path.join(target, name));
    }
    await rm(staging, { recursive: true, force: true });
  } catch (error) {
    for (const entry of moved) await rm(entry, { recursive: true, force: true });
    throw error;
  }
}

async function pathExists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined)) !== undefined;
}
