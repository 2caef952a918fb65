import { type FileHandle, constants, open, readdir, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, getMessage, throwIfCancelled, throwFileError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { amountOfBytes } from '../../core/printable.js';
import { readBytes } from '../../files/file-region.js';
import { lstatIfPresent, statIfPresent } from '../../files/file-status.js';
import { missingDirectories, syncDirectory } from '../../files/make-directory.js';
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
import {
  type PlacedBlob,
  blobHeader,
  partName,
  partialName,
  planName,
  planPattern,
  stagedName,
  toPlanKey,
} from './archive-layout.js';

/** A previous or unfinished archive set in the directory, whose blobs are reused. */
export interface OldArchive {
  /** Key in the names of unfinished files; undefined for the current set. */
  key: string | undefined;
  index: ArchiveIndex;
  /** Files of its parts; undefined if missing. */
  files: (string | undefined)[];
}

/** Space on the disk of an archive, in bytes. */
export interface DiskSpace {
  needed: number;
  free: number;
}

const partPattern = /^mirror_(\d{6})\.tar$/;
const leftoverPattern = /^mirror_(?:(?:archive|\d{6})\.[0-9a-f]{16}\.partial|\d{6}\.[0-9a-f]{16}\.tar)$/;

/**
 * Files of a directory in which an archive set replaces another. At every moment the directory has the previous set,
 * if any, or the new one: the index is replaced in one step, and its parts are staged beside the previous ones before.
 * `index` is that of the new set; the sums of its parts may be missing.
 */
export class ArchiveDirectory {
  readonly #directory: string;
  readonly #index: ArchiveIndex;
  readonly #logger: Logger;
  readonly #ownKey: string;
  readonly #planFile: string;

  constructor(directory: string, index: ArchiveIndex, logger: Logger) {
    this.#directory = directory;
    this.#index = index;
    this.#logger = logger;
    this.#ownKey = toPlanKey(index);
    this.#planFile = this.#locate(planName(this.#ownKey));
  }

  #locate(name: string): string {
    return path.join(this.#directory, name);
  }

  /** Returns the file of an unfinished part of the new set. */
  getPartial(number: number): string {
    return this.#locate(partialName(number, this.#ownKey));
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
      if (key === this.#ownKey) {
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
    const index = await readIndex(this.#locate(name), key !== undefined, (error) => {
      if (error.code !== 'NOT_FOUND') this.#logger.log('warn', `${getMessage(error)}: not used`);
    });
    if (index === undefined) return undefined;
    const names = getPartNames(index, key);
    const files: (string | undefined)[] = [];
    for (const [i, { size }] of index.parts.entries()) files.push(await this.#findFile(names[i] ?? [], size));
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
      if (isReplacing && file !== this.#locate(stagedName(i + 1, this.#ownKey))) continue;
      await moveWhole(file, partial);
      files[i] = partial;
    }
  }

  /**
   * Returns the old archives that remain after removing those of other unfinished runs, if the disk is too small
   * otherwise. Throws OpmateError IO if it is too small even then.
   */
  async makeSpace(old: OldArchive[], indexBytes: number): Promise<OldArchive[]> {
    const isRemovable = ({ key }: OldArchive): boolean => key !== undefined && key !== this.#ownKey;
    let space = await this.#measureSpace(indexBytes);
    if (space.needed > space.free && old.some(isRemovable)) {
      this.#logger.log('warn', `${this.#directory}: removing leftovers of other content to free disk space`);
      await this.removeLeftovers((name) => this.#isOfOthers(name));
      old = old.filter((archive) => !isRemovable(archive));
      space = await this.#measureSpace(indexBytes);
    }
    const problem = findSpaceProblem(this.#directory, space);
    if (problem !== undefined) throw problem;
    return old;
  }

  /** Keeps unfinished files of this plan, and whatever is not unfinished. */
  #isOfOthers(name: string): boolean {
    return name.includes(this.#ownKey) || !leftoverPattern.test(name);
  }

  async #measureSpace(indexBytes: number): Promise<DiskSpace> {
    let needed = indexBytes * 2;
    for (const [i, { size }] of this.#index.parts.entries())
      needed += Math.max(0, size - (await getUsedBytes(this.getPartial(i + 1))));
    return { needed, free: await freeBytes(this.#directory) };
  }

  /** Measures the space that the new set would need and have, without writing; the directory may be missing. */
  async forecastSpace(indexBytes: number): Promise<DiskSpace> {
    const [missing] = await missingDirectories(this.#directory);
    if (missing !== undefined) {
      const parts = this.#index.parts.reduce((sum, { size }) => sum + size, 0);
      return { needed: parts + indexBytes * 2, free: await freeBytes(path.dirname(missing)) };
    }
    const current = await readIndex(this.#locate(archiveIndexName), false);
    const isCurrent = current !== undefined && toPlanKey(current) === this.#ownKey;
    const { needed, free } = await this.#measureSpace(indexBytes);
    let removable = 0;
    for (const name of await readdir(this.#directory))
      if (!this.#isOfOthers(name)) removable += await getUsedBytes(this.#locate(name));
    return { needed: isCurrent ? 0 : needed, free: free + removable };
  }

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
      await moveWhole(this.getPartial(number), this.#locate(stagedName(number, this.#ownKey)));
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

/** Reads an index; undefined after reporting why it is missing or damaged. Throws OpmateError IO. */
async function readIndex(
  file: string,
  unfinished: boolean,
  report: (error: OpmateError) => void = () => undefined,
): Promise<ArchiveIndex | undefined> {
  try {
    return parseArchiveIndex(await readPlainFile(file, maxArchiveIndexBytes), file, { unfinished });
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code === 'IO') throw error;
    report(error);
    return undefined;
  }
}

/** Returns the names that each part may have; the key is that of an unfinished set. */
function getPartNames(index: ArchiveIndex, key: string | undefined): string[][] {
  const stagedKey = isComplete(index) ? (key ?? toPlanKey(index)) : undefined;
  return index.parts.map(({ file }, i) => [
    ...(key === undefined ? [] : [partialName(i + 1, key)]),
    // Some parts may have been renamed already.
    ...(stagedKey === undefined ? [] : [stagedName(i + 1, stagedKey), file]),
  ]);
}

/**
 * Reads the progress of unfinished archive sets in a directory, without writing: the planned index, whose parts have no
 * sums yet, and the digests of blobs and manifests with a tar header, which is written last. Contents are not verified.
 * Damaged indexes are ignored, as by the next run. Throws OpmateError NOT_FOUND and IO.
 */
export async function readUnfinishedArchives(
  directory: string,
  { signal }: CancelOptions = {},
): Promise<{ index: ArchiveIndex; written: ReadonlySet<string> }[]> {
  const names = await readdir(directory).catch(throwFileError(directory));
  const archives: { index: ArchiveIndex; written: ReadonlySet<string> }[] = [];
  for (const name of sortedByBytes(names)) {
    const key = planPattern.exec(name)?.[1];
    const index = key === undefined ? undefined : await readIndex(path.join(directory, name), true);
    if (index === undefined) continue;
    const written = new Set<string>();
    const blobs: PlacedBlob[][] = index.parts.map(() => []);
    for (const [digest, { size, part, offset }] of index.blobs)
      blobs[part - 1]?.push({ digest, size, offset });
    const partNames = getPartNames(index, key);
    for (const [i, { size }] of index.parts.entries()) {
      throwIfCancelled(signal);
      const files = (partNames[i] ?? []).map((part) => path.join(directory, part));
      for (const digest of await readHeaders(files, size, blobs[i] ?? [])) written.add(digest);
    }
    archives.push({ index, written });
  }
  return archives;
}

/** Returns the digests of the blobs of a part whose tar headers are present. */
async function readHeaders(
  files: readonly string[],
  size: number,
  blobs: readonly PlacedBlob[],
): Promise<string[]> {
  for (const file of files) {
    let handle: FileHandle | undefined;
    try {
      handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const stats = await handle.stat();
      if (!stats.isFile() || stats.size !== size) continue;
      const written: string[] = [];
      for (const blob of blobs) {
        const header = blobHeader(blob);
        const bytes = await readBytes(handle, blob.offset - header.length, header.length);
        if (bytes.equals(header)) written.push(blob.digest);
      }
      return written;
    } catch (error) {
      const failure = fileError(file, error, { file });
      if (failure.code !== 'NOT_FOUND') throw failure;
    } finally {
      await handle?.close();
    }
  }
  return [];
}

async function getUsedBytes(file: string): Promise<number> {
  const stats = await statIfPresent(file);
  return stats === undefined ? 0 : stats.blocks * 512;
}

/** Returns the error for a disk that is too small. */
export function findSpaceProblem(directory: string, { needed, free }: DiskSpace): OpmateError | undefined {
  if (needed <= free) return undefined;
  const problem = `not enough disk space: ${amountOfBytes(needed)} needed, ${amountOfBytes(free)} free`;
  const hint = 'free disk space, or specify a directory on another disk';
  return new OpmateError('IO', problem, { subject: directory, hint });
}

/** Returns the number of bytes that this user can still write below a directory. Throws system errors. */
async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
