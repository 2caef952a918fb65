import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { readLockOfArchive } from '../../mirror/lock/lock-status.js';
import { type ImageSetLock, lockName } from '../../mirror/lock/lock.js';
import { readLock } from '../../mirror/lock/parse-lock.js';
import type { Session } from '../../source/session.js';
import { parseDestination } from './destination.js';
import { readNamedLock } from './read-named-lock.js';

/** Lock of a mirror. */
export interface FoundLock {
  lock: ImageSetLock;
  /** Path of its file, or `embedded in the archive`. */
  name: string;
}

/** Places of a lock, relative to the working directory. */
export interface FindLockOptions {
  /** Lock file. */
  lock?: string | undefined;
  /** Directory of `working-dir`; default the archive, of a registry the working directory. */
  workspace?: string | undefined;
}

/**
 * Finds the lock that was mirrored to a destination, in order of precedence: the lock file, the lock of an unfinished
 * archive, of the workspace, of a finished archive. Throws OpmateError NOT_FOUND.
 */
export async function findMirrorLock(
  destination: string,
  session: Session,
  options: FindLockOptions = {},
): Promise<FoundLock> {
  const { workingDirectory, signal } = session;
  if (options.lock !== undefined) {
    return { lock: await readNamedLock(options.lock, session), name: options.lock };
  }
  const place = parseDestination(destination, session);
  const defaultWorkspace = place.kind === 'disk' ? place.directory : '.';
  const workspace = path.resolve(workingDirectory, options.workspace ?? defaultWorkspace);
  const file = path.join(workspace, 'working-dir', lockName);
  const shown = path.relative(workingDirectory, file);
  const readArchived = (unfinished: boolean) =>
    place.kind === 'disk' ? readLockOfArchive(place.directory, { unfinished, signal }) : undefined;
  const unfinished = await readArchived(true);
  if (unfinished !== undefined) return { lock: unfinished, name: 'embedded in the unfinished archive' };
  try {
    return { lock: await readLock(file, shown), name: shown };
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
    const finished = await readArchived(false);
    if (finished !== undefined) return { lock: finished, name: 'embedded in the archive' };
    throw new OpmateError('NOT_FOUND', `${shown}: lock not found`, {
      file: shown,
      hint: 'use --lock with a lock file or the directory of an archive, or --workspace with that of the run',
      cause: error,
    });
  }
}
