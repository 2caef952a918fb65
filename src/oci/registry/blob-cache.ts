import { createHash } from 'node:crypto';
import { type FileHandle, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline, type Readable, Transform } from 'node:stream';
import { type CancelOptions, onAbort } from '../../core/concurrency.js';
import { computeDigest, isDigest, parseDigest } from '../../core/digest.js';
import { CancelledError, getMessage, systemCode } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { readBytes } from '../../files/file-region.js';
import { makeDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { stagingName, sweepLeftovers } from '../../files/staging.js';
import { parseManifest } from '../image/manifest.js';
import { getSubject } from '../image/platform.js';
import { MemoryStream, readLimited } from '../image/read-limited.js';
import type { Repository } from './repository.js';
import { type Descriptor, maxManifestBytes } from '../image/types.js';

/** Age at which leftovers of other machines in `tmp/` are removed. */
const staleMs = 60 * 60 * 1000;
/** Maximum size of blobs that are read and written in one piece. */
const smallBytes = 1024 * 1024;

interface BlobCacheOptions {
  /** Created if missing. */
  directory: string;
  /** Current time in milliseconds since 1970. */
  now: number;
  /** Maximum bytes of all blobs; the least recently used are removed. Default: unlimited. */
  maxBytes?: number | undefined;
  logger?: Logger | undefined;
}

/** Blobs by digest in a directory: `blobs/ALGORITHM/XX/HEX` with the first two digits XX. */
export interface BlobCache {
  /** Opens a verified blob; undefined if missing. Removes a damaged one. */
  open(digest: string, size: number): Promise<Readable | undefined>;
  /** Reads a verified blob whole; undefined if it is missing or larger than `maxBytes`. */
  read(digest: string, maxBytes: number): Promise<Buffer | undefined>;
  /** Returns `source`, which verifies its digest, and stores its content at its end. Never fails itself. */
  tee(source: Readable, descriptor: Descriptor): Readable;
  /** Stores verified bytes. Never fails. */
  write(digest: string, bytes: Buffer): Promise<void>;
}

/**
 * Opens a cache. Several processes may use it: entries appear whole, by rename, and are verified when opened. An
 * unwritable cache is only read, after one warning.
 */
export async function openBlobCache(options: BlobCacheOptions): Promise<BlobCache> {
  const cache = new BlobDirectory(options);
  await cache.prepare();
  return cache;
}

/** Cached blobs, and whether more can be added. */
class BlobDirectory implements BlobCache {
  readonly #directory: string;
  readonly #unfinished: string;
  readonly #now: number;
  readonly #maxBytes: number;
  readonly #logger: Logger;
  #isWritable = true;
  #evicting: Promise<void> | undefined;
  /** Bytes of all blobs since the directory was last listed. */
  #totalBytes = Infinity;

  constructor({ directory, now, maxBytes = Infinity, logger = silentLogger }: BlobCacheOptions) {
    this.#directory = directory;
    this.#unfinished = join(directory, 'tmp');
    this.#now = now;
    this.#maxBytes = maxBytes;
    this.#logger = logger;
  }

  /** Creates the directory, and removes what earlier processes left unfinished. */
  async prepare(): Promise<void> {
    try {
      await makeDirectory(this.#unfinished, 0o700);
      await sweepLeftovers(this.#unfinished, new Date(this.#now), { maxAgeMs: staleMs });
    } catch (error) {
      this.#giveUpWriting(error);
    }
  }

  async open(digest: string, size: number): Promise<Readable | undefined> {
    const handle = await open(this.#toPath(digest), 'r').catch((error: unknown) =>
      systemCode(error) === 'ENOENT' ? undefined : this.#warnUnused(digest, error),
    );
    if (handle === undefined) return undefined;
    let isStreaming = false;
    try {
      const actual = (await handle.stat()).size;
      if (actual !== size) return await this.#remove(digest, `expected ${size} bytes, got ${actual}`);
      // The date is that of the last use, if the cache is limited.
      if (this.#maxBytes !== Infinity)
        await handle.utimes(this.#now / 1000, this.#now / 1000).catch(() => undefined);
      const { algorithm, hex } = parseDigest(digest);
      if (size <= smallBytes) {
        const bytes = await readBytes(handle, 0, size);
        if (computeDigest(bytes, algorithm) === digest) return new MemoryStream(bytes);
        return await this.#remove(digest, 'digest mismatch');
      }
      const hash = createHash(algorithm);
      const reading = handle.createReadStream({ start: 0, autoClose: false, highWaterMark: smallBytes });
      for await (const chunk of reading) hash.update(chunk as Buffer);
      if (hash.digest('hex') !== hex) return await this.#remove(digest, 'digest mismatch');
      isStreaming = true;
      return handle.createReadStream({ start: 0, highWaterMark: 256 * 1024 });
    } catch (error) {
      // The registry still has the blob.
      return this.#warnUnused(digest, error);
    } finally {
      if (!isStreaming) await handle.close();
    }
  }

  async read(digest: string, maxBytes: number): Promise<Buffer | undefined> {
    const stats = await stat(this.#toPath(digest)).catch(() => undefined);
    if (stats === undefined || stats.size > maxBytes) return undefined;
    const stream = await this.open(digest, stats.size);
    return stream && readLimited(stream, maxBytes, digest);
  }

  async write(digest: string, bytes: Buffer): Promise<void> {
    const entry = await this.#begin(digest);
    await entry?.write(bytes);
    await entry?.commit();
  }

  tee(source: Readable, { digest, size }: Descriptor): Readable {
    if (!this.#isWritable || size > this.#maxBytes) return source;
    let entry: Promise<UnfinishedBlob | undefined> | undefined;
    const begin = (): Promise<UnfinishedBlob | undefined> => (entry ??= this.#begin(digest));
    const through = new Transform({
      highWaterMark: 256 * 1024,
      transform(chunk: Buffer, _encoding, done) {
        const store = async () => void (await (await begin())?.write(chunk));
        store().then(() => done(null, chunk), done);
      },
      // The source ended without error, so its digest is right.
      flush(done) {
        const commit = async () => void (await (await begin())?.commit());
        commit().then(() => done(), done);
      },
    });
    pipeline(source, through, () => {
      // After a commit there is nothing to discard.
      void entry?.then((pending) => pending?.discard());
    });
    return through;
  }

  #toPath(digest: string): string {
    const { algorithm, hex } = parseDigest(digest);
    return join(this.#directory, 'blobs', algorithm, hex.slice(0, 2), hex);
  }

  #giveUpWriting(error: unknown): undefined {
    if (this.#isWritable) {
      this.#logger.log('warn', `${this.#directory}: caching disabled: ${getMessage(error)}`);
    }
    this.#isWritable = false;
  }

  #warnUnused(digest: string, error: unknown): undefined {
    this.#logger.log('warn', `${this.#toPath(digest)}: not used: ${getMessage(error)}`);
  }

  async #remove(digest: string, problem: string): Promise<undefined> {
    this.#logger.log('warn', `${this.#toPath(digest)}: damaged, fetching it again: ${problem}`);
    await rm(this.#toPath(digest), { force: true }).catch(() => undefined);
  }

  /** Begins an unfinished file; undefined if the cache is only read. */
  async #begin(digest: string): Promise<UnfinishedBlob | undefined> {
    if (!this.#isWritable) return undefined;
    const path = join(this.#unfinished, stagingName());
    const handle = await open(path, 'wx', 0o600).catch((error: unknown) => this.#giveUpWriting(error));
    return (
      handle &&
      new UnfinishedBlob(path, handle, {
        finish: async (bytes) => {
          await moveWhole(path, this.#toPath(digest), 0o700);
          await this.#evict(bytes);
        },
        onFailure: (error) => this.#giveUpWriting(error),
      })
    );
  }

  /** Removes the least recently used blobs above the limit. */
  async #evict(addedBytes: number): Promise<void> {
    if (this.#maxBytes === Infinity) return;
    this.#totalBytes += addedBytes;
    if (this.#totalBytes <= this.#maxBytes) return;
    await this.#evicting;
    await (this.#evicting = this.#removeOldest());
  }

  async #removeOldest(): Promise<void> {
    const root = join(this.#directory, 'blobs');
    const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
    const blobs: { path: string; size: number; usedAt: number }[] = [];
    for (const entry of entries.filter((each) => each.isFile())) {
      const path = join(entry.parentPath, entry.name);
      // Another process may have removed it.
      const stats = await stat(path).catch(() => undefined);
      if (stats !== undefined) blobs.push({ path, size: stats.size, usedAt: stats.mtimeMs });
    }
    this.#totalBytes = blobs.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size } of blobs.sort((a, b) => a.usedAt - b.usedAt)) {
      if (this.#totalBytes <= this.#maxBytes) return;
      await rm(path, { force: true }).catch(() => undefined);
      this.#totalBytes -= size;
    }
  }
}

/** Ends the writing of a blob in its cache. */
interface BlobEnding {
  /** Takes the complete file. */
  finish: (bytes: number) => Promise<void>;
  onFailure: (error: unknown) => void;
}

/** A blob being written to a file, whose functions do nothing after a failure. */
class UnfinishedBlob {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #ending: BlobEnding;
  #isOpen = true;
  #bytes = 0;

  constructor(path: string, handle: FileHandle, ending: BlobEnding) {
    this.#path = path;
    this.#handle = handle;
    this.#ending = ending;
  }

  async discard(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#handle.close().catch(() => undefined);
    await rm(this.#path, { force: true }).catch(() => undefined);
  }

  async write(chunk: Buffer): Promise<void> {
    if (!this.#isOpen) return;
    try {
      // On a full disk, `write` may write a part; `appendFile` continues or fails.
      await this.#handle.appendFile(chunk);
      this.#bytes += chunk.length;
    } catch (error) {
      // After `discard`, a closed file is no failure.
      if (this.#isOpen) this.#ending.onFailure(error);
      await this.discard();
    }
  }

  async commit(): Promise<void> {
    if (!this.#isOpen) return;
    try {
      await this.#handle.sync();
      this.#isOpen = false;
      await this.#handle.close();
      await this.#ending.finish(this.#bytes);
    } catch (error) {
      this.#isOpen = true;
      this.#ending.onFailure(error);
      await this.discard();
    }
  }
}

/** Returns the repository with a cache of manifests by digest and blobs. */
export function withBlobCache<R extends Repository>(repository: R, cache: BlobCache): R {
  return {
    ...withCachedBlobs(repository, cache),
    async getManifest(reference: string, options: CancelOptions = {}) {
      if (isDigest(reference)) {
        const bytes = await cache.read(reference, maxManifestBytes);
        if (bytes !== undefined) {
          const { mediaType } = parseManifest(bytes, { subject: getSubject(repository.name, reference) });
          return { descriptor: { mediaType, digest: reference, size: bytes.length }, bytes };
        }
      }
      const content = await repository.getManifest(reference, options);
      await cache.write(content.descriptor.digest, content.bytes);
      return content;
    },
  };
}

/** Returns the repository with a cache of blobs only, so the registry authorizes the access to each manifest. */
export function withCachedBlobs<R extends Repository>(repository: R, cache: BlobCache): R {
  return {
    ...repository,
    async openBlob(descriptor: Descriptor, options: CancelOptions = {}) {
      const cached = await cache.open(descriptor.digest, descriptor.size);
      if (cached === undefined) return cache.tee(await repository.openBlob(descriptor, options), descriptor);
      // Bytes may be taken from memory without reading the stream, which then never ends.
      if (cached instanceof MemoryStream) return cached;
      const { signal } = options;
      const cancel = () => void cached.destroy(new CancelledError('cancelled', { cause: signal?.reason }));
      cached.once('close', onAbort(signal, cancel));
      return cached;
    },
  };
}
