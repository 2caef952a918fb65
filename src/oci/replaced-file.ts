import { randomBytes } from 'node:crypto';
import { lstat, realpath, rename, rm, stat } from 'node:fs/promises';
import { OpmateError, fileError } from '../core/errors.js';
import { type FileContent, writeNewFile } from './write-new-file.js';

/**
 * The name under which a finished file has to be moved to take the place of `file`: where a link of that name
 * leads to, else `file` itself. A device, pipe or socket is never replaced: `/dev/null` would be gone for
 * everybody. Throws OpmateError INVALID for these, NOT_FOUND for a link to nothing, IO for a directory.
 */
export async function replacedFile(file: string): Promise<string> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) {
    if ((await lstat(file).catch(() => undefined)) === undefined) return file;
    throw new OpmateError('NOT_FOUND', `${file}: a link to a file that does not exist`, { file });
  }
  if (found.isDirectory()) throw new OpmateError('IO', `${file}: is a directory`, { file });
  if (!found.isFile()) {
    throw new OpmateError('INVALID', `${file}: is not a file`, { file, hint: 'name a file to be written' });
  }
  return realpath(file).catch((error: unknown) => {
    throw fileError(file, error, { file });
  });
}

/**
 * Writes a file whole, in the place of what has that name. Throws what `replacedFile` throws, what `content` throws, and
 * OpmateError IO.
 */
export async function replaceFile(file: string, content: FileContent): Promise<void> {
  const target = await replacedFile(file);
  const staging = `${target}.opmate-${randomBytes(6).toString('hex')}`;
  try {
    await writeNewFile(staging, content);
    await rename(staging, target);
  } catch (error) {
    await rm(staging, { force: true }).catch(() => undefined);
    throw fileError(file, error, { file });
  }
}
