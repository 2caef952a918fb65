import { open, readdir, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getFileIdentity, lstatIfPresent, readdirIfPresent, statIfPresent } from '../../files/file-status.js';
import { isDigest, parseDigest } from '../../core/digest.js';
import { LimitError, OpmateError, systemCode, systemReason } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { openRegularFile, readRegularFile } from '../../files/read-file.js';
import { findDescriptorProblem } from './layout-manifest.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { makeDirectory, missingDirectories } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { isStagingName, readFileClock, stagingName, sweepLeftovers } from '../../files/staging.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { type Descriptor, mediaTypes } from '../image/types.js';
import { openJson } from '../../document/document.js';
import type { Field } from '../../document/field.js';

/** The annotation of an index entry that holds its tag (image specification, `annotations.md`). */
export const refNameAnnotation = 'org.opencontainers.image.ref.name';

/** The largest index.json that is read. */
const maxIndexBytes = 64 * 1024 * 1024;
/** How long one holder may keep the lock before it is taken for dead. A holder needs milliseconds. */
const staleLockMs = 10_000;
/** Unfinished content of other machines that nobody has written to for this long belongs to no running process. */
const staleContentMs = 60 * 60 * 1000;
/** A blob whose date is older than this is given a new one when it is claimed. */
const claimMs = 60 * 1000;

export interface OpenLayoutOptions {
  /** Makes a layout where there is none: at once, or by the first write, so that what fails before leaves none. */
  create?: boolean | 'on-write' | undefined;
}

/** Changes the entries of an index: returns the new list, or the given one when nothing is to change. */
type IndexChange = (entries: readonly Descriptor[]) => readonly Descriptor[];

interface PendingChange {
  change: IndexChange;
  resolve: () => void;
  reject: (error: unknown) => void;
}

const marker = '{"imageLayoutVersion":"1.0.0"}';
const emptyIndex = { schemaVersion: 2, mediaType: mediaTypes.ociIndex };

/** Largest `oci-layout` that is read; real ones have 30 bytes. */
const maxMarkerBytes = 64 * 1024;

/**
 * An OCI image layout directory as files: `oci-layout`, `index.json`, `blobs/ALGORITHM/HEX`.
 * Every file appears whole or not at all. Changes of the index made at the same time are written together,
 * under a lock file that also keeps other processes out; a change made by another process is seen by the
 * next reader.
 */
export class LayoutStore {
  readonly directory: string;
  /** Counts how often somebody else has changed the index; what was derived from it before is out of date. */
  generation = 0;
  #document: JsonObject = {};
  #entries: readonly Descriptor[] = [];
  #signature = '';
  #writes = 0;
  #clockOffset: number | undefined;
  /** Set where the layout is made by the first write. */
  #creates = false;
  #creating: Promise<void> | undefined;
  /** Directory in which content is written: that of the layout, or the one above as long as there is none. */
  #room: string;
  #queue: PendingChange[] = [];
  #flushing: Promise<void> | undefined;

  private constructor(directory: string) {
    this.directory = directory;
    this.#room = directory;
  }

