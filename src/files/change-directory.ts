import { mkdir, link, lstat, realpath, rename, rm, utimes } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError, throwFileError } from '../core/errors.js';
import { lstatIfPresent } from './file-status.js';
import {
  makeDirectory,
  missingDirectories,
  removeEmptyDirectories,
  syncDirectory,
} from './make-directory.js';
import {
  type Journal,
  type JournalEntry,
  readIdentity,
  isDirectoryIdentity,
  recoverDirectory,
  getStagingName,
  undo,
  writeJournal,
} from './journal.js';
import { isWithoutLinks } from './replace-file.js';
import { changedName, journalName, stagingName } from './staging.js';
import { writeNewFile } from './write-new-file.js';

/** Changes of a directory that take effect together. */
interface DirectoryChange {
  /** Empty directory on the same file system for new content. */
  readonly staging: string;
  /**
   * Moves a file or directory from below `staging` to a path relative to the directory. Replaces an existing one of
   * the same kind, fails for one of another kind.
   */
  put(staged: string, place: string): void;
  /** Moves an entry to a new path; if the path exists, the whole change fails. */
  add(staged: string, place: string): void;
  /** Removes a file or directory, if it exists, and its parent directory if it is then empty. */
  remove(place: string): void;
}

interface ChangeOptions {
  /** Stage next to the directory, if on the same file system, so that nothing is visible before the end. */
  beside?: boolean | undefined;
  /** Keep readers out of the directory while it is filled. */
  filling?: boolean | undefined;
  /** Ignore file that hides a staging directory inside the directory from readers. */
  hiddenBy?: { name: string; text: string } | undefined;
  /** Name of the directory in messages; default: its path. */
  subject?: string | undefined;
}

interface Plan {
  staged: string | undefined;
  place: string;
  isNew: boolean;
}

/** Interval at which a running change touches its journal, for processes on other machines. */
const beatMs = 20_000;

/**
 * Changes files and directories below `root`, which is created if missing, in one step: `work` writes below `staging`
 * and registers the changes, then everything is moved. A failure rolls back, and so does the next change of the
 * directory after a kill. During the move the directory has a journal, and readers of catalogs refuse it. Throws
 * OpmateError, and what `work` throws.
 */
export async function changeDirectory<T>(
  root: string,
  options: ChangeOptions,
  work: (change: DirectoryChange) => Promise<T>,
): Promise<T> {
  const { subject = root } = options;
  const made = await missingDirectories(root).catch(throwFileError(subject));
  let isDone = false;
  try {
    await makeDirectory(root);
    const result = await change(await realpath(root), options, work);
    isDone = true;
    return result;
  } catch (error) {
    throw fileError(subject, error);
  } finally {
    if (!isDone) await removeEmptyDirectories(made);
  }
}

async function change<T>(
  root: string,
  options: ChangeOptions,
  work: (change: DirectoryChange) => Promise<T>,
): Promise<T> {
  await recoverDirectory(root);
  const isBeside = options.beside === true && (await canStageBeside(root));
  return new RunningChange(root, isBeside, options).run(work);
}

/** A change under way, with its staging directory and, while readers are kept out, its journal. */
class RunningChange {
  readonly #root: string;
  readonly #options: ChangeOptions;
  readonly #subject: string;
  readonly #staging: string;
  readonly #plans: Plan[] = [];
  /** Journal as it is or will be written; without entries before everything is staged. */
  #journal: Journal;
  #hasJournal = false;
  /** The original files are only below `staging`. */
  #isLost = false;

  constructor(root: string, isBeside: boolean, options: ChangeOptions) {
    this.#root = root;
    this.#options = options;
    this.#subject = options.subject ?? root;
    this.#journal = { staging: stagingName(), isBeside, entries: [], directories: [] };
    this.#staging = getStagingName(root, this.#journal);
  }

