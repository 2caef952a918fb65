import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, systemReason } from '../core/errors.js';
import { stagingName, sweepLeftovers, temporaryPrefix } from './staging.js';

/** A private directory; its creator calls `remove` after use. */
interface TemporaryDirectory {
  path: string;
  remove(): Promise<void>;
}

/** Creates a private directory below `parent`, and sweeps those of killed runs of this user. Throws OpmateError IO. */
export async function makeTemporaryDirectory(parent: string, now?: Date): Promise<TemporaryDirectory> {
  const directory = path.join(parent, stagingName(temporaryPrefix));
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    throw new OpmateError('IO', `cannot create a temporary directory: ${systemReason(error)}`, {
      subject: parent,
      cause: error,
      hint: 'set TMPDIR to a writable directory',
    });
  }
  await sweepLeftovers(parent, now);
  return { path: directory, remove: () => rm(directory, { recursive: true, force: true }) };
}

/** Parent of temporary directories, and the current time. */
export interface TemporaryPlace {
  temporaryDirectory: string;
  now: () => Date;
}

/** Runs `work` with the path of a private directory, which is removed afterwards. */
export async function withTemporaryDirectory<T>(
  place: TemporaryPlace,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  const temporary = await makeTemporaryDirectory(place.temporaryDirectory, place.now());
  try {
    return await work(temporary.path);
  } finally {
    await temporary.remove();
  }
}

/** Opens a resource that needs a private directory while open; closing it, or failing, removes the directory. */
export async function openInTemporaryDirectory<T extends { close(): Promise<void> }>(
  place: TemporaryPlace,
  openIn: (directory: string) => Promise<T>,
): Promise<T> {
  const temporary = await makeTemporaryDirectory(place.temporaryDirectory, place.now());
  try {
    const opened = await openIn(temporary.path);
    const close = async (): Promise<void> => {
      await opened.close();
      await temporary.remove();
    };
    return { ...opened, close };
  } catch (error) {
    await temporary.remove();
    throw error;
  }
}