  /**
   * Opens a layout. With `create`, creates one if missing; a directory that holds anything else is
   * left alone. Throws OpmateError NOT_FOUND, INVALID, UNSUPPORTED or IO.
   */
  static async open(directory: string, { create = false }: OpenLayoutOptions = {}): Promise<LayoutStore> {
    const store = new LayoutStore(directory);
    if (create === true) await store.#create();
    if (create === 'on-write' && !(await store.#inspect())) {
      store.#creates = true;
      const [missing] = await missingDirectories(directory);
      if (missing !== undefined) store.#room = dirname(missing);
      await sweepLeftovers(store.#room);
      return store;
    }
    let marker: Field;
    try {
      const file = join(directory, 'oci-layout');
      marker = openJson(await readRegularFile(file, maxMarkerBytes), { name: file, code: 'INVALID' });
    } catch (cause) {
      if (systemCode(cause) === 'ENOENT' || systemCode(cause) === 'ENOTDIR') {
        throw new OpmateError('NOT_FOUND', 'not an OCI image layout', {
          subject: directory,
          hint: 'specify a directory with the files oci-layout and index.json',
          cause,
        });
      }
      if (cause instanceof OpmateError) throw cause;
      throw ioError(directory, 'cannot be read', cause);
    }
    if (marker.field('imageLayoutVersion').value !== '1.0.0') {
      throw new OpmateError('UNSUPPORTED', `${directory}/oci-layout: image layout version is not 1.0.0`);
    }
    await store.entries();
    return store;
  }

  /** The entries of index.json as they are now. */
  async entries(): Promise<readonly Descriptor[]> {
    if (this.#flushing === undefined) await this.#refresh();
    return this.#entries;
  }

  /** The entries as this store knows them without looking at the disk. */
  get knownEntries(): readonly Descriptor[] {
    return this.#entries;
  }

  /** Makes the layout where there is none yet; done by every write of this store. */
  async #prepare(): Promise<void> {
    if (!this.#creates) return;
    this.#creating ??= this.#create();
    await this.#creating;
    this.#creates = false;
    this.#room = this.directory;
  }

  /** Applies a change to the index; it is on disk when this returns. What `change` throws is thrown here. */
  async update(change: IndexChange): Promise<void> {
    await this.#prepare();
    await new Promise<void>((resolve, reject) => {
      this.#queue.push({ change, resolve, reject });
      this.#flushing ??= this.#flush().finally(() => {
        this.#flushing = undefined;
      });
    });
  }

  blobPath(digest: string): string {
    const { algorithm, hex } = parseDigest(digest);
    return join(this.directory, 'blobs', algorithm, hex);
  }

  /** Bytes of a blob, or undefined if missing. */
  async blobSize(digest: string): Promise<number | undefined> {
    try {
      const stats = await stat(this.blobPath(digest));
      return stats.isFile() ? stats.size : undefined;
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return undefined;
      throw ioError(this.blobPath(digest), 'cannot be read', error);
    }
  }

  /** Returns a path for content that is still being written, on the file system of the layout. */
  stagingPath(): string {
    return join(this.#room, stagingName());
  }

  /** Puts a file that was written, synced and checked in its place; the caller answers for its digest. */
  async adoptBlob(staging: string, digest: string): Promise<void> {
    await this.#prepare();
    await moveWhole(staging, this.blobPath(digest));
  }

  /** Stores bytes whose digest the caller has computed; replaces what is there if it is something else. */
  async writeBlob(digest: string, bytes: Uint8Array): Promise<void> {
    if ((await this.blobSize(digest)) === bytes.length) {
      const stored = await readRegularFile(this.blobPath(digest), bytes.length).catch(() => undefined);
      if (stored?.equals(bytes)) return;
    }
    await this.#writeWhole(bytes, (path) => this.adoptBlob(path, digest));
  }

  async removeBlob(digest: string): Promise<void> {
    await rm(this.blobPath(digest), { force: true });
  }

  /** Every file below `blobs` whose name is a digest. */
  async *blobs(): AsyncGenerator<{ digest: string; size: number; mtimeMs: number }> {
    const root = join(this.directory, 'blobs');
    for (const algorithm of await readdirIfPresent(root)) {
      for (const hex of await readdirIfPresent(join(root, algorithm))) {
        const digest = `${algorithm}:${hex}`;
        if (!isDigest(digest)) continue;
        const stats = await lstatIfPresent(this.blobPath(digest));
        if (stats?.isFile()) yield { digest, size: stats.size, mtimeMs: stats.mtimeMs };
      }
    }
  }

  /** Bytes of all blobs, and of content that is still being written. */
  async usedBytes(): Promise<number> {
    let bytes = 0;
    for await (const { size } of this.blobs()) bytes += size;
    for (const name of await readdir(this.directory)) {
      if (!isStagingName(name)) continue;
      bytes += (await lstatIfPresent(join(this.directory, name)))?.size ?? 0;
    }
    return bytes;
  }

  /**
   * Bytes of a blob that something is about to refer to, or undefined if missing. Its date is renewed, so that
   * `collectGarbage` takes it for one of a running upload.
   */
  async claimBlob(digest: string): Promise<number | undefined> {
    const path = this.blobPath(digest);
    try {
      const stats = await stat(path);
      if (!stats.isFile()) return undefined;
      // The clock of the file system, asked once: it may be another machine's.
      this.#clockOffset ??= (await readFileClock(this.directory)) - performance.now();
      const now = performance.now() + this.#clockOffset;
      if (now - stats.mtimeMs > claimMs) {
        await utimes(path, now / 1000, now / 1000).catch((error: unknown) => {
          if (systemCode(error) === 'ENOENT') throw error;
        });
      }
      return stats.size;
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return undefined;
      throw ioError(path, 'cannot be read', error);
    }
  }

  /** Removes what interrupted writers have left. */
  async #sweep(names: readonly string[]): Promise<void> {
    // What was written before there was a layout stands beside it.
    await sweepLeftovers(dirname(resolve(this.directory)));
    if (!names.some(isStagingName)) return;
    const now = new Date(await readFileClock(this.directory));
    await sweepLeftovers(this.directory, now, { maxAgeMs: staleContentMs });
  }

  /** Sweeps, and returns whether there is a layout. Throws OpmateError for a directory that holds anything else. */
  async #inspect(): Promise<boolean> {
    const { directory } = this;
    try {
      const names = await readdir(directory).catch((error: unknown): string[] => {
        if (systemCode(error) === 'ENOENT') return [];
        throw error;
      });
      await this.#sweep(names);
      if (names.includes('oci-layout') && names.includes('index.json')) return true;
      const own = new Set(['blobs', 'index.json', 'index.json.lock', 'lost+found']);
      const foreign = names.find((name) => !own.has(name) && !isStagingName(name));
      if (foreign !== undefined && !names.includes('oci-layout')) {
        throw new OpmateError('INVALID', 'neither empty nor an OCI image layout', {
          subject: directory,
          hint: `specify a new or empty directory; this one contains ${JSON.stringify(foreign)}`,
        });
      }
      return false;
    } catch (error) {
      throw ioError(directory, 'cannot create an OCI image layout', error);
    }
  }

