import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { lstatIfPresent, statIfPresent } from '../../files/file-status.js';
import { paddedSize } from '../../archive/tar-header.js';
import { type CancelOptions, mapConcurrent, onAbort } from '../../core/concurrency.js';
import { parseDigest } from '../../core/digest.js';
import {
  CancelledError,
  DigestMismatchError,
  LimitError,
  OpmateError,
  fileError,
  getMessage,
  systemCode,
  throwIfCancelled,
} from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import {
  type ArchiveBase,
  type ArchiveIndex,
  archiveIndexName,
  archiveSignatureName,
  baseOfArchive,
  compareImages,
  encodeArchiveIndex,
  findNameProblem,
  getId,
  maxArchiveIndexBytes,
  maxItems,
  parseArchiveIndex,
  readPlainFile,
} from './archive-index.js';
import {
  type NamedImage,
  type PartLayout,
  type PlacedBlob,
  blobHeader,
  isTooLarge,
  layOut,
  keyOfParts,
  partName,
  partialName,
  stagedName,
} from './archive-layout.js';
import { freeBytes } from '../../files/free-space.js';
import { withLock } from '../../files/lock.js';
import { readRegion, writeBytes } from '../../files/file-region.js';
import { makeDirectory, syncDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { stagingBeside, sweepLeftovers } from '../../files/staging.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { retryDamaged } from '../transport/retry-policy.js';
import type { Descriptor } from '../image/types.js';

/** An image to be written into an archive set. */
export interface ArchivedImage {
  repository: string;
  tag: string | undefined;
  root: Descriptor;
}

/** A blob or manifest to be written, and how to get it. */
export interface ArchivedBlob {
  descriptor: Descriptor;
  /** A repository of the set that needs it. */
  repository?: string | undefined;
  open: () => Promise<Readable> | Readable;
}

export interface WriteArchiveOptions extends CancelOptions {
  /** Most bytes of a part, headers and padding included. */
  partBytes: number;
  /** Refuses a blob that alone is above `partBytes`, which else gets a part of its own with a warning. */
  strict?: boolean | undefined;
  /** The set, by its index, or the inventory whose blobs are left out. */
  base?: ArchiveIndex | ArchiveBase | undefined;
  /** Blobs and manifests that are written although the base has them. */
  carried?: ReadonlySet<string> | undefined;
  lock: string;
  /** Blobs that are fetched at a time; 6 when left out. */
  concurrency?: number | undefined;
  logger?: Logger | undefined;
}

export interface WrittenArchive {
  index: ArchiveIndex;
  /** Bytes that were fetched in this run, and those that an interrupted run or the archive before had already. */
  fetchedBytes: number;
  keptBytes: number;
}

/**
 * Writes an archive set into a directory, replacing one that is there when the new one is whole and on disk.
 * Equal content makes equal bytes. What an interrupted run has completed, blob by blob, is checked and kept, and
 * so is what the archive before holds. The directory is locked meanwhile. At every moment it holds the archive before,
 * if there is one, or the new one: the index takes its place in one step, and names parts that lie beside those before.
 *
 * `blobs` has every blob and manifest that the images need, those in the base included.
 * Throws OpmateError: INVALID for names that no registry takes, an image without its manifest, or parts in the
 * directory that no index tells of; IO where another process writes to the directory, and before anything is fetched
 * where the disk is too small; LIMIT with
 * `strict`; DIGEST for content that is not what was promised; and what `open` throws.
 */
export async function writeArchiveSet(
  directory: string,
  images: readonly ArchivedImage[],
  blobs: readonly ArchivedBlob[],
  options: WriteArchiveOptions,
): Promise<WrittenArchive> {
  throwIfCancelled(options.signal);
  const plan = planArchive(directory, images, blobs, options);
  try {
    await makeDirectory(directory);
    return await withLock(directory, { task: 'write an archive', signal: options.signal }, () =>
      new ArchiveWriter(directory, plan, options).run(),
    );
  } catch (error) {
    if (options.signal?.aborted) throw new CancelledError('cancelled', { cause: error });
    if (systemCode(error) === 'ENOSPC') {
      throw new OpmateError('IO', 'no space left on device', {
        subject: directory,
        hint: 'free disk space and run it again: fetched data is kept',
        cause: error,
      });
    }
    throw systemCode(error) === undefined ? error : fileError(directory, error);
  }
}

/** What is to be written where; all of the index but the sums of the parts. */
interface ArchivePlan {
  index: ArchiveIndex;
  indexBytes: number;
  parts: PartLayout[];
  open: ReadonlyMap<string, ArchivedBlob['open']>;
  /** Names this plan in the names of unfinished files. */
  key: string;
}

function planArchive(
  directory: string,
  images: readonly ArchivedImage[],
  blobs: readonly ArchivedBlob[],
  { base: input, carried, partBytes, strict = false, lock, logger = silentLogger }: WriteArchiveOptions,
): ArchivePlan {
  if (Math.max(blobs.length, images.length) > maxItems) {
    throw new LimitError(`more than ${maxItems} blobs or images`, { subject: directory });
  }
  const openers = new Map<string, ArchivedBlob['open']>();
  const sizes = new Map<string, number>();
  const inBase = new Map<string, number>();
  const holders = new Map<string, string>();
  const base = input === undefined || 'sizeOf' in input ? input : baseOfArchive(input);
  for (const { descriptor, repository, open: opener } of blobs) {
    const { digest, size } = descriptor;
    parseDigest(digest);
    const inBaseSize = base?.sizeOf(digest);
    const known = sizes.get(digest) ?? inBaseSize ?? size;
    if (known !== size)
      throw new OpmateError('INVALID', `has ${size} bytes here, ${known} there`, { subject: digest });
    if (inBaseSize !== undefined && carried?.has(digest) !== true) {
      inBase.set(digest, size);
      const holder = base?.findHolder(digest, repository);
      if (holder !== undefined) holders.set(digest, holder);
    } else {
      sizes.set(digest, size);
      openers.set(digest, opener);
    }
  }
  const named = new Map<string, NamedImage>();
  for (const { repository, tag, root } of images) {
    const { mediaType, digest, size } = root;
    const name = `${repository}${tag === undefined ? `@${digest}` : `:${tag}`}`;
    const problem = findNameProblem({ repository, tag });
    if (problem !== undefined) throw new OpmateError('INVALID', problem, { subject: name });
    const other = named.get(name)?.descriptor.digest ?? digest;
    if (other !== digest) {
      throw new OpmateError('INVALID', `names two images, ${other} and ${digest}`, { subject: name });
    }
    if ((sizes.get(digest) ?? inBase.get(digest)) !== size) {
      throw new OpmateError('INVALID', `its manifest ${digest} is not among what is to be written`, {
        subject: name,
      });
    }
    named.set(name, { repository, tag, descriptor: { mediaType, digest, size } });
  }
  const sorted = [...named.values()].sort(compareImages);
  const list = [...sizes].map(([digest, size]) => ({ digest, size }));
  for (const { digest, size } of list.filter((blob) => isTooLarge(blob, partBytes))) {
    const message = `${digest}: its ${size} bytes do not fit into ${partBytes}, the size of a part`;
    if (strict) throw new LimitError(message, { hint: 'set a larger archiveSize' });
    logger.log('warn', `${message}: it gets a larger part of its own`);
  }
  const parts = layOut(list, sorted, partBytes);
  const placed = parts.flatMap(({ number, blobs: content }) =>
    content.map(({ digest, size, offset }) => [digest, { size, part: number, offset }] as const),
  );
  const unnamed = {
    ...{ base: inBase.size === 0 ? undefined : base?.id, blobs: new Map(placed), inBase },
    ...{ holders: holders.size === 0 ? undefined : holders, images: sorted, lock },
  };
  const id = getId(unnamed);
  const index = { ...unnamed, id, parts: parts.map(({ file, size }) => ({ file, size, sha256: '' })) };
  const key = keyOfParts(index);
  // With the sums that it has not yet.
  const indexBytes = Buffer.byteLength(encodeArchiveIndex(index)) + 64 * parts.length;
  if (indexBytes > maxArchiveIndexBytes) {
    throw new LimitError(`the index would be larger than ${maxArchiveIndexBytes} bytes`, {
      subject: directory,
    });
  }
  return { index, indexBytes, parts, open: openers, key };
}

/** Files with blobs that may be of use: of an interrupted run, or of the archive that is to be replaced. */
interface OldArchive {
  key: string | undefined;
  index: ArchiveIndex;
  /** Files of its parts; undefined if missing. */
  files: (string | undefined)[];
}

/** Names of indexes of unfinished archive sets; the first group is the key in the names of their parts. */
export const planPattern = /^mirror_archive\.([0-9a-f]{16})\.partial$/;

const partPattern = /^mirror_(\d{6})\.tar$/;
const leftoverPattern = /^mirror_(?:(?:archive|\d{6})\.[0-9a-f]{16}\.partial|\d{6}\.[0-9a-f]{16}\.tar)$/;

class ArchiveWriter {
  readonly #directory: string;
  readonly #plan: ArchivePlan;
  readonly #options: WriteArchiveOptions;
  readonly #logger: Logger;
  readonly #handles = new Map<number, Promise<FileHandle>>();
  readonly #left = new Map<number, number>();
  #fetched = 0;
  #kept = 0;
  #total = 0;
  #lastTold = 0;

  constructor(directory: string, plan: ArchivePlan, options: WriteArchiveOptions) {
    this.#directory = directory;
    this.#plan = plan;
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    for (const part of plan.parts) {
      this.#left.set(part.number, part.blobs.length);
      for (const { size } of part.blobs) this.#total += size;
    }
  }

  async run(): Promise<WrittenArchive> {
    const task = `write ${this.#directory}`;
    this.#logger.progress({ task, state: 'start' });
    try {
      const index = await this.#write();
      this.#logger.progress({ task, state: 'done' });
      return { index, fetchedBytes: this.#fetched, keptBytes: this.#kept };
    } catch (error) {
      this.#logger.progress({ task, state: 'failed' });
      throw error;
    } finally {
      for (const handle of this.#handles.values()) {
        await handle.then(
          (opened) => opened.close(),
          () => undefined,
        );
      }
    }
  }

  async #write(): Promise<ArchiveIndex> {
    const { parts, index, key } = this.#plan;
    await sweepLeftovers(this.#directory);
    const before = await this.#readCurrent();
    const same = before !== undefined && (await this.#findSame(before));
    if (same) {
      this.#kept = this.#total;
      await this.#removeLeftovers();
      return before.index;
    }
    const previous = await this.#readOld(before);
    if (before === undefined && !previous.some(({ index }) => isComplete(index)))
      await this.#refuseOtherParts();
    const old = await this.#makeSpace(previous);
    if (!old.some((archive) => archive.key === key)) {
      await this.#writeWhole(this.#planFile, encodeArchiveIndex(index));
    }
    const tasks = parts.flatMap((part): { part: PartLayout; blob: PlacedBlob | undefined }[] =>
      part.blobs.length === 0 ? [{ part, blob: undefined }] : part.blobs.map((blob) => ({ part, blob })),
    );
    const sums = new Map<number, string>();
    await mapConcurrent(
      tasks,
      this.#options.concurrency ?? 6,
      async ({ part, blob }) => {
        if (blob !== undefined) await this.#place(part, blob, old);
        const left = (this.#left.get(part.number) as number) - 1;
        this.#left.set(part.number, left);
        if (left <= 0) sums.set(part.number, await this.#finishPart(part));
      },
      this.#options,
    );
    const finished: ArchiveIndex = {
      ...index,
      parts: parts.map(({ number, file, size }) => ({ file, size, sha256: sums.get(number) as string })),
    };
    await this.#writeWhole(this.#planFile, encodeArchiveIndex(finished));
    throwIfCancelled(this.#options.signal);
    await this.#commit();
    return finished;
  }

  #at(name: string): string {
    return path.join(this.#directory, name);
  }

  get #planFile(): string {
    return this.#at(`mirror_archive.${this.#plan.key}.partial`);
  }

  #getPartial(number: number, key = this.#plan.key): string {
    return this.#at(partialName(number, key));
  }

  /** The archive that is there, with all of its parts in their places. */
  async #readCurrent(): Promise<OldArchive | undefined> {
    const current = await this.#readArchive(archiveIndexName, undefined);
    const isMoved = current !== undefined && (await this.#placeParts(current.index));
    return isMoved ? this.#readArchive(archiveIndexName, undefined) : current;
  }

  /**
   * An index that is there and can be read, the final one or one of an unfinished run. What is damaged is of no
   * use, and is replaced.
   */
  async #readArchive(name: string, key: string | undefined): Promise<OldArchive | undefined> {
    let index: ArchiveIndex;
    try {
      const bytes = await readPlainFile(this.#at(name), maxArchiveIndexBytes);
      index = parseArchiveIndex(bytes, this.#at(name), { unfinished: key !== undefined });
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code === 'IO') throw error;
      if (error.code !== 'NOT_FOUND') this.#logger.log('warn', `${getMessage(error)}: not used`);
      return undefined;
    }
    // Where all parts were whole, some may have got their names already.
    const isFinished = isComplete(index);
    const files: (string | undefined)[] = [];
    for (const { file, size } of index.parts) {
      const number = files.length + 1;
      const candidates = key === undefined ? [] : [this.#getPartial(number, key)];
      if (isFinished) candidates.push(this.#at(stagedName(number, key ?? keyOfParts(index))), this.#at(file));
      files.push(undefined);
      for (const candidate of candidates) {
        const stats = await statIfPresent(candidate);
        if (!stats?.isFile() || stats.size !== size) continue;
        files[number - 1] = candidate;
        break;
      }
    }
    return { key, index, files };
  }

  /**
   * Parts without an index, and without a complete one of a run that ended while it gave them their names, were
   * written by another program. Throws OpmateError, since they would be overwritten.
   */
  async #refuseOtherParts(): Promise<void> {
    const names = await readdir(this.#directory);
    const [first, ...more] = names.filter((name) => partPattern.test(name)).sort(compareBytes);
    if (first === undefined || names.includes(archiveIndexName)) return;
    const rest = more.length > 0 ? ` and ${more.length} more` : '';
    throw new OpmateError('INVALID', `${this.#at(first)}${rest}: not an archive of opmate`, {
      hint: `specify another directory, or move the archive: it has no ${archiveIndexName}, like archives of oc-mirror`,
    });
  }

  /** Whether the archive that is there is this one, byte by byte. */
  async #findSame({ index, files }: OldArchive): Promise<boolean> {
    const { parts, index: wanted } = this.#plan;
    if (index.id !== wanted.id || index.parts.length !== parts.length) return false;
    for (const [i, { size, sha256 }] of index.parts.entries()) {
      const file = files[i];
      if (size !== parts[i]?.size || file === undefined) return false;
      const handle = await openPart(file, constants.O_RDONLY);
      const sum = await this.#hash(handle, 0, size, 'sha256', file).finally(() => handle.close());
      if (sum === sha256) continue;
      this.#logger.log('warn', `${file}: damaged; keeping its intact blobs`);
      return false;
    }
    return true;
  }

  async #readOld(before: OldArchive | undefined): Promise<OldArchive[]> {
    const old: OldArchive[] = [];
    for (const name of (await readdir(this.#directory)).sort(compareBytes)) {
      const key = planPattern.exec(name)?.[1];
      const archive = key === undefined ? undefined : await this.#readArchive(name, key);
      // Its own first: what is there already in its place needs no copying.
      if (archive?.key === this.#plan.key) old.unshift(archive);
      else if (archive !== undefined) old.push(archive);
    }
    const [own] = old;
    if (own?.key === this.#plan.key) await this.#takeNamesBack(own.files, before !== undefined);
    return before === undefined ? old : [...old, before];
  }

  /**
   * After an end between the first and the last renaming, gives the parts the names of unfinished ones again; those of
   * the archive that is there keep theirs.
   */
  async #takeNamesBack(files: (string | undefined)[], isReplacing: boolean): Promise<void> {
    for (const [i, file] of files.entries()) {
      const partial = this.#getPartial(i + 1);
      if (file === undefined || file === partial) continue;
      if (isReplacing && file !== this.#at(stagedName(i + 1, this.#plan.key))) continue;
      await moveWhole(file, partial);
      files[i] = partial;
    }
  }

  /**
   * Gives up what runs with other content have left where the disk is too small for both. Throws OpmateError IO
   * where it is too small even then. Returns what is still there.
   */
  async #makeSpace(old: OldArchive[]): Promise<OldArchive[]> {
    const { key: own } = this.#plan;
    const isOther = ({ key }: OldArchive): boolean => key !== undefined && key !== own;
    let { needed, free } = await this.#measureSpace();
    if (needed > free && old.some(isOther)) {
      this.#logger.log('warn', `${this.#directory}: removing leftovers of other content to make room`);
      await this.#removeLeftovers((name) => name.includes(own) || !leftoverPattern.test(name));
      old = old.filter((archive) => !isOther(archive));
      ({ needed, free } = await this.#measureSpace());
    }
    if (needed <= free) return old;
    throw new OpmateError('IO', `${needed} bytes are needed, ${free} are free`, {
      subject: this.#directory,
      hint: 'free disk space, or specify a directory on another disk',
    });
  }

  async #measureSpace(): Promise<{ needed: number; free: number }> {
    const { parts, indexBytes } = this.#plan;
    let needed = indexBytes * 2;
    for (const { number, size } of parts) {
      const stats = await statIfPresent(this.#getPartial(number));
      needed += Math.max(0, size - (stats === undefined ? 0 : stats.blocks * 512));
    }
    return { needed, free: await freeBytes(this.#directory) };
  }

  /** Gets a blob to its place, from what is there already or else from where it comes from. */
  async #place(part: PartLayout, blob: PlacedBlob, old: readonly OldArchive[]): Promise<void> {
    const handle = await this.#open(part);
    const header = blobHeader(blob);
    for (const archive of old) {
      const place = archive.index.blobs.get(blob.digest);
      const file = place && archive.files[place.part - 1];
      if (file === undefined || place?.size !== blob.size) continue;
      const isOwn = file === this.#getPartial(part.number) && place.offset === blob.offset;
      if (!(await this.#take(file, place.offset, header, blob, isOwn ? undefined : handle))) continue;
      if (!isOwn) await writeBytes(handle, header, blob.offset - header.length);
      this.#kept += blob.size;
      this.#tell();
      return;
    }
    await retryDamaged(() => this.#fetch(handle, blob), this.#options);
    // The header tells the next run that the content is there.
    await writeBytes(handle, header, blob.offset - header.length);
  }

  /** Checks a blob in a file, and copies it to its place in `target`. False where it is not whole there. */
  async #take(
    file: string,
    offset: number,
    header: Buffer,
    blob: PlacedBlob,
    target: FileHandle | undefined,
  ): Promise<boolean> {
    const source = await openPart(file, constants.O_RDONLY);
    try {
      const mark = Buffer.alloc(header.length);
      await source.read(mark, 0, mark.length, offset - header.length);
      if (!mark.equals(header)) return false;
      const { algorithm, hex } = parseDigest(blob.digest);
      return (
        (await this.#hash(source, offset, blob.size, algorithm, file, { target, at: blob.offset })) === hex
      );
    } finally {
      await source.close();
    }
  }

  async #fetch(handle: FileHandle, { digest, size, offset }: PlacedBlob): Promise<void> {
    const { signal } = this.#options;
    const { algorithm, hex } = parseDigest(digest);
    const subject = `${this.#directory}: ${digest}`;
    const hash = createHash(algorithm);
    const stream = await (this.#plan.open.get(digest) as ArchivedBlob['open'])();
    const unwatch = onAbort(signal, () => void stream.destroy(new CancelledError()));
    let received = 0;
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        if (received + chunk.length > size) {
          throw new DigestMismatchError(`expected ${size} bytes, got more`, { subject });
        }
        // Writing goes on in the background while the bytes are hashed.
        const writing = writeBytes(handle, chunk, offset + received);
        hash.update(chunk);
        await writing;
        received += chunk.length;
        this.#fetched += chunk.length;
        this.#tell();
      }
      if (received !== size) {
        throw new DigestMismatchError(`expected ${size} bytes, got ${received}`, { subject });
      }
      const actual = hash.digest('hex');
      if (actual !== hex)
        throw new DigestMismatchError(`content has digest ${algorithm}:${actual}`, { subject });
    } catch (error) {
      this.#fetched -= received;
      throw error;
    } finally {
      unwatch();
    }
  }

  #open(part: PartLayout): Promise<FileHandle> {
    let opening = this.#handles.get(part.number);
    if (opening === undefined) {
      opening = openPart(this.#getPartial(part.number), constants.O_RDWR | constants.O_CREAT).then(
        async (handle) => {
          try {
            await handle.truncate(part.size);
            return handle;
          } catch (error) {
            await handle.close();
            throw error;
          }
        },
      );
      opening.catch(() => undefined);
      this.#handles.set(part.number, opening);
    }
    return opening;
  }

  /** Brings a part to disk whole; returns its sum. */
  async #finishPart(part: PartLayout): Promise<string> {
    const handle = await this.#open(part);
    for (const { size, offset } of part.blobs) {
      const padding = paddedSize(size) - size;
      if (padding > 0) await writeBytes(handle, Buffer.alloc(padding), offset + size);
    }
    await writeBytes(handle, part.tail, part.size - part.tail.length);
    await handle.datasync();
    const sum = await this.#hash(handle, 0, part.size, 'sha256', this.#getPartial(part.number));
    this.#handles.delete(part.number);
    await handle.close();
    return sum;
  }

  async #hash(
    handle: FileHandle,
    start: number,
    length: number,
    algorithm: string,
    subject: string,
    copy: { target: FileHandle | undefined; at: number } = { target: undefined, at: 0 },
  ): Promise<string> {
    const hash = createHash(algorithm);
    let done = 0;
    for await (const piece of readRegion(handle, start, length, subject)) {
      throwIfCancelled(this.#options.signal);
      if (copy.target !== undefined) await writeBytes(copy.target, piece, copy.at + done);
      hash.update(piece);
      done += piece.length;
    }
    return hash.digest('hex');
  }

  /** The sums are known and everything is on disk: gives it its name, and takes away what was there before. */
  async #commit(): Promise<void> {
    const { parts, key, index } = this.#plan;
    for (const { number } of parts)
      await moveWhole(this.#getPartial(number), this.#at(stagedName(number, key)));
    await syncDirectory(this.#directory);
    await rm(this.#at(archiveSignatureName), { force: true });
    // From here on the archive is the new one, whose parts readers find under their staged names.
    await moveWhole(this.#planFile, this.#at(archiveIndexName));
    await syncDirectory(this.#directory);
    await this.#placeParts(index);
    await this.#removeLeftovers();
    await syncDirectory(this.#directory);
  }

  /**
   * Moves the parts of the archive that is there to their places, once those of the archive before are gone that it has
   * no part for. Returns whether some were not there yet.
   */
  async #placeParts(index: ArchiveIndex): Promise<boolean> {
    const key = keyOfParts(index);
    const staged: { from: string; to: string }[] = [];
    for (const [i, { file, size }] of index.parts.entries()) {
      const from = this.#at(stagedName(i + 1, key));
      const stats = await lstatIfPresent(from);
      if (stats?.isFile() && stats.size === size) staged.push({ from, to: this.#at(file) });
    }
    if (staged.length === 0) return false;
    for (const name of await readdir(this.#directory)) {
      if (isExtraPart(name, index)) await rm(this.#at(name), { force: true });
    }
    for (const { from, to } of staged) await moveWhole(from, to);
    return true;
  }

  /** Removes unfinished files of this and other plans, and parts that the archive does not have. */
  async #removeLeftovers(isKept: (name: string) => boolean = () => false): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      if ((isExtraPart(name, this.#plan.index) || leftoverPattern.test(name)) && !isKept(name))
        await rm(this.#at(name), { force: true });
    }
  }

  async #writeWhole(file: string, text: string): Promise<void> {
    const staging = stagingBeside(file);
    try {
      await writeNewFile(staging, text);
      // A link of this name is replaced, not followed.
      await moveWhole(staging, file);
    } finally {
      await rm(staging, { force: true }).catch(() => undefined);
    }
    await syncDirectory(this.#directory);
  }

  #tell(): void {
    const current = this.#fetched + this.#kept;
    if (current - this.#lastTold < 4 * 1024 * 1024 && current !== this.#total) return;
    this.#lastTold = current;
    const task = `write ${this.#directory}`;
    this.#logger.progress({ task, state: 'update', current, total: this.#total, unit: 'bytes' });
  }
}

/** Whether a file is named as a part that an archive does not have. */
function isExtraPart(name: string, { parts }: ArchiveIndex): boolean {
  const number = Number(partPattern.exec(name)?.[1]);
  return number > parts.length && name === partName(number);
}

/** Whether the sums of all parts are known. */
function isComplete({ parts }: ArchiveIndex): boolean {
  return parts.every(({ sha256 }) => sha256 !== '');
}

/** Opens a file that is no link. */
async function openPart(file: string, flags: number): Promise<FileHandle> {
  try {
    return await open(file, flags | constants.O_NOFOLLOW, 0o666);
  } catch (error) {
    throw systemCode(error) === 'ENOSPC' ? error : fileError(file, error, { file });
  }
}
