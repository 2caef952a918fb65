import { lstat, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError, systemCode, throwIfCancelled } from '../core/errors.js';
import { isJsonObject } from '../document/json.js';
import { lstatIfPresent } from './file-status.js';
import { makeDirectory, removeEmptyDirectories, syncDirectory } from './make-directory.js';
import { formatProcess, isRunning, ownProcess, parseProcess } from './process-identity.js';
import { publishNewFile } from './replace-file.js';
import { isStagingName, journalName, readFileClock, stagingName, sweepLeftovers } from './staging.js';
import { writeNewFile } from './write-new-file.js';

/** No journal is larger; what is was not written here. */
const maxJournalBytes = 64 * 1024 * 1024;
/** A process of another machine touches its journal more often than this while it runs. */
const staleMs = 2 * 60 * 1000;

/** What tells a file from one that took its place: renaming keeps it. */
type FileIdentity = string;

/** One entry that is put, replaced or removed. */
export interface JournalEntry {
  /** Slash path relative to the directory. */
  place: string;
  /** Identity of what was there before, which waits as `old/N` in the staging directory. */
  before: FileIdentity | undefined;
  /** Identity of what takes the place; undefined where the entry is removed. */
  after: FileIdentity | undefined;
}

/** What is needed to take a change back. */
export interface Journal {
  /** Name of the staging directory. */
  staging: string;
  /** Whether it stands beside the directory instead of in it. */
  isBeside: boolean;
  entries: readonly JournalEntry[];
  /** Directories that the change makes, relative, the topmost first. */
  directories: readonly string[];
}

/** Returns the identity of a file, link or directory; undefined if missing. Throws the error of the system. */
export async function readIdentity(file: string): Promise<FileIdentity | undefined> {
  const stats = await lstatIfPresent(file);
  if (stats === undefined) return undefined;
  // The date of a directory changes with what is in it.
  return stats.isDirectory() ? `d${stats.ino}` : `f${stats.ino}-${stats.size}-${stats.mtimeMs}`;
}

export function isDirectoryIdentity(identity: FileIdentity): boolean {
  return identity.startsWith('d');
}

/**
 * Writes the journal of a directory that has none, by way of a file in `directory`. Throws OpmateError IO where another
 * process was faster.
 */
export async function writeJournal(root: string, journal: Journal, directory: string): Promise<void> {
  const file = path.join(root, journalName);
  const staging = path.join(directory, stagingName());
  try {
    await writeNewFile(staging, encodeJournal(journal));
    await publishNewFile(staging, file).catch((error: unknown) => {
      throw systemCode(error) === 'EEXIST' ? busy(root, '') : error;
    });
    await syncDirectory(root);
  } finally {
    await rm(staging, { force: true }).catch(() => undefined);
  }
}

/** Replaces the journal that this process has written. Throws the error of the system. */
export async function rewriteJournal(root: string, journal: Journal, directory: string): Promise<void> {
  const file = path.join(root, journalName);
  const staging = path.join(directory, stagingName());
  try {
    await writeNewFile(staging, encodeJournal(journal));
    await rename(staging, file);
    await syncDirectory(root);
  } finally {
    await rm(staging, { force: true }).catch(() => undefined);
  }
}

function encodeJournal(journal: Journal): string {
  const about =
    'an unfinished change of this directory; the next opmate command that writes here takes it back';
  return `${JSON.stringify({ about, process: formatProcess(ownProcess()), ...journal }, null, 2)}\n`;
}

/**
 * Takes back what a killed process has begun to change in a directory, and sweeps what it left in and beside it, also
 * where it was done but for that. Throws OpmateError: IO
 * where another process changes it now, UNSAFE for a journal that names other places, and where it cannot be restored.
 */
export async function recoverDirectory(root: string): Promise<void> {
  await takeBack(root);
  await sweepLeftovers(root);
  await sweepLeftovers(path.dirname(root));
}

/**
 * Waits while another process changes a directory, at most `waitMilliseconds`. Throws OpmateError CANCELLED, and UNSAFE
 * for a file that is no journal.
 */
export async function waitForChange(
  root: string,
  { waitMilliseconds, signal }: CancelOptions & { waitMilliseconds: number },
): Promise<void> {
  const deadline = performance.now() + waitMilliseconds;
  while ((await readPresentJournal(root))?.isRunning === true && performance.now() < deadline) {
    throwIfCancelled(signal);
    await sleep(100);
  }
}

async function takeBack(root: string): Promise<void> {
  const present = await readPresentJournal(root);
  if (present === undefined) return;
  const { journal, writer } = present;
  if (present.isRunning) throw busy(root, writer === undefined ? '' : ` (process ${writer.pid})`);
  await undo(root, journal);
}

