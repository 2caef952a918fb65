import { sleep } from '../../core/concurrency.js';
import { open, readdir, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getFileIdentity, lstatIfPresent, readdirIfPresent, statIfPresent } from '../../files/file-status.js';
import { isDigest, parseDigest } from '../../core/digest.js';
import { LimitError, OpmateError, systemCode, systemReason } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { openRegularFile, readRegularFile } from '../../files/read-file.js';
import { checkDescriptor } from '../image/manifest.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { makeDirectory, missingDirectories } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { isStagingName, readFileClock, stagingName, sweepLeftovers } from '../../files/staging.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { type Descriptor, mediaTypes } from '../image/types.js';
import { openJson } from '../../document/document.js';

/** Annotation with the tag of an index entry. (Source: OCI image specification, `annotations.md`.) */
export const refNameAnnotation = 'org.opencontainers.image.ref.name';

/** Maximum size of index.json, in bytes. */
const maxIndexBytes = 64 * 1024 * 1024;
/** Age at which the lock of a dead process is removed; holders need milliseconds. */
const staleLockMs = 10_000;
/** Age at which unfinished content of other machines is removed. */
const staleContentMs = 60 * 60 * 1000;
/** Age at which claiming a blob renews its date. */
const claimMs = 60 * 1000;

export interface OpenLayoutOptions {
  /** Creates a missing layout: immediately, or with the first write, so a failure before leaves none. */
  create?: boolean | 'on-write' | undefined;
}

/** Returns the changed entries of an index, or the same list for no change. */
type IndexChange = (entries: readonly Descriptor[]) => readonly Descriptor[];

/** A layout lacks a blob of a manifest to store. */
export class MissingContentError extends OpmateError {
  constructor(digest: string, subject: string) {
    super('NOT_FOUND', `blob ${digest} not found`, { subject });
  }
}

/** Checks before a change, under the lock; what it throws refuses the change. */
type IndexCheck = () => Promise<void>;

interface PendingChange {
  change: IndexChange;
  check: IndexCheck | undefined;
  resolve: () => void;
  reject: (error: unknown) => void;
}

const marker = '{"imageLayoutVersion":"1.0.0"}';
const emptyIndex = { schemaVersion: 2, mediaType: mediaTypes.ociIndex };

/** Maximum size of `oci-layout`, in bytes; usual files have 30. */
const maxMarkerBytes = 64 * 1024;

/**
 * Files of an OCI image layout: `oci-layout`, `index.json`, `blobs/ALGORITHM/HEX`. Files are replaced atomically.
 * Concurrent changes of the index are written together under a lock file, which also excludes other processes; their
 * changes are visible to the next reader.
 */
export class LayoutStore {
  readonly directory: string;
  /** Number of changes of the index by other processes; each outdates derived data. */
  generation = 0;
  #document: JsonObject = {};
  #entries: readonly Descriptor[] = [];
  #signature = '';
  #writes = 0;
  #clockOffset: number | undefined;
  /** The layout is missing, and created with the first write. */
  #creates = false;
  #creating: Promise<void> | undefined;
  /** Directory for unfinished content: the layout, or its nearest existing parent. */
  #stagingDirectory: string;
  #queue: PendingChange[] = [];
  #flushing: Promise<void> | undefined;

  private constructor(directory: string) {
    this.directory = directory;
    this.#stagingDirectory = directory;
  }

