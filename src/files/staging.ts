import { randomBytes } from 'node:crypto';
import { lstat, open, readFile, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { geteuid } from 'node:process';
import { formatProcess, isRunning, ownProcess, parseProcess } from './process-identity.js';

/** Names of what is being written begin with this; names of temporary directories with the other. */
const hiddenPrefix = '.opmate-';
export const temporaryPrefix = 'opmate-tmp-';
/** Longer than any run takes: age of leftovers of processes that cannot be asked for. */
const orphanAgeMs = 7 * 24 * 60 * 60 * 1000;

/**
 * Name of the file that says that a directory is being changed. It is the first that appears and the last that goes:
 * while it is there, what is beside it may be a mixture. It is JSON without a schema, so that tools that read every
 * file of a catalog refuse it too.
 */
export const journalName = '.opmate-journal.json';
/** In a staging directory: the name of the directory beside it that is being changed. */
export const changedName = 'changes';

const namePattern = /^(?:\.opmate-|opmate-tmp-)([0-9a-f]{8}-\d+-\d+)-[0-9a-f]{16}(?:-journal|-wal|-shm)?$/;

/**
 * Returns a new name for what is being written: `.opmate-PROCESS-RANDOM`. It depends on no other name, so it is never
 * too long, and it tells which process writes there, so that the next run can sweep what a killed one left.
 */
export function stagingName(prefix = hiddenPrefix): string {
  return `${prefix}${formatProcess(ownProcess())}-${randomBytes(8).toString('hex')}`;
}

/** Returns a staging path in the directory of `target`: on the same file system. */
export function stagingBeside(target: string): string {
  return path.join(path.dirname(target), stagingName());
}

/** Whether a file name is one that `stagingName` makes. */
export function isStagingName(name: string): boolean {
  return namePattern.test(name);
}

interface SweepOptions {
  /** Age from which what another machine, container or start of the system has left is removed; a week by default. */
  maxAgeMs?: number | undefined;
}

/**
 * Removes what killed processes of this user left in a directory: at once where the process is known to be gone, else
 * when nothing has changed in it for a week. Never throws: what cannot be removed stays.
 */
export async function sweepLeftovers(
  directory: string,
  now: Date = new Date(),
  { maxAgeMs = orphanAgeMs }: SweepOptions = {},
): Promise<void> {
  const uid = geteuid?.();
  for (const name of await readdir(directory).catch(() => [])) {
    const isTemporary = name.startsWith(temporaryPrefix);
    if (!isTemporary && !isStagingName(name)) continue;
    const writer = parseProcess(namePattern.exec(name)?.[1] ?? '');
    const isAlive = writer === undefined ? undefined : isRunning(writer);
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

/** The date of a directory does not change while a file in it grows. */
async function lastChange(leftover: string, { mtimeMs }: { mtimeMs: number }): Promise<number> {
  let last = mtimeMs;
  for (const name of await readdir(leftover).catch(() => [])) {
    const stats = await lstat(path.join(leftover, name)).catch(() => undefined);
    last = Math.max(last, stats?.mtimeMs ?? 0);
  }
  return last;
}

/** Whether a change that has a journal is taken back from what is in a staging directory. */
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
 * Returns the time by the clock of a directory's file system, in milliseconds as `stat` has it: another machine may have
 * dated what is there. Throws the error of the system.
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
