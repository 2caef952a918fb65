import { readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { type CancelOptions, sleep } from '../core/concurrency.js';
import { OpmateError, systemCode } from '../core/errors.js';
import { isJsonObject } from '../document/json.js';
import { lstatIfPresent } from './file-status.js';
import { makeDirectory, removeEmptyDirectories, syncDirectory } from './make-directory.js';
import { getProcessId, isRunning, ownProcess } from './process-identity.js';
import { publishNewFile } from './replace-file.js';
import { isStagingName, journalName, readFileClock, stagingName, sweepLeftovers } from './staging.js';
import { writeNewFile } from './write-new-file.js';

/** Maximum size of a journal; larger files are not journals. */
const maxJournalBytes = 64 * 1024 * 1024;
/** Age after which a journal of another machine is stale: running processes touch theirs more often. */
const staleMs = 2 * 60 * 1000;

/** Identity of a file, which renaming keeps. */
type FileIdentity = string;

/** One added, replaced or removed entry. */
export interface JournalEntry {
  /** Slash-separated path relative to the directory. */
  place: string;
  /** Identity of the previous entry, kept as `old/N` in the staging directory. */
  before: FileIdentity | undefined;
  /** Identity of the new entry; undefined for a removal. */
  after: FileIdentity | undefined;
}

/** Record for rolling back a change. */
export interface Journal {
  /** Name of the staging directory. */
  staging: string;
  /** The staging directory is next to the directory, not inside. */
  isBeside: boolean;
  entries: readonly JournalEntry[];
  /** Relative paths of new directories, topmost first. */
  directories: readonly string[];
}

/** Returns the identity of a file, link or directory; undefined if missing. Throws system errors. */
export async function readIdentity(file: string): Promise<FileIdentity | undefined> {
  const stats = await lstatIfPresent(file);
  if (stats === undefined) return undefined;
  // The date of a directory changes with its entries.
  return stats.isDirectory() ? `d${stats.ino}` : `f${stats.ino}-${stats.size}-${stats.mtimeMs}`;
}

export function isDirectoryIdentity(identity: FileIdentity): boolean {
  return identity.startsWith('d');
}

/**
 * Writes the journal of a directory via a file in `directory`; `replaces` the one of this process. Throws system errors,
 * and OpmateError IO for a new one if another process was first.
 */
export async function writeJournal(
  root: string,
  journal: Journal,
  directory: string,
  replaces: boolean,
): Promise<void> {
  const file = path.join(root, journalName);
  const staging = path.join(directory, stagingName());
  const about = 'an unfinished change of this directory; the next command that writes here rolls it back';
  try {
    const text = JSON.stringify({ about, process: ownProcess(), ...journal }, null, 2);
    await writeNewFile(staging, `${text}\n`);
    if (replaces) await rename(staging, file);
    else {
      await publishNewFile(staging, file).catch((error: unknown) => {
        throw systemCode(error) === 'EEXIST' ? busy(root, '') : error;
      });
    }
    await syncDirectory(root);
  } finally {
    await rm(staging, { force: true }).catch(() => undefined);
  }
}

/**
 * Rolls back the change of a killed process, and sweeps its leftovers in and next to the directory. Throws
 * OpmateError: IO if another process is changing the directory or if it cannot be restored, UNSAFE for a journal with
 * paths outside of it.
 */
export async function recoverDirectory(root: string): Promise<void> {
  const change = await readJournal(root);
  if (change !== undefined) {
    const pid = getProcessId(change.writer);
    if (await mayRun(root, change)) throw busy(root, pid === undefined ? '' : ` (process ${pid})`);
    await undo(root, change.journal);
  }
  await sweepLeftovers(root);
  await sweepLeftovers(path.dirname(root));
}

/**
 * Waits while another process changes a directory, at most `waitMilliseconds`. Throws OpmateError CANCELLED, and
 * UNSAFE for an invalid journal.
 */
export async function waitForChange(
  root: string,
  { waitMilliseconds, signal }: CancelOptions & { waitMilliseconds: number },
): Promise<void> {
  const deadline = performance.now() + waitMilliseconds;
  for (;;) {
    const change = await readJournal(root);
    if (change === undefined || !(await mayRun(root, change)) || performance.now() >= deadline) return;
    await sleep(100, signal);
  }
}

/** Reports whether the writer of a journal may still be running. */
async function mayRun(root: string, { writer, modified }: FoundJournal): Promise<boolean> {
  return isRunning(writer) ?? (await readFileClock(root)) - modified < staleMs;
}

function busy(root: string, holder: string): OpmateError {
  return new OpmateError('IO', `is being changed by another process${holder}`, {
    subject: root,
    hint: 'run the command again when that process has finished',
  });
}

/** Returns the error for reading a directory with a journal. */
export async function unfinishedError(root: string, label: string): Promise<OpmateError> {
  const { writer = '' } = (await readJournal(root).catch(() => undefined)) ?? {};
  if (isRunning(writer) === true) {
    return new OpmateError('IO', `is being changed by process ${getProcessId(writer)}`, {
      about: label,
      hint: 'run the command again when that process has finished',
    });
  }
  return new OpmateError('INVALID', 'unfinished, the command that wrote it was interrupted', {
    about: label,
    hint: 'run that command again to roll back its changes',
  });
}

/** Rolls back a change, however far it got; may be repeated. Throws system errors and OpmateError. */
export async function undo(root: string, journal: Journal): Promise<void> {
  const staging = getStagingName(root, journal);
  for (const [i, { place, before, after }] of [...journal.entries.entries()].reverse()) {
    const target = path.join(root, place);
    await requireNoLinks(root, place);
    const now = await readIdentity(target);
    const old = path.join(staging, 'old', String(i));
    // Entries that others wrote meanwhile stay.
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

/** Returns the staging directory of a journal. */
export function getStagingName(
  root: string,
  { staging, isBeside }: Pick<Journal, 'staging' | 'isBeside'>,
): string {
  return path.join(isBeside ? path.dirname(root) : root, staging);
}

interface FoundJournal {
  journal: Journal;
  /** Identity of the process that wrote it; other text if unknown. */
  writer: string;
  /** Time of the last write in milliseconds. */
  modified: number;
}

/**
 * Reads the journal of a directory, which may come with a repository: no path of it may lead out of the directory.
 * Undefined without a journal.
 */
async function readJournal(root: string): Promise<FoundJournal | undefined> {
  const file = path.join(root, journalName);
  const stats = await lstatIfPresent(file);
  if (stats === undefined) return undefined;
  const problem = (text: string): OpmateError =>
    new OpmateError('UNSAFE', text, {
      about: file,
      hint: 'remove the file if no command was interrupted here',
    });
  if (!stats.isFile() || stats.size > maxJournalBytes) throw problem('not a journal');
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    // The change ended meanwhile.
    if (systemCode(error) === 'ENOENT') return undefined;
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
  return { journal, writer: text(writer) ?? '', modified: stats.mtimeMs };
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
