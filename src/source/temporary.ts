import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, messageOf, systemCode } from '../core/errors.js';

const prefix = 'opmate-tmp-';
const orphanAge = 24 * 60 * 60 * 1000;

/** A directory that is there until its owner calls `remove`. */
export interface TemporaryDirectory {
  path: string;
  remove(): Promise<void>;
}

/**
 * Makes a private directory below `parent`. Directories of this kind that were last changed more than a day
 * before `now` are taken for those of runs that were killed, and removed. Throws OpmateError IO.
 */
export async function makeTemporaryDirectory(parent: string, now: Date): Promise<TemporaryDirectory> {
  const directory = path.join(parent, `${prefix}${randomBytes(8).toString('hex')}`);
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    const reason = systemCode(error) === 'ENOSPC' ? 'no space left on device' : messageOf(error);
    throw new OpmateError('IO', `${parent}: cannot make a temporary directory: ${reason}`, {
      cause: error,
      hint: 'set TMPDIR to a directory that can be written to',
    });
  }
  await sweepOrphans(parent, now);
  return { path: directory, remove: () => rm(directory, { recursive: true, force: true }) };
}

async function sweepOrphans(parent: string, now: Date): Promise<void> {
  const names = await readdir(parent).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix)) continue;
    const directory = path.join(parent, name);
    const found = await stat(directory).catch(() => undefined);
    if (found === undefined || now.getTime() - found.mtimeMs < orphanAge) continue;
    await rm(directory, { recursive: true, force: true }).catch(() => undefined);
  }
}
