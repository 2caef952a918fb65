import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { paddedSize } from '../../archive/tar-header.js';
import { type CancelOptions, mapConcurrent, onAbort, withOpen } from '../../core/concurrency.js';
import { parseDigest } from '../../core/digest.js';
import {
  CancelledError,
  DigestMismatchError,
  LimitError,
  OpmateError,
  fileError,
  systemCode,
  throwFileError,
  throwIfCancelled,
} from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { amountOfBytes } from '../../core/printable.js';
import { type Logger, runTask, silentLogger } from '../../core/log.js';
import { readBytes, readRegion, writeBytes } from '../../files/file-region.js';
import { withLock } from '../../files/lock.js';
import { makeDirectory, missingDirectories, removeEmptyDirectories } from '../../files/make-directory.js';
import type { Descriptor } from '../image/types.js';
import { retryDamaged } from '../transport/retry-policy.js';
import { type DiskSpace, type OldArchive, findSpaceProblem, ArchiveDirectory } from './archive-directory.js';
import {
  type ArchiveBase,
  type ArchiveIndex,
  getArchiveBase,
  compareImages,
  encodeArchiveIndex,
  findNameProblem,
  computeSetId,
  maxArchiveIndexBytes,
  maxItems,
} from './archive-index.js';
import {
  type ArchiveImage,
  type PartLayout,
  type PlacedBlob,
  blobHeader,
  getPartSize,
  isTooLarge,
  toPlanKey,
  divideBlobs,
} from './archive-layout.js';

/** An image to write into an archive set. */
export interface ArchivedImage {
  repository: string;
  tag: string | undefined;
  root: Descriptor;
}

/** A blob or manifest to write, and its content. */
export interface ArchivedBlob {
  descriptor: Descriptor;
  /** A repository of the set that needs it. */
  repository?: string | undefined;
  open: () => Promise<Readable> | Readable;
}

export interface WriteArchiveOptions extends CancelOptions {
  /** Maximum bytes of a part, headers and padding included. */
  partBytes: number;
  /** Refuses a blob larger than `partBytes`, which otherwise gets a larger part with a warning. */
  strict?: boolean | undefined;
  /** Base set, by its index, or inventory whose blobs are omitted. */
  base?: ArchiveIndex | ArchiveBase | undefined;
  /** Blobs and manifests that are included although the base has them. */
  carried?: ReadonlySet<string> | undefined;
  lock: string;
  /** Maximum concurrent downloads; default 6. */
  concurrency?: number | undefined;
  logger?: Logger | undefined;
}

export interface WrittenArchive {
  index: ArchiveIndex;
  /** Bytes fetched by this run. */
  fetchedBytes: number;
  /** Bytes reused from an interrupted run or the previous archive. */
  keptBytes: number;
}

/**
 * Writes an archive set into a directory, replacing the previous one when the new one is complete and on disk. The
 * directory is locked meanwhile. Equal content has equal bytes. Blobs of an interrupted run and of the previous archive
 * are verified and reused.
 *
 * `blobs` must have every blob and manifest of the images, those in the base included. Throws OpmateError: INVALID for
 * invalid names, an image without its manifest, or parts of another program in the directory; IO if another process
 * writes to the directory or the disk is too small; LIMIT with `strict`; DIGEST for wrong content; and what `open`
 * throws.
 */
