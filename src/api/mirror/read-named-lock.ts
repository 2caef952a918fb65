import { stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError } from '../../core/errors.js';
import { type ImageSetLock, lockName } from '../../mirror/lock/lock.js';
import { parseLock, readLock } from '../../mirror/lock/parse-lock.js';
import { archiveIndexName, readArchiveIndex } from '../../oci/archive-set/archive-index.js';
import type { Session } from '../../source/session.js';

/**
 * Reads the lock that a path names: a lock file, an archive by its directory or index, or a directory with
 * `working-dir`; `file://` may stand before it. Throws OpmateError.
 */
export async function readNamedLock(
  text: string,
  { workingDirectory }: Pick<Session, 'workingDirectory'>,
): Promise<ImageSetLock> {
  const shown = text.startsWith('file://') ? text.slice('file://'.length) : text;
  const place = path.resolve(workingDirectory, shown);
  if (path.basename(place) === archiveIndexName) return readArchivedLock(place, shown);
  const kind = await findKind(place);
  if (kind === undefined)
    throw new OpmateError('NOT_FOUND', `open ${shown}: no such file or directory`, { file: shown });
  if (kind === 'file') return readLock(place, shown);
  if ((await findKind(path.join(place, archiveIndexName))) !== undefined)
    return readArchivedLock(place, shown);
  for (const name of [path.join('working-dir', lockName), lockName]) {
    if ((await findKind(path.join(place, name))) !== undefined)
      return readLock(path.join(place, name), path.join(shown, name));
  }
  throw new OpmateError('NOT_FOUND', `${shown}: no archive or lock found`, {
    file: shown,
    hint: `specify a lock file, or a directory with ${archiveIndexName} or ${path.join('working-dir', lockName)}`,
  });
}

async function readArchivedLock(place: string, shown: string): Promise<ImageSetLock> {
  return parseLock((await readArchiveIndex(place)).lock, `${shown}: the lock of the archive`);
}

async function findKind(place: string): Promise<'file' | 'directory' | undefined> {
  try {
    return (await stat(place)).isDirectory() ? 'directory' : 'file';
  } catch (error) {
    const failure = fileError(`open ${place}`, error);
    if (failure.code === 'NOT_FOUND') return undefined;
    throw failure;
  }
}