  async #create(): Promise<void> {
    const { directory } = this;
    if (await this.#inspect()) return;
    try {
      if (!(await exists(directory))) return await this.#createWhole();
      await makeDirectory(join(directory, 'blobs', 'sha256'));
      await this.#locked(async () => {
        if (await exists(join(directory, 'index.json'))) return;
        await this.#writeIndex(emptyIndex, []);
      });
      await this.#writeWhole(Buffer.from(marker), (path) => moveWhole(path, join(directory, 'oci-layout')));
    } catch (error) {
      throw ioError(directory, 'cannot create an OCI image layout', error);
    }
  }

  /** Makes a directory and the layout in it in one step, unless another process is faster. */
  async #createWhole(): Promise<void> {
    try {
      await fillDirectory(this.directory, async (staging) => {
        await makeDirectory(join(staging, 'blobs', 'sha256'));
        await writeNewFile(join(staging, 'index.json'), JSON.stringify({ ...emptyIndex, manifests: [] }));
        await writeNewFile(join(staging, 'oci-layout'), marker);
      });
    } catch (error) {
      if (!(await this.#inspect())) throw error;
    }
  }

  async #refresh(): Promise<void> {
    if (this.#creates) return;
    const path = join(this.directory, 'index.json');
    const writes = this.#writes;
    let bytes: Buffer;
    let signature: string;
    try {
      // Each reading is of one file as a whole, because writers only ever replace it.
      if (getFileIdentity(await stat(path, { bigint: true })) === this.#signature) return;
      const handle = await openRegularFile(path);
      try {
        const stats = await handle.stat({ bigint: true });
        if (stats.size > maxIndexBytes)
          throw new LimitError(`larger than ${maxIndexBytes} bytes`, { subject: path });
        signature = getFileIdentity(stats);
        bytes = await handle.readFile();
      } finally {
        await handle.close();
      }
    } catch (error) {
      if (error instanceof OpmateError) throw error;
      throw ioError(path, 'cannot be read', error);
    }
    // What was read may be older than what this store has written meanwhile.
    if (signature === this.#signature || writes !== this.#writes) return;
    const { document, entries } = parseLayoutIndex(bytes, path);
    this.#document = document;
    this.#entries = entries;
    this.#signature = signature;
    this.generation++;
  }

  async #flush(): Promise<void> {
    while (this.#queue.length > 0) {
      let batch: PendingChange[] = [];
      const failed = new Set<unknown>();
      try {
        await this.#locked(async () => {
          await this.#refresh();
          batch = this.#queue.splice(0);
          let entries = this.#entries;
          for (const item of batch) {
            try {
              entries = item.change(entries);
            } catch (error) {
              failed.add(item);
              item.reject(error);
            }
          }
          if (entries !== this.#entries) await this.#writeIndex(this.#document, entries);
        });
        for (const item of batch) if (!failed.has(item)) item.resolve();
      } catch (error) {
        if (batch.length === 0) batch = this.#queue.splice(0);
        for (const item of batch) item.reject(error);
      }
    }
  }

  async #writeIndex(document: JsonObject, entries: readonly Descriptor[]): Promise<void> {
    const bytes = Buffer.from(JSON.stringify({ ...document, manifests: entries }));
    let signature = '';
    await this.#writeWhole(bytes, async (path) => {
      signature = getFileIdentity(await stat(path, { bigint: true }));
      await moveWhole(path, join(this.directory, 'index.json'));
    });
    this.#writes++;
    this.#document = document;
    this.#entries = entries;
    this.#signature = signature;
  }

  async #writeWhole(bytes: Uint8Array, place: (path: string) => Promise<void>): Promise<void> {
    const path = this.stagingPath();
    try {
      await writeNewFile(path, bytes);
      await place(path);
    } catch (error) {
      await rm(path, { force: true }).catch(() => undefined);
      throw ioError(this.directory, 'cannot be written', error);
    }
  }

  async #locked<T>(work: () => Promise<T>): Promise<T> {
    const path = join(this.directory, 'index.json.lock');
    await this.#acquire(path);
    try {
      return await work();
    } finally {
      await rm(path, { force: true });
    }
  }

  /** Waits for the lock file. One that nobody touches for `staleLockMs` of waiting is taken away. */
  async #acquire(path: string): Promise<void> {
    const pause = 10;
    let seen = '';
    let waited = 0;
    for (;;) {
      try {
        await (await open(path, 'wx')).close();
        return;
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw ioError(path, 'cannot be written', error);
      }
      const stats = await stat(path, { bigint: true }).catch(() => undefined);
      const signature = stats ? getFileIdentity(stats) : '';
      waited = signature === seen ? waited + pause : 0;
      seen = signature;
      if (waited >= staleLockMs) await rm(path, { force: true });
      else await sleep(pause);
    }
  }
}

/** Parses and checks index.json. Throws OpmateError INVALID that names the entry. */
export function parseLayoutIndex(
  bytes: Uint8Array,
  path: string,
): { document: JsonObject; entries: readonly Descriptor[] } {
  const root = openJson(bytes, { name: path, code: 'INVALID' });
  const document = root.jsonObject();
  const entries = root
    .field('manifests')
    .optionalList()
    .map((entry) => {
      const problem = findDescriptorProblem(entry.value);
      return problem === undefined ? (entry.value as unknown as Descriptor) : entry.fail(problem);
    });
  return { document, entries };
}

async function exists(path: string): Promise<boolean> {
  return (await statIfPresent(path)) !== undefined;
}

/** Wraps an error of the file system; the path comes first, then what could not be done and why. */
export function ioError(path: string, problem: string, cause: unknown): OpmateError {
  if (cause instanceof OpmateError) return cause;
  // A layout that is to be made below a file is no layout that is not there.
  const code = systemCode(cause) === 'ENOENT' ? 'NOT_FOUND' : 'IO';
  return new OpmateError(code, `${problem}: ${systemReason(cause)}`, { subject: path, cause });
}