/** Returns the journal of a directory, and whether its writer may still be at work; undefined without a journal. */
async function readPresentJournal(
  root: string,
): Promise<(Awaited<ReturnType<typeof readJournal>> & { isRunning: boolean }) | undefined> {
  const stats = await lstatIfPresent(path.join(root, journalName));
  if (stats === undefined) return undefined;
  let content: Awaited<ReturnType<typeof readJournal>>;
  try {
    content = await readJournal(root);
  } catch (error) {
    // The change has ended meanwhile.
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  const isAlive = content.writer === undefined ? undefined : isRunning(content.writer);
  return { ...content, isRunning: isAlive ?? (await readFileClock(root)) - stats.mtimeMs < staleMs };
}

function busy(root: string, holder: string): OpmateError {
  return new OpmateError('IO', `is being changed by another process${holder}`, {
    subject: root,
    hint: 'run the command again when that process has finished',
  });
}

/** The error of reading a directory while its journal is there. */
export async function unfinishedError(root: string, label: string): Promise<OpmateError> {
  const { writer } = await readJournal(root).catch(() => ({ writer: undefined }));
  if (writer !== undefined && isRunning(writer) === true) {
    return new OpmateError('IO', `is being changed by process ${writer.pid}`, {
      subject: label,
      file: label,
      hint: 'run the command again when that process has finished',
    });
  }
  return new OpmateError('INVALID', 'unfinished, the command that wrote it was interrupted', {
    subject: label,
    file: label,
    hint: 'run that command again to roll back its changes',
  });
}

/** Takes a change back: whatever was done of it, and as often as it takes. Throws the error of the system, OpmateError. */
export async function undo(root: string, journal: Journal): Promise<void> {
  const staging = getStagingName(root, journal);
  for (const [i, { place, before, after }] of [...journal.entries.entries()].reverse()) {
    const target = path.join(root, place);
    await requireNoLinks(root, place);
    const now = await readIdentity(target);
    const old = path.join(staging, 'old', String(i));
    // What somebody else has put there meanwhile stays.
    const isOurs = now !== undefined && now === after;
    if (before !== undefined && (await lstatIfPresent(old)) !== undefined) {
      if (isOurs) await rename(target, path.join(staging, `undone-${i}`));
      if (isOurs || now === undefined) {
        await makeDirectory(path.dirname(target));
        await rename(old, target);
      }
    } else if (before === undefined && isOurs) {
      await rename(target, path.join(staging, `undone-${i}`));
    }
  }
  await removeEmptyDirectories(journal.directories.map((directory) => path.join(root, directory)));
  await syncDirectory(root);
  await rm(staging, { recursive: true, force: true });
  await rm(path.join(root, journalName), { force: true });
}

/** The staging directory that a journal names. */
export function getStagingName(
  root: string,
  { staging, isBeside }: Pick<Journal, 'staging' | 'isBeside'>,
): string {
  return path.join(isBeside ? path.dirname(root) : root, staging);
}

/** A journal may come from elsewhere, with a repository: no path of it may lead out of its directory. */
async function readJournal(
  root: string,
): Promise<{ journal: Journal; writer: ReturnType<typeof parseProcess> }> {
  const file = path.join(root, journalName);
  const stats = await lstat(file);
  const problem = (text: string): OpmateError =>
    new OpmateError('UNSAFE', text, {
      subject: file,
      file,
      hint: 'remove the file if no opmate command was interrupted here',
    });
  if (!stats.isFile() || stats.size > maxJournalBytes) throw problem('not a journal');
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw error;
    throw problem('not a journal');
  }
  if (!isJsonObject(value)) throw problem('not a journal');
  const { staging, isBeside, process: writer, entries, directories } = value;
  if (typeof staging !== 'string' || !isStagingName(staging)) throw problem('not a journal');
  if (!Array.isArray(entries) || !entries.every(isJsonObject) || !Array.isArray(directories))
    throw problem('not a journal');
  const text = (item: unknown): string | undefined => (typeof item === 'string' ? item : undefined);
  const journal = {
    staging,
    isBeside: isBeside === true,
    entries: entries.map(({ place, before, after }) => ({
      place: String(place),
      before: text(before),
      after: text(after),
    })),
    directories: directories.map(String),
  };
  for (const place of [...journal.entries.map((entry) => entry.place), ...journal.directories]) {
    const parts = place.split('/');
    if (parts.some((part) => part === '' || part === '.' || part === '..') || place.includes('\0'))
      throw problem('names a path outside of its directory');
  }
  return { journal, writer: parseProcess(text(writer) ?? '') };
}

async function requireNoLinks(root: string, place: string): Promise<void> {
  const parts = place.split('/').slice(0, -1);
  for (let depth = 1; depth <= parts.length; depth++) {
    const directory = path.join(root, ...parts.slice(0, depth));
    const stats = await lstatIfPresent(directory);
    if (stats?.isSymbolicLink() !== true) continue;
    throw new OpmateError('UNSAFE', 'is a link, and a journal leads through it', { subject: directory });
  }
}