export async function writeArchiveSet(
  directory: string,
  images: readonly ArchivedImage[],
  blobs: readonly ArchivedBlob[],
  options: WriteArchiveOptions,
): Promise<WrittenArchive> {
  throwIfCancelled(options.signal);
  const plan = planArchive(directory, images, blobs, options);
  let created: string[] = [];
  try {
    created = await missingDirectories(directory);
    await makeDirectory(directory);
    return await withLock(directory, { task: 'write an archive', signal: options.signal }, () =>
      new PlannedArchive(directory, plan, options).write(),
    );
  } catch (error) {
    await removeEmptyDirectories(created);
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

/** An archive set before it is written. */
export interface ArchiveForecast extends DiskSpace {
  parts: number;
  /** Bytes of all parts. */
  bytes: number;
  /** Set if the disk is too small. */
  problem: OpmateError | undefined;
}

/**
 * Plans an archive set as `writeArchiveSet` does, and measures the space on its disk. Writes nothing, and opens no blob.
 * Throws OpmateError.
 */
export async function forecastArchiveSet(
  directory: string,
  images: readonly ArchivedImage[],
  blobs: readonly ArchivedBlob[],
  options: WriteArchiveOptions,
): Promise<ArchiveForecast> {
  const { index, indexBytes, parts } = planArchive(directory, images, blobs, options);
  const files = new ArchiveDirectory(directory, index, options.logger ?? silentLogger);
  const space = await files.forecastSpace(indexBytes).catch(throwFileError(directory));
  const bytes = parts.reduce((sum, { size }) => sum + size, 0);
  return { parts: parts.length, bytes, ...space, problem: findSpaceProblem(directory, space) };
}

/** Returns the index without the sums of the parts, its size in bytes, the parts, and the openers of blobs. */
function planArchive(
  directory: string,
  images: readonly ArchivedImage[],
  blobs: readonly ArchivedBlob[],
  { base: input, carried, partBytes, strict = false, lock, logger = silentLogger }: WriteArchiveOptions,
) {
  if (Math.max(blobs.length, images.length) > maxItems) {
    throw new LimitError(`more than ${maxItems} blobs or images`, { subject: directory });
  }
  const openers = new Map<string, ArchivedBlob['open']>();
  const sizes = new Map<string, number>();
  const inBase = new Map<string, number>();
  const holders = new Map<string, string>();
  const base = input === undefined || 'sizeOf' in input ? input : getArchiveBase(input);
  for (const { descriptor, repository, open: opener } of blobs) {
    const { digest, size } = descriptor;
    parseDigest(digest);
    const baseSize = base?.sizeOf(digest);
    const known = sizes.get(digest) ?? baseSize ?? size;
    if (known !== size)
      throw new OpmateError('INVALID', `conflicting sizes: ${size} and ${known} bytes`, { subject: digest });
    if (baseSize !== undefined && carried?.has(digest) !== true) {
      inBase.set(digest, size);
      const holder = base?.findHolder(digest, repository);
      if (holder !== undefined) holders.set(digest, holder);
    } else {
      sizes.set(digest, size);
      openers.set(digest, opener);
    }
  }
  const sorted = nameImages(images, (digest) => sizes.get(digest) ?? inBase.get(digest));
  const list = [...sizes].map(([digest, size]) => ({ digest, size }));
  for (const blob of list.filter((item) => isTooLarge(item, partBytes))) {
    const layer = `layer ${blob.digest} of ${amountOfBytes(blob.size)}`;
    const message = `${layer} does not fit into a part of ${amountOfBytes(partBytes)}`;
    const gibibytes = Math.ceil(getPartSize(blob) / 2 ** 30);
    if (strict) throw new LimitError(message, { hint: `set archiveSize to ${gibibytes} or more` });
    logger.log('warn', `${message}: using a larger part`);
  }
  const parts = divideBlobs(list, sorted, partBytes);
  const placed = parts.flatMap(({ number, blobs: content }) =>
    content.map(({ digest, size, offset }) => [digest, { size, part: number, offset }] as const),
  );
  const unnamed = {
    base: inBase.size === 0 ? undefined : base?.id,
    blobs: new Map(placed),
    inBase,
    holders: holders.size === 0 ? undefined : holders,
    images: sorted,
    lock,
  };
  const id = computeSetId(unnamed);
  const index = { ...unnamed, id, parts: parts.map(({ file, size }) => ({ file, size, sha256: '' })) };
  const indexBytes = Buffer.byteLength(encodeArchiveIndex(index)) + 64 * parts.length;
  if (indexBytes > maxArchiveIndexBytes) {
    throw new LimitError(`index larger than ${maxArchiveIndexBytes} bytes`, { subject: directory });
  }
  return { index, indexBytes, parts, openers };
}

/** Returns the images with checked, unique names in the order of the index. */
function nameImages(
  images: readonly ArchivedImage[],
  findSize: (digest: string) => number | undefined,
): ArchiveImage[] {
  const named = new Map<string, ArchiveImage>();
  for (const { repository, tag, root } of images) {
    const { mediaType, digest, size } = root;
    const subject = `${repository}${tag === undefined ? `@${digest}` : `:${tag}`}`;
    const problem = findNameProblem({ repository, tag });
    if (problem !== undefined) throw new OpmateError('INVALID', problem, { subject });
    const other = named.get(subject)?.descriptor.digest ?? digest;
    if (other !== digest)
      throw new OpmateError('INVALID', `conflicting images ${other} and ${digest}`, { subject });
    if (findSize(digest) !== size)
      throw new OpmateError('INVALID', `manifest ${digest} not found`, { subject });
    named.set(subject, { repository, tag, descriptor: { mediaType, digest, size } });
  }
  return [...named.values()].sort(compareImages);
}

/** Writes a planned archive into its locked directory, and reports its progress. */
class PlannedArchive {
  readonly #directory: string;
  readonly #plan: ReturnType<typeof planArchive>;
  readonly #options: WriteArchiveOptions;
  readonly #logger: Logger;
  readonly #files: ArchiveDirectory;
  readonly #handles = new Map<number, Promise<FileHandle>>();
  readonly #task: string;
  readonly #total: number;
  #fetched = 0;
  #kept = 0;
  #lastReported = 0;

  constructor(directory: string, plan: ReturnType<typeof planArchive>, options: WriteArchiveOptions) {
    this.#directory = directory;
    this.#plan = plan;
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#files = new ArchiveDirectory(directory, plan.index, this.#logger);
    this.#task = `write ${directory}`;
    this.#total = plan.parts.flatMap(({ blobs }) => blobs).reduce((sum, { size }) => sum + size, 0);
  }

  async write(): Promise<WrittenArchive> {
    try {
      const written = await runTask(this.#logger, this.#task, () => this.#write());
      return { index: written, fetchedBytes: this.#fetched, keptBytes: this.#kept };
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
    const current = await this.#files.readCurrent();
    if (current !== undefined && (await this.#isUnchanged(current))) {
      this.#kept = this.#total;
      await this.#files.removeLeftovers();
      return current.index;
    }
    const old = await this.#files.makeSpace(await this.#files.readPrevious(current), this.#plan.indexBytes);
    const key = toPlanKey(this.#plan.index);
    if (!old.some((archive) => archive.key === key)) await this.#files.writePlan(this.#plan.index);
    const tasks = this.#plan.parts.flatMap((part): { part: PartLayout; blob: PlacedBlob | undefined }[] =>
      part.blobs.length === 0 ? [{ part, blob: undefined }] : part.blobs.map((blob) => ({ part, blob })),
    );
    const left = new Map(this.#plan.parts.map(({ number, blobs }) => [number, blobs.length]));
    const sums = new Map<number, string>();
    await mapConcurrent(
      tasks,
      this.#options.concurrency ?? 6,
      async ({ part, blob }) => {
        if (blob !== undefined) await this.#placeBlob(part, blob, old);
        const others = (left.get(part.number) as number) - 1;
        left.set(part.number, others);
        if (others <= 0) sums.set(part.number, await this.#finishPart(part));
      },
      this.#options,
    );
    const finished: ArchiveIndex = {
      ...this.#plan.index,
      parts: this.#plan.parts.map(({ number, file, size }) => ({
        file,
        size,
        sha256: sums.get(number) as string,
      })),
    };
    await this.#files.writePlan(finished);
    throwIfCancelled(this.#options.signal);
    await this.#files.commit();
    return finished;
  }

  /** Reports whether the current set is the new one, byte by byte. */
  async #isUnchanged(current: OldArchive): Promise<boolean> {
    if (current.index.id !== this.#plan.index.id || current.index.parts.length !== this.#plan.parts.length)
      return false;
    for (const [i, { size, sha256 }] of current.index.parts.entries()) {
      const file = current.files[i];
      if (size !== this.#plan.parts[i]?.size || file === undefined) return false;
      const handle = await openPart(file, constants.O_RDONLY);
      const sum = await this.#hashRegion(handle, 0, size, 'sha256', file).finally(() => handle.close());
      if (sum === sha256) continue;
      this.#logger.log('warn', `${file}: damaged; keeping its intact blobs`);
      return false;
    }
    return true;
  }

  /** Writes a blob to its place, from an old archive if possible. */
  async #placeBlob(part: PartLayout, blob: PlacedBlob, old: readonly OldArchive[]): Promise<void> {
    const handle = await this.#openUnfinished(part);
    const header = blobHeader(blob);
    const writeHeader = () => writeBytes(handle, header, blob.offset - header.length);
    for (const archive of old) {
      const place = archive.index.blobs.get(blob.digest);
      const file = place && archive.files[place.part - 1];
      if (file === undefined || place?.size !== blob.size) continue;
      const isInPlace = file === this.#files.getPartial(part.number) && place.offset === blob.offset;
      if (!(await this.#reuse(file, place.offset, header, blob, isInPlace ? undefined : handle))) continue;
      if (!isInPlace) await writeHeader();
      this.#kept += blob.size;
      this.#reportProgress();
      return;
    }
    await retryDamaged(() => this.#fetchBlob(handle, blob), this.#options);
    // The next run takes the header for proof of complete content.
    await writeHeader();
  }

  /** Verifies a blob in a file and copies it to its place in `target`. Returns false if it is damaged. */
  async #reuse(
    file: string,
    offset: number,
    header: Buffer,
    blob: PlacedBlob,
    target: FileHandle | undefined,
  ): Promise<boolean> {
    return withOpen(openPart(file, constants.O_RDONLY), async (source) => {
      const written = await readBytes(source, offset - header.length, header.length);
      if (!written.equals(header)) return false;
      const { algorithm, hex } = parseDigest(blob.digest);
      const copy = target && ((piece: Buffer, done: number) => writeBytes(target, piece, blob.offset + done));
      return (await this.#hashRegion(source, offset, blob.size, algorithm, file, copy)) === hex;
    });
  }

  async #fetchBlob(handle: FileHandle, { digest, size, offset }: PlacedBlob): Promise<void> {
    const { signal } = this.#options;
    const { algorithm, hex } = parseDigest(digest);
    const subject = `${this.#directory}: ${digest}`;
    const hash = createHash(algorithm);
    const stream = await (this.#plan.openers.get(digest) as ArchivedBlob['open'])();
    const unwatch = onAbort(signal, () => void stream.destroy(new CancelledError()));
    let received = 0;
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        if (received + chunk.length > size) {
          throw new DigestMismatchError(`expected ${size} bytes, got more`, { subject });
        }
        // Writing continues in the background while the bytes are hashed.
        const writing = writeBytes(handle, chunk, offset + received);
        hash.update(chunk);
        await writing;
        received += chunk.length;
        this.#fetched += chunk.length;
        this.#reportProgress();
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

  #openUnfinished({ number, size }: PartLayout): Promise<FileHandle> {
    return getOrAdd(this.#handles, number, async () => {
      const handle = await openPart(this.#files.getPartial(number), constants.O_RDWR | constants.O_CREAT);
      try {
        await handle.truncate(size);
        return handle;
      } catch (error) {
        await handle.close();
        throw error;
      }
    });
  }

  /** Completes a part on disk and returns its SHA-256 sum. */
  async #finishPart(part: PartLayout): Promise<string> {
    const handle = await this.#openUnfinished(part);
    for (const { size, offset } of part.blobs) {
      const padding = paddedSize(size) - size;
      if (padding > 0) await writeBytes(handle, Buffer.alloc(padding), offset + size);
    }
    await writeBytes(handle, part.tail, part.size - part.tail.length);
    await handle.datasync();
    const sum = await this.#hashRegion(handle, 0, part.size, 'sha256', this.#files.getPartial(part.number));
    this.#handles.delete(part.number);
    await handle.close();
    return sum;
  }

  async #hashRegion(
    handle: FileHandle,
    start: number,
    length: number,
    algorithm: string,
    subject: string,
    copy?: (piece: Buffer, done: number) => Promise<void>,
  ): Promise<string> {
    const hash = createHash(algorithm);
    let done = 0;
    for await (const piece of readRegion(handle, start, length, subject)) {
      throwIfCancelled(this.#options.signal);
      await copy?.(piece, done);
      hash.update(piece);
      done += piece.length;
    }
    return hash.digest('hex');
  }

  #reportProgress(): void {
    const current = this.#fetched + this.#kept;
    if (current - this.#lastReported < 4 * 1024 * 1024 && current !== this.#total) return;
    this.#lastReported = current;
    this.#logger.progress({ task: this.#task, state: 'update', current, total: this.#total, unit: 'bytes' });
  }
}

/** Opens a file that is no symbolic link. */
async function openPart(file: string, flags: number): Promise<FileHandle> {
  try {
    return await open(file, flags | constants.O_NOFOLLOW, 0o666);
  } catch (error) {
    throw systemCode(error) === 'ENOSPC' ? error : fileError(file, error, { file });
  }
}