  /**
   * Opens a layout. With `create`, creates a missing one, but never in a directory with other files. Throws OpmateError
   * NOT_FOUND, INVALID, UNSUPPORTED or IO.
   */
  static async open(directory: string, { create = false }: OpenLayoutOptions = {}): Promise<LayoutStore> {
    const store = new LayoutStore(directory);
    if (create === true) await store.#create();
    if (create === 'on-write' && !(await store.#inspect())) {
      store.#creates = true;
      const [missing] = await missingDirectories(directory);
      if (missing !== undefined) store.#stagingDirectory = dirname(missing);
      await sweepLeftovers(store.#stagingDirectory);
      return store;
    }
    const file = join(directory, 'oci-layout');
    let bytes: Buffer;
    try {
      bytes = await readRegularFile(file, maxMarkerBytes);
    } catch (cause) {
      if (systemCode(cause) !== 'ENOENT' && systemCode(cause) !== 'ENOTDIR')
        throw ioError(directory, 'cannot be read', cause);
      throw new OpmateError('NOT_FOUND', 'not an OCI image layout', {
        subject: directory,
        hint: 'specify a directory with the files oci-layout and index.json',
        cause,
      });
    }
    const version = openJson(bytes, { name: file, code: 'INVALID' }).field('imageLayoutVersion');
    if (version.value !== '1.0.0') version.fail('expected 1.0.0', { code: 'unsupported' });
    await store.entries();
    return store;
  }

  /** Returns the current entries of index.json. */
  async entries(): Promise<readonly Descriptor[]> {
    if (this.#flushing === undefined) await this.#refresh();
    return this.#entries;
  }

  /** Entries of index.json when it was last read or written. */
  get knownEntries(): readonly Descriptor[] {
    return this.#entries;
  }

  /** Creates the layout if it is missing; called by every write. */
  async #prepare(): Promise<void> {
    if (!this.#creates) return;
    this.#creating ??= this.#create();
    await this.#creating;
    this.#creates = false;
    this.#stagingDirectory = this.directory;
  }

  /** Applies a change to the index on disk. Throws what `change` and `check` throw. */
  async update(change: IndexChange, check?: IndexCheck): Promise<void> {
    await this.#prepare();
    await new Promise<void>((resolve, reject) => {
      this.#queue.push({ change, check, resolve, reject });
      this.#flushing ??= this.#flush().finally(() => {
        this.#flushing = undefined;
      });
    });
  }

  blobPath(digest: string): string {
    const { algorithm, hex } = parseDigest(digest);
    return join(this.directory, 'blobs', algorithm, hex);
  }

  /** Returns the size of a blob in bytes; undefined if missing. */
  async blobSize(digest: string): Promise<number | undefined> {
    const stats = await statIfPresent(this.blobPath(digest));
    return stats?.isFile() ? stats.size : undefined;
  }

  /** Returns a path for unfinished content, on the file system of the layout. */
  stagingPath(): string {
    return join(this.#stagingDirectory, stagingName());
  }

  /** Moves a file that is written, synced and verified to the place of its digest. */
  async adoptBlob(staging: string, digest: string): Promise<void> {
    await this.#prepare();
    await moveWhole(staging, this.blobPath(digest));
  }

  /** Stores bytes under their digest, replacing damaged content. */
  async writeBlob(digest: string, bytes: Uint8Array): Promise<void> {
    if ((await this.blobSize(digest)) === bytes.length) {
      const stored = await readRegularFile(this.blobPath(digest), bytes.length).catch(() => undefined);
      if (stored?.equals(bytes) && (await this.claimBlob(digest)) !== undefined) return;
    }
    await this.#writeWhole(bytes, (path) => this.adoptBlob(path, digest));
  }

  async removeBlob(digest: string): Promise<void> {
    await rm(this.blobPath(digest), { force: true });
  }

  /** Lists the files below `blobs` whose name is a digest. */
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

  /** Returns the bytes of all blobs, unfinished content included. */
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
   * Returns the size of a blob in bytes; undefined if missing. Renews its date, so `collectGarbage` keeps it until a
   * manifest refers to it.
   */
  async claimBlob(digest: string): Promise<number | undefined> {
    const path = this.blobPath(digest);
    const stats = await statIfPresent(path);
    if (!stats?.isFile()) return undefined;
    // The file system may have the clock of another machine.
    this.#clockOffset ??= (await readFileClock(this.directory)) - performance.now();
    const now = performance.now() + this.#clockOffset;
    if (now - stats.mtimeMs > claimMs) {
      try {
        await utimes(path, now / 1000, now / 1000);
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return undefined;
      }
    }
    return stats.size;
  }

  /** Removes leftovers of interrupted writers. */
  async #sweep(names: readonly string[]): Promise<void> {
    // Content written before the layout was created is beside it.
    await sweepLeftovers(dirname(resolve(this.directory)));
    if (!names.some(isStagingName)) return;
    const now = new Date(await readFileClock(this.directory));
    await sweepLeftovers(this.directory, now, { maxAgeMs: staleContentMs });
  }

  /** Sweeps, and reports whether the layout exists. Throws OpmateError for a directory with other files. */
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

  /** Creates the directory with its layout in one step, unless another process is faster. */
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
      // Writers replace the file, so an open one is consistent.
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
    // This store may have written a newer index meanwhile.
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
              await item.check?.();
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

  /** Runs `work` while no process changes the index. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    return await this.#locked(work);
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

  /** Waits for the lock file. Removes one that is unchanged for `staleLockMs`. */
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

/** Parses index.json. Throws OpmateError INVALID with the entry. */
export function parseLayoutIndex(
  bytes: Uint8Array,
  path: string,
): { document: JsonObject; entries: readonly Descriptor[] } {
  const root = openJson(bytes, { name: path, code: 'INVALID' });
  const document = root.jsonObject();
  return { document, entries: root.field('manifests').optionalList().map(checkDescriptor) };
}

async function exists(path: string): Promise<boolean> {
  return (await statIfPresent(path)) !== undefined;
}

/** Returns the error of a file operation: `path: problem: reason`. */
export function ioError(path: string, problem: string, cause: unknown): OpmateError {
  if (cause instanceof OpmateError) return cause;
  // ENOTDIR is no missing layout: its parent is a file.
  const code = systemCode(cause) === 'ENOENT' ? 'NOT_FOUND' : 'IO';
  return new OpmateError(code, `${problem}: ${systemReason(cause)}`, { subject: path, cause });
}
