import { randomBytes } from 'node:crypto';
import { chmod, copyFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { fileError, throwIfCancelled } from '../../core/errors.js';
import { makeDirectory } from '../../files/make-directory.js';
import { replacedFile } from '../../files/replace-file.js';
import { writeNewFile } from '../../files/write-new-file.js';

/** A file to write, with its text or what it is a copy of. */
export type OutputFile = { target: string } & ({ text: string } | { copyOf: string; mode: number });

/**
 * Writes files, and the directories that they need: all of them are complete before the first appears, and a failure
 * until then leaves nothing. What has their names is replaced. Throws OpmateError IO, CANCELLED, and what
 * `replacedFile` throws.
 */
export async function writeFiles(
  files: readonly OutputFile[],
  { signal }: CancelOptions = {},
): Promise<void> {
  const mark = `.opmate-${randomBytes(6).toString('hex')}`;
  const staged: { staging: string; target: string }[] = [];
  const newDirectories: string[] = [];
  let subject = '';
  try {
    for (const file of files) {
      throwIfCancelled(signal);
      subject = file.target;
      await makeDirectories(path.dirname(file.target), newDirectories);
      const target = await replacedFile(file.target);
      const staging = target + mark;
      staged.push({ staging, target });
      if ('text' in file) await writeNewFile(staging, file.text);
      else {
        await copyFile(file.copyOf, staging);
        await chmod(staging, file.mode & 0o777);
      }
    }
    throwIfCancelled(signal);
    for (const { staging, target } of staged) {
      subject = target;
      await rename(staging, target);
    }
  } catch (error) {
    for (const { staging } of staged) await rm(staging, { force: true }).catch(() => undefined);
    for (const directory of newDirectories.reverse())
      await rm(directory, { recursive: true, force: true }).catch(() => undefined);
    throw fileError(subject, error, { file: subject });
  }
}

/** Makes a directory, and adds the topmost one that was not there to `made`. */
async function makeDirectories(directory: string, made: string[]): Promise<void> {
  let missing: string | undefined;
  for (let at = directory; ; at = path.dirname(at)) {
    if ((await stat(at).catch(() => undefined)) !== undefined || path.dirname(at) === at) break;
    missing = at;
  }
  if (missing === undefined) return;
  made.push(missing);
  await makeDirectory(directory);
}
