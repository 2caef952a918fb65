import { type Hash, createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { DigestAlgorithm } from '../../core/digest.js';
import type { LayoutStore } from '../../oci/layout/layout-store.js';
import { KeyedLock } from '../../core/keyed-lock.js';
import type { StorageLimit } from './storage-limit.js';

/** Time after which an idle upload is dropped. */
const idleMs = 60 * 60 * 1000;
/** Maximum concurrent uploads. */
const maxUploads = 10_000;

/** A blob being uploaded to a temporary file. */
export class Upload {
  readonly id = randomUUID();
  readonly repository: string;
  /** Bytes received. */
  offset = 0;
  readonly #store: LayoutStore;
  readonly #limit: StorageLimit | undefined;
  readonly #algorithm: DigestAlgorithm;
  readonly #hash: Hash;
  #path: string | undefined;
  #handle: FileHandle | undefined;

  constructor(
    store: LayoutStore,
    limit: StorageLimit | undefined,
    repository: string,
    algorithm: DigestAlgorithm,
  ) {
    this.#store = store;
    this.#limit = limit;
    this.repository = repository;
    this.#algorithm = algorithm;
    this.#hash = createHash(algorithm);
  }

  /** Appends content; received bytes stay after an interruption, for the client to resume. */
  async append(content: AsyncIterable<Buffer>): Promise<void> {
    for await (const chunk of content) {
      await this.#limit?.reserve(chunk.length);
      const handle = await this.#open();
      // Written while the bytes are hashed.
      const writing = handle.writeFile(chunk);
      this.#hash.update(chunk);
      await writing;
      this.offset += chunk.length;
    }
  }

  /** Syncs the file and returns its path and digest; the upload cannot be continued. */
  async finish(algorithm: DigestAlgorithm): Promise<{ path: string; digest: string }> {
    const handle = await this.#open();
    await handle.sync();
    await this.#close();
    const path = this.#path as string;
    let hash = this.#hash;
    if (algorithm !== this.#algorithm) {
      hash = createHash(algorithm);
      for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 }))
        hash.update(chunk as Buffer);
    }
    return { path, digest: `${algorithm}:${hash.digest('hex')}` };
  }

  /** Removes the file, unless it has been moved into the layout. */
  async discard(): Promise<void> {
    await this.#close();
    if (this.#path !== undefined) await rm(this.#path, { force: true });
  }

  async #open(): Promise<FileHandle> {
    if (this.#handle !== undefined) return this.#handle;
    this.#path = this.#store.stagingPath();
    this.#handle = await open(this.#path, 'wx');
    return this.#handle;
  }

  async #close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}

interface RunningUpload {
  upload: Upload;
  /** Drops the upload; unset during a request. */
  timer?: NodeJS.Timeout | undefined;
}

/** Uploads in progress. Requests for the same upload run one at a time. */
export class Uploads {
  readonly #store: LayoutStore;
  readonly #limit: StorageLimit | undefined;
  readonly #running = new Map<string, RunningUpload>();
  readonly #locks = new KeyedLock();

  constructor(store: LayoutStore, limit?: StorageLimit) {
    this.#store = store;
    this.#limit = limit;
  }

  /** Runs an upload of one request, discarded afterwards. */
  async once<T>(
    repository: string,
    algorithm: DigestAlgorithm,
    work: (upload: Upload) => Promise<T>,
  ): Promise<T> {
    const upload = new Upload(this.#store, this.#limit, repository, algorithm);
    this.#running.set(upload.id, { upload });
    try {
      return await work(upload);
    } finally {
      await this.drop(upload.id);
    }
  }

  /** Starts an upload of several requests; undefined if there are too many. */
  start(repository: string, algorithm: DigestAlgorithm): Upload | undefined {
    if (this.#running.size >= maxUploads) return undefined;
    const upload = new Upload(this.#store, this.#limit, repository, algorithm);
    const running: RunningUpload = { upload };
    this.#running.set(upload.id, running);
    this.#startTimer(running);
    return upload;
  }

  /** Runs `work` on an upload exclusively; with undefined if the repository does not have it. */
  async use<T>(repository: string, id: string, work: (upload: Upload | undefined) => Promise<T>): Promise<T> {
    return await this.#locks.run(id, async () => {
      const running = this.#running.get(id);
      if (running?.upload.repository !== repository) return await work(undefined);
      clearTimeout(running.timer);
      try {
        return await work(running.upload);
      } finally {
        if (this.#running.has(id)) this.#startTimer(running);
      }
    });
  }

  async drop(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running === undefined) return;
    this.#running.delete(id);
    clearTimeout(running.timer);
    await running.upload.discard();
  }

  async dropAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.drop(id)));
  }

  #startTimer(running: RunningUpload): void {
    running.timer = setTimeout(
      () => void this.drop(running.upload.id).catch(() => undefined),
      idleMs,
    ).unref();
  }
}
