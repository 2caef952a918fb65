import { chmod, copyFile, link, lstat, open, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../core/concurrency.js';
import {
  OpmateError,
  fileError,
  throwFileError,
  systemCode,
  throwIfCancelled,
  writeError,
} from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { lstatIfPresent, statIfPresent } from './file-status.js';
import { makeDirectory, missingDirectories, removeEmptyDirectories } from './make-directory.js';
import { stagingBeside, sweepLeftovers } from './staging.js';
import { type FileContent, writeNewFile } from './write-new-file.js';

/** An output file, with its content or the source of a copy. */
export type OutputFile = { target: string } & ({ text: string } | { copyOf: string; mode: number });

/**
 * Returns the path to which a finished file is moved to replace `file`: the target of a link, otherwise `file`. A
 * device, pipe or socket is never replaced: `/dev/null` would disappear for all processes. Throws OpmateError INVALID for
 * these, NOT_FOUND for a dangling link, IO for a directory.
 */
export async function resolveReplacedFile(file: string): Promise<string> {
  try {
    const stats = await statIfPresent(file);
    if (stats === undefined) {
      if ((await lstatIfPresent(file)) === undefined) return file;
      throw new OpmateError('NOT_FOUND', 'a link to a file that does not exist', { about: file });
    }
    if (stats.isDirectory()) throw new OpmateError('IO', 'is a directory', { about: file });
    if (!stats.isFile()) {
      throw new OpmateError('INVALID', 'is not a file', {
        about: file,
        hint: 'specify a file',
      });
    }
    return await realpath(file);
  } catch (error) {
    throw fileError(file, error, { file });
  }
}

/** Requires the parent directory of an output file. Throws OpmateError NOT_FOUND or IO. */
export async function requireParentDirectory(file: string): Promise<void> {
  const directory = path.dirname(path.resolve(file));
  await stat(directory + path.sep).catch(
    throwFileError(`${file}: its directory ${quoteGo(path.dirname(file))}`, { file }),
  );
}

/**
 * Replaces a file with complete content. Throws as `resolveReplacedFile`, what `content` throws, and OpmateError IO.
 */
export async function replaceFile(
  file: string,
  content: FileContent,
  options: { mode?: number | undefined } = {},
): Promise<void> {
  await replaceFileBy(file, (staging) => writeNewFile(staging, content, options));
}

/**
 * Replaces a file with what `write` writes and syncs to the path it receives. Throws as `resolveReplacedFile`, what
 * `write` throws, and system errors as OpmateError.
 */
export async function replaceFileBy(file: string, write: (staging: string) => Promise<void>): Promise<void> {
  const target = await resolveReplacedFile(file);
  const staging = stagingBeside(target);
  await sweepLeftovers(path.dirname(target));
  try {
    await write(staging);
    await rename(staging, target);
  } catch (error) {
    await rm(staging, { force: true }).catch(() => undefined);
    throw writeError(file, error, { file });
  }
}

interface ReplaceOptions extends CancelOptions {
  /** Step after the files are in place, such as moving the directory of a report; its failure rolls the files back. */
  then?: (() => Promise<void>) | undefined;
}

/**
 * Writes files and their directories: all are complete before the first appears, and a failure rolls back. Existing
 * files are replaced. Throws OpmateError IO, CANCELLED, as `resolveReplacedFile`, and what `then` throws.
 */
export async function replaceFiles(
  files: readonly OutputFile[],
  { signal, then }: ReplaceOptions = {},
): Promise<void> {
  const staged: { staging: string; before: string; target: string; had: boolean; isMoved: boolean }[] = [];
  const made: string[] = [];
  let subject: string | undefined;
  try {
    for (const file of files) {
      throwIfCancelled(signal);
      subject = file.target;
      made.push(...(await missingDirectories(path.dirname(file.target))));
      await makeDirectory(path.dirname(file.target));
      const target = await resolveReplacedFile(file.target);
      await sweepLeftovers(path.dirname(target));
      const [staging, before] = [stagingBeside(target), stagingBeside(target)];
      const had = (await lstatIfPresent(target)) !== undefined;
      staged.push({ staging, before, target, had, isMoved: false });
      if ('text' in file) await writeNewFile(staging, file.text);
      else await copyNewFile(file.copyOf, staging, file.mode);
    }
    throwIfCancelled(signal);
    for (const item of staged) {
      subject = item.target;
      if (item.had) await keepBefore(item.target, item.before);
      await rename(item.staging, item.target);
      item.isMoved = true;
    }
    subject = undefined;
    await then?.();
  } catch (error) {
    for (const { before, target, had, isMoved } of staged.reverse()) {
      if (!isMoved) continue;
      await (had ? rename(before, target) : rm(target, { force: true })).catch(() => undefined);
    }
    throw subject === undefined ? error : writeError(subject, error, { file: subject });
  } finally {
    for (const { staging, before } of staged) {
      await rm(staging, { force: true }).catch(() => undefined);
      await rm(before, { force: true }).catch(() => undefined);
    }
    await removeEmptyDirectories(made);
  }
}

async function keepBefore(file: string, before: string): Promise<void> {
  try {
    await link(file, before);
  } catch (error) {
    if (!isWithoutLinks(error)) throw error;
    await copyNewFile(file, before, (await stat(file)).mode);
  }
}

/** Copies a file to a new name with a mode, and syncs it. Throws system errors. */
async function copyNewFile(from: string, to: string, mode: number): Promise<void> {
  await copyFile(from, to);
  await chmod(to, mode & 0o777);
  const handle = await open(to, 'r');
  await handle.sync().finally(() => handle.close());
}

/** Error codes of file systems without hard links, and of files at their maximum of links. */
const noLinks = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK']);

/** Reports whether an error says that the file system cannot link a file that might still be copied or moved. */
export function isWithoutLinks(error: unknown): boolean {
  return noLinks.has(systemCode(error) ?? '');
}

/**
 * Moves a finished file to its name; throws the system's EEXIST if the name exists. The staging name is gone afterwards,
 * or left for the caller to remove.
 */
export async function publishNewFile(staging: string, file: string): Promise<void> {
  try {
    await link(staging, file);
  } catch (error) {
    if (!isWithoutLinks(error)) throw error;
    await (await open(file, 'wx')).close();
    const claimed = await lstat(file);
    await rename(staging, file).catch(async (failure: unknown) => {
      if ((await lstat(file).catch(() => undefined))?.ino === claimed.ino) await rm(file, { force: true });
      throw failure;
    });
  }
}
