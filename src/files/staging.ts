import { randomBytes } from 'node:crypto';
import { lstat, open, readFile, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { geteuid } from 'node:process';
import { isRunning, ownProcess } from './process-identity.js';

/** Prefixes of the names of staged content and of temporary directories. */
const hiddenPrefix = '.opmate-';
export const temporaryPrefix = 'opmate-tmp-';
/** Longer than any run: age of leftovers whose processes cannot be checked. */
const orphanAgeMs = 7 * 24 * 60 * 60 * 1000;

/**
 * Name of the file that marks a directory as changing. It appears first and disappears last: while it exists, its
 * siblings may be inconsistent. It is JSON without a schema, so that tools that read all files of a catalog reject it
 * too.
 */
export const journalName = '.opmate-journal.json';
/** File in a staging directory with the name of the sibling directory that is being changed. */
export const changedName = 'changes';

const namePattern = /^(?:\.opmate-|opmate-tmp-)([0-9a-f]{8}-\d+-\d+)-[0-9a-f]{16}(?:-journal|-wal|-shm)?$/;

/**
 * Returns a new staging name, `.opmate-PROCESS-RANDOM`. It contains no other name, so it is never too long, and
 * identifies its process, so that the next run can sweep the leftovers of a killed one.
 */
export function stagingName(prefix = hiddenPrefix): string {
  return `${prefix}${ownProcess()}-${randomBytes(8).toString('hex')}`;
}

/** Returns a staging path in the directory of `target`: on the same file system. */
export function stagingBeside(target: string): string {
  return path.join(path.dirname(target), stagingName());
}

/** Reports whether `stagingName` made a file name. */
export function isStagingName(name: string): boolean {
  return namePattern.test(name);
}

/** Reports whether a file name belongs to a change of its directory: the journal, or staged content. */
export function isChangeName(name: string): boolean {
  return name === journalName || isStagingName(name);
}

/**
 * Removes what killed processes of this user left in a directory: immediately if the process is known to have ended,
 * otherwise, as those of other machines, containers or boots, after `maxAgeMs` without change, by default a week. Never
 * throws; what cannot be removed stays.
 */
export async function sweepLeftovers(
  directory: string,
  now: Date = new Date(),
  { maxAgeMs = orphanAgeMs }: { maxAgeMs?: number | undefined } = {},
): Promise<void> {
  const uid = geteuid?.();
  for (const name of await readdir(directory).catch(() => [])) {
    const isTemporary = name.startsWith(temporaryPrefix);
    if (!isTemporary && !isStagingName(name)) continue;
    const isAlive = isRunning(namePattern.exec(name)?.[1] ?? '');
    if (isAlive === true) continue;
    const leftover = path.join(directory, name);
    const stats = await lstat(leftover).catch(() => undefined);
    if (stats === undefined || (uid !== undefined && stats.uid !== uid)) continue;
    if (isTemporary && !stats.isDirectory()) continue;
    if (isAlive === undefined && now.getTime() - (await lastChange(leftover, stats)) < maxAgeMs) continue;
    if (await isNeeded(directory, leftover, stats.isDirectory())) continue;
    await rm(leftover, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Returns the last change in a leftover: the date of a directory does not change while a file in it grows. */
async function lastChange(leftover: string, { mtimeMs }: { mtimeMs: number }): Promise<number> {
  let last = mtimeMs;
  for (const name of await readdir(leftover).catch(() => [])) {
    const stats = await lstat(path.join(leftover, name)).catch(() => undefined);
    last = Math.max(last, stats?.mtimeMs ?? 0);
  }
  return last;
}

/** Reports whether a change with a journal needs a staging directory for its rollback. */
async function isNeeded(directory: string, leftover: string, isDirectory: boolean): Promise<boolean> {
  if (!isDirectory) return false;
  const names = ['.'];
  const changed = await readFile(path.join(leftover, changedName), 'utf8').catch(() => '');
  if (changed !== '' && path.basename(changed) === changed) names.push(changed);
  for (const name of names) {
    const stats = await lstat(path.join(directory, name, journalName)).catch(() => undefined);
    if (stats !== undefined) return true;
  }
  return false;
}

/**
 * Returns the current time of a directory's file system, in milliseconds as in `stat`: another machine may have dated
 * its files. Throws system errors.
 */
export async function readFileClock(directory: string): Promise<number> {
  const probe = path.join(directory, stagingName());
  await (await open(probe, 'wx')).close();
  try {
    return (await lstat(probe)).mtimeMs;
  } finally {
    await rm(probe, { force: true });
  }
}