  async run<T>(work: (change: DirectoryChange) => Promise<T>): Promise<T> {
    const beat = setInterval(() => this.#touchJournal(), beatMs).unref();
    try {
      if (this.#options.filling === true) await this.#writeJournal(this.#root);
      const result = await work(this.#register(await this.#makeRoom()));
      if (this.#plans.length > 0) await this.#move();
      if (this.#hasJournal) await this.#commit();
      return result;
    } catch (error) {
      if (this.#hasJournal) await this.#undo();
      throw error;
    } finally {
      clearInterval(beat);
      if (!this.#isLost) await rm(this.#staging, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /** Makes the staging directory; returns the directory in it for new content. */
  async #makeRoom(): Promise<string> {
    const staging = this.#staging;
    const { hiddenBy } = this.#options;
    await mkdir(staging, { mode: 0o700 });
    if (this.#journal.isBeside)
      await writeNewFile(path.join(staging, changedName), path.basename(this.#root));
    else if (hiddenBy !== undefined) await writeNewFile(path.join(staging, hiddenBy.name), hiddenBy.text);
    const room = path.join(staging, 'new');
    await mkdir(room);
    return room;
  }

  /** Returns the change that registers what `work` plans. */
  #register(room: string): DirectoryChange {
    const plans = this.#plans;
    return {
      staging: room,
      put: (staged, place) => void plans.push({ staged, place, isNew: false }),
      add: (staged, place) => void plans.push({ staged, place, isNew: true }),
      remove: (place) => void plans.push({ staged: undefined, place, isNew: false }),
    };
  }

  async #move(): Promise<void> {
    this.#journal = { ...this.#journal, ...(await prepare(this.#root, this.#plans, this.#subject)) };
    await this.#writeJournal(this.#staging);
    await move(this.#root, this.#staging, this.#plans, this.#journal.entries);
  }

  /** Removes the journal: the change is committed from there on. */
  async #commit(): Promise<void> {
    await rm(path.join(this.#root, journalName));
    this.#hasJournal = false;
    await syncDirectory(this.#root);
  }

  /** Restores the directory. Throws OpmateError with the place of the original files if that fails. */
  async #undo(): Promise<void> {
    await undo(this.#root, this.#journal).catch((cause: unknown) => {
      this.#isLost = true;
      throw new OpmateError('IO', 'cannot be written or restored', {
        subject: this.#subject,
        hint: `run the command again to restore it; the original files are in ${path.join(this.#staging, 'old')}`,
        cause,
      });
    });
  }

  /** Writes the journal by a file in the directory `via`. */
  async #writeJournal(via: string): Promise<void> {
    await writeJournal(this.#root, this.#journal, via, this.#hasJournal);
    this.#hasJournal = true;
  }

  #touchJournal(): void {
    const now = new Date();
    if (this.#hasJournal) void utimes(path.join(this.#root, journalName), now, now).catch(() => undefined);
  }
}

/** Reports whether the parent directory can stage content for `root`: writable, with no mount in between. */
async function canStageBeside(root: string): Promise<boolean> {
  const parent = path.dirname(root);
  if (parent === root) return false;
  const probe = path.join(parent, stagingName());
  const moved = path.join(root, stagingName());
  try {
    if ((await lstat(parent)).dev !== (await lstat(root)).dev) return false;
    await mkdir(probe, { mode: 0o700 });
    // Two mounts of one file system have the same device number.
    await rename(probe, moved);
    return true;
  } catch {
    return false;
  } finally {
    await rm(probe, { recursive: true, force: true }).catch(() => undefined);
    await rm(moved, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function prepare(
  root: string,
  plans: readonly Plan[],
  subject: string,
): Promise<Pick<Journal, 'entries' | 'directories'>> {
  const directories = new Set<string>();
  const entries: JournalEntry[] = [];
  for (const { staged, place, isNew } of plans) {
    const target = path.join(root, place);
    const before = await readIdentity(target);
    if (isNew && before !== undefined) throw taken(target);
    const after = staged === undefined ? undefined : await readIdentity(staged);
    entries.push({ place: place.split(path.sep).join('/'), before, after });
    if (after === undefined) continue;
    if (before !== undefined && isDirectoryIdentity(before) !== isDirectoryIdentity(after)) {
      const problem = isDirectoryIdentity(before) ? 'is a directory' : 'is a file, not a directory';
      throw new OpmateError('IO', `${place}: ${problem}`, { subject, file: target });
    }
    for (const directory of await missingDirectories(path.dirname(target))) {
      directories.add(path.relative(root, directory).split(path.sep).join('/'));
    }
  }
  return { entries, directories: [...directories].sort() };
}

function taken(target: string): OpmateError {
  return new OpmateError('IO', 'already exists', { about: target });
}

async function move(
  root: string,
  staging: string,
  plans: readonly Plan[],
  entries: readonly JournalEntry[],
): Promise<void> {
  await mkdir(path.join(staging, 'old'));
  for (const [i, { staged, place, isNew }] of plans.entries()) {
    const target = path.join(root, place);
    const old = path.join(staging, 'old', String(i));
    if (staged !== undefined) await makeDirectory(path.dirname(target));
    if (entries[i]?.before !== undefined) await setAside(target, old, staged !== undefined);
    // Nothing can take the name between; renaming would replace what does.
    else if (isNew && (await lstatIfPresent(target)) !== undefined) throw taken(target);
    if (staged !== undefined) await rename(staged, target);
  }
  for (const { staged, place } of plans) {
    const directory = path.dirname(path.join(root, place));
    if (staged === undefined && directory !== root) await removeEmptyDirectories([directory]);
  }
}

/** Keeps the replaced entry. A file keeps its name until the new one takes it, where the file system has links. */
async function setAside(target: string, old: string, isReplaced: boolean): Promise<void> {
  if (isReplaced && (await lstat(target)).isFile()) {
    try {
      return await link(target, old);
    } catch (error) {
      if (!isWithoutLinks(error)) throw error;
    }
  }
  await rename(target, old);
}
