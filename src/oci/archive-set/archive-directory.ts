import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, getMessage } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { lstatIfPresent, statIfPresent } from '../../files/file-status.js';
import { freeBytes } from '../../files/free-space.js';
import { syncDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { stagingBeside } from '../../files/staging.js';
import { writeNewFile } from '../../files/write-new-file.js';
import {
  type ArchiveIndex,
  archiveIndexName,
  archiveSignatureName,
  encodeArchiveIndex,
  maxArchiveIndexBytes,
  parseArchiveIndex,
  readPlainFile,
} from './archive-index.js';
import { toPlanKey, partName, partialName, planName, planPattern, stagedName } from './archive-layout.js';

/** A previous or unfinished archive set in the directory, whose blobs are reused. */
export interface OldArchive {
  /** Key in the names of unfinished files; undefined for the current set. */
  key: string | undefined;
  index: ArchiveIndex;
  /** Files of its parts; undefined if missing. */
  files: (string | undefined)[];
}

const partPattern = /^mirror_(\d{6})\.tar$/;
const leftoverPattern = /^mirror_(?:(?:archive|\d{6})\.[0-9a-f]{16}\.partial|\d{6}\.[0-9a-f]{16}\.tar)$/;

/**
 * Files of a directory in which an archive set replaces another. At every moment the directory has the previous set,
 * if any, or the new one: the index is replaced in one step, and its parts are staged beside the previous ones before.
 */
export class ArchiveDirectory {
  readonly #directory: string;
  readonly #index: ArchiveIndex;
  readonly #key: string;
  readonly #logger: Logger;

  /** `index` is that of the new set; the sums of its parts may be missing. */
  constructor(directory: string, index: ArchiveIndex, logger: Logger) {
    this.#directory = directory;
    this.#index = index;
    this.#key = toPlanKey(index);
    this.#logger = logger;
  }

  #locate(name: string): string {
    return path.join(this.#directory, name);
  }

  get #planFile(): string {
    return this.#locate(planName(this.#key));
  }

  /** Returns the file of an unfinished part of the new set. */
  getPartial(number: number): string {
    return this.#locate(partialName(number, this.#key));
  }

  /** Returns the current set, after moving staged parts to their places. */
  async readCurrent(): Promise<OldArchive | undefined> {
    const current = await this.#readArchive(archiveIndexName, undefined);
    const isMoved = current !== undefined && (await this.#placeParts(current.index));
    return isMoved ? this.#readArchive(archiveIndexName, undefined) : current;
  }

  /**
   * Returns the sets of unfinished runs, that of the same plan first, then the current set. Throws OpmateError INVALID
   * for parts without an index, which another program wrote.
   */
  async readPrevious(current: OldArchive | undefined): Promise<OldArchive[]> {
    const archives: OldArchive[] = [];
    for (const name of sortedByBytes(await readdir(this.#directory))) {
      const key = planPattern.exec(name)?.[1];
      const archive = key === undefined ? undefined : await this.#readArchive(name, key);
      if (archive === undefined) continue;
      if (key === this.#key) {
        await this.#restorePartialNames(archive.files, current !== undefined);
        // Blobs that are in place already need no copying.
        archives.unshift(archive);
      } else archives.push(archive);
    }
    if (current !== undefined) return [...archives, current];
    if (!archives.some(({ index }) => isComplete(index))) await this.#refuseForeignParts();
    return archives;
  }

  /** Returns the set of an index; undefined if it is missing or damaged. */
  async #readArchive(name: string, key: string | undefined): Promise<OldArchive | undefined> {
    let index: ArchiveIndex;
    try {
      const bytes = await readPlainFile(this.#locate(name), maxArchiveIndexBytes);
      index = parseArchiveIndex(bytes, this.#locate(name), { unfinished: key !== undefined });
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code === 'IO') throw error;
      if (error.code !== 'NOT_FOUND') this.#logger.log('warn', `${getMessage(error)}: not used`);
      return undefined;
    }
    const staged = key ?? toPlanKey(index);
    // If all parts are complete, some may have been renamed already.
    const isFinished = isComplete(index);
    const files: (string | undefined)[] = [];
    for (const [i, { file, size }] of index.parts.entries()) {
      const partial = key === undefined ? [] : [partialName(i + 1, key)];
      const final = isFinished ? [stagedName(i + 1, staged), file] : [];
      files.push(await this.#findFile([...partial, ...final], size));
    }
    return { key, index, files };
  }

  async #findFile(names: readonly string[], size: number): Promise<string | undefined> {
    for (const file of names.map((name) => this.#locate(name))) {
      const stats = await statIfPresent(file);
      if (stats?.isFile() && stats.size === size) return file;
    }
    return undefined;
  }

  async #refuseForeignParts(): Promise<void> {
    const names = await readdir(this.#directory);
    const [first, ...more] = sortedByBytes(names.filter((name) => partPattern.test(name)));
    if (first === undefined || names.includes(archiveIndexName)) return;
    const rest = more.length > 0 ? ` and ${more.length} more` : '';
    throw new OpmateError('INVALID', 'not an archive of opmate', {
      subject: `${this.#locate(first)}${rest}`,
      hint: `specify another directory, or move the archive: it has no ${archiveIndexName}, like archives of oc-mirror`,
    });
  }

  /** Undoes the renaming of parts by a run that was killed meanwhile; parts of the current set keep their names. */
  async #restorePartialNames(files: (string | undefined)[], isReplacing: boolean): Promise<void> {
    for (const [i, file] of files.entries()) {
      const partial = this.getPartial(i + 1);
      if (file === undefined || file === partial) continue;
      if (isReplacing && file !== this.#locate(stagedName(i + 1, this.#key))) continue;
      await moveWhole(file, partial);
      files[i] = partial;
    }
  }

  /**
   * Returns the old archives that remain after removing those of other unfinished runs, if the disk is too small
   * otherwise. Throws OpmateError IO if it is too small even then.
   */
  async makeSpace(old: OldArchive[], indexBytes: number): Promise<OldArchive[]> {
    const isRemovable = ({ key }: OldArchive): boolean => key !== undefined && key !== this.#key;
    let { needed, free } = await this.#measureSpace(indexBytes);
    if (needed > free && old.some(isRemovable)) {
      this.#logger.log('warn', `${this.#directory}: removing leftovers of other content to free disk space`);
      await this.removeLeftovers((name) => name.includes(this.#key) || !leftoverPattern.test(name));
      old = old.filter((archive) => !isRemovable(archive));
      ({ needed, free } = await this.#measureSpace(indexBytes));
    }
    if (needed <= free) return old;
    throw new OpmateError('IO', `not enough disk space: ${needed} bytes needed, ${free} free`, {
      subject: this.#directory,
      hint: 'free disk space, or specify a directory on another disk',
    });
  }

  async #measureSpace(indexBytes: number): Promise<{ needed: number; free: number }> {
    let needed = indexBytes * 2;
    for (const [i, { size }] of this.#index.parts.entries()) {
      const stats = await statIfPresent(this.getPartial(i + 1));
      needed += Math.max(0, size - (stats === undefined ? 0 : stats.blocks * 512));
    }
    return { needed, free: await freeBytes(this.#directory) };
  }

  /** Writes the index of the unfinished set. */
  async writePlan(index: ArchiveIndex): Promise<void> {
    const staging = stagingBeside(this.#planFile);
    try {
      await writeNewFile(staging, encodeArchiveIndex(index));
      // A link of this name is replaced, not followed.
      await moveWhole(staging, this.#planFile);
    } finally {
      await rm(staging, { force: true }).catch(() => undefined);
    }
    await syncDirectory(this.#directory);
  }

  /** Makes the new set the current one; its parts and its index must be complete and on disk. */
  async commit(): Promise<void> {
    for (let number = 1; number <= this.#index.parts.length; number++)
      await moveWhole(this.getPartial(number), this.#locate(stagedName(number, this.#key)));
    await syncDirectory(this.#directory);
    await rm(this.#locate(archiveSignatureName), { force: true });
    // From here on the new set is the current one; readers find its parts under their staged names.
    await moveWhole(this.#planFile, this.#locate(archiveIndexName));
    await syncDirectory(this.#directory);
    await this.#placeParts(this.#index);
    await this.removeLeftovers();
    await syncDirectory(this.#directory);
  }

  /** Moves staged parts to their places, after removing surplus ones. Returns whether there were staged parts. */
  async #placeParts(index: ArchiveIndex): Promise<boolean> {
    const key = toPlanKey(index);
    const staged: { from: string; to: string }[] = [];
    for (const [i, { file, size }] of index.parts.entries()) {
      const from = this.#locate(stagedName(i + 1, key));
      const stats = await lstatIfPresent(from);
      if (stats?.isFile() && stats.size === size) staged.push({ from, to: this.#locate(file) });
    }
    if (staged.length === 0) return false;
    for (const name of await readdir(this.#directory)) {
      if (isSurplusPart(name, index)) await rm(this.#locate(name), { force: true });
    }
    for (const { from, to } of staged) await moveWhole(from, to);
    return true;
  }

  /** Removes unfinished files of this and other plans, and surplus parts. */
  async removeLeftovers(isKept: (name: string) => boolean = () => false): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      if ((isSurplusPart(name, this.#index) || leftoverPattern.test(name)) && !isKept(name))
        await rm(this.#locate(name), { force: true });
    }
  }
}

function isSurplusPart(name: string, { parts }: ArchiveIndex): boolean {
  const number = Number(partPattern.exec(name)?.[1]);
  return number > parts.length && name === partName(number);
}

function isComplete({ parts }: ArchiveIndex): boolean {
  return parts.every(({ sha256 }) => sha256 !== '');
}
