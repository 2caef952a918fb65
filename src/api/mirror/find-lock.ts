import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import { Workspace } from '../../mirror/image-set/workspace.js';
import { planOf } from '../../mirror/lock/encode-lock.js';
import { readLockOfArchive } from '../../mirror/lock/lock-status.js';
import { type LockDiff, diffLocks, isSameSet } from '../../mirror/lock/lock-diff.js';
import { type ImageSetLock, lockName } from '../../mirror/lock/lock.js';
import { parseLock, readLock } from '../../mirror/lock/parse-lock.js';
import { archiveIndexName, readArchiveIndex } from '../../oci/archive-set/archive-index.js';
import type { Session } from '../../source/session.js';
import { parseDestination } from './destination.js';

/** Lock of a mirror. */
export interface FoundLock {
  lock: ImageSetLock;
  /** Path of its file, or `embedded in the archive`. */
  name: string;
  /** ID of its plan. */
  plan: string;
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
    return toFound(await readNamedLock(options.lock, session), options.lock);
  }
  const place = parseDestination(destination, session);
  const defaultWorkspace = place.kind === 'disk' ? place.directory : '.';
  const workspace = new Workspace(workingDirectory, options.workspace ?? defaultWorkspace);
  const { shownLock: shown } = workspace;
  const readArchived = (unfinished: boolean) =>
    place.kind === 'disk' ? readLockOfArchive(place.directory, { unfinished, signal }) : undefined;
  const unfinished = await readArchived(true);
  if (unfinished !== undefined) return toFound(unfinished, 'embedded in the unfinished archive');
  try {
    return toFound(await workspace.readLock(), shown);
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
    const finished = await readArchived(false);
    if (finished !== undefined) return toFound(finished, 'embedded in the archive');
    throw new OpmateError('NOT_FOUND', `${shown}: lock not found`, {
      file: shown,
      hint: 'use mirror.lockFile with a lock file or the directory of an archive, or mirror.workspace with that of the run',
      cause: error,
    });
  }
}

function toFound(lock: ImageSetLock, name: string): FoundLock {
  return { lock, name, plan: planOf(lock) };
}

/** Returns the path of the lock that the last run of a workspace wrote, relative to the working directory. */
export function nameWorkspaceLock(
  workspace: string | undefined,
  { workingDirectory }: Pick<Session, 'workingDirectory'>,
): string {
  return new Workspace(workingDirectory, workspace ?? '.').shownLock;
}

/**
 * Returns the path of the lock of a workspace, relative to the working directory; undefined if it has none, or if its last
 * run had another destination.
 */
export async function findWorkspaceLock(
  destination: string,
  session: Session,
  { lock, workspace = '.' }: FindLockOptions,
): Promise<string | undefined> {
  const place = new Workspace(session.workingDirectory, workspace, lock);
  if ((await statIfPresent(path.resolve(session.workingDirectory, place.shownLock))) === undefined)
    return undefined;
  const [last] = await place.readImageSetRuns();
  if (last === undefined) return place.shownLock;
  const { target } = parseDestination(destination, session);
  const { target: mirrored } = parseDestination(last.started.destination, session);
  const isSame = target.registry === mirrored.registry && target.path === mirrored.path;
  return isSame ? place.shownLock : undefined;
}

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
  const stats = await statIfPresent(place);
  if (stats === undefined) throw new OpmateError('NOT_FOUND', 'no such file or directory', { about: shown });
  if (!stats.isDirectory()) return readLock(place, shown);
  if ((await statIfPresent(path.join(place, archiveIndexName))) !== undefined)
    return readArchivedLock(place, shown);
  for (const name of [path.join('working-dir', lockName), lockName]) {
    if ((await statIfPresent(path.join(place, name))) !== undefined)
      return readLock(path.join(place, name), path.join(shown, name));
  }
  throw new OpmateError('NOT_FOUND', `${shown}: no archive or lock found`, {
    file: shown,
    hint: `specify a lock file, or a directory with ${archiveIndexName} or ${path.join('working-dir', lockName)}`,
  });
}

async function readArchivedLock(place: string, shown: string): Promise<ImageSetLock> {
  return parseLock((await readArchiveIndex(place)).lock, `${shown}: the lock of the archive`, 'reference');
}

/** Differences of two locks. */
export interface ComparedLocks {
  diff: LockDiff;
  /** True if both mirror the same content. */
  isSame: boolean;
}

/** Compares two locks, each named as for `readNamedLock`. Throws OpmateError. */
export async function diffNamedLocks(
  from: string,
  to: string,
  session: Pick<Session, 'workingDirectory'>,
): Promise<ComparedLocks> {
  const before = await readNamedLock(from, session);
  const diff = diffLocks(before, await readNamedLock(to, session));
  return { diff, isSame: isSameSet(diff) };
}
