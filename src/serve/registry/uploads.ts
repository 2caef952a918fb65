import { type Hash, createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { DigestAlgorithm } from '../../core/digest.js';
import type { LayoutStore } from '../../oci/layout/layout-store.js';
import { KeyedLock } from '../../core/keyed-lock.js';
import type { StorageLimit } from './storage-limit.js';

/** Time after which an idle upload is dropped. */
const idleMs = 60 * 60 * 1000;
/** The same where space is short, unless its connection has broken: clients send the next chunk sooner. */
const shortIdleMs = 10_000;
/** Maximum concurrent uploads. */
const maxUploads = 10_000;

/** A blob being uploaded to a temporary file. */
export class Upload {
  readonly id: string = randomUUID();
  readonly repository: string;
  readonly #store: LayoutStore;
  readonly #limit: StorageLimit | undefined;
  readonly #algorithm: DigestAlgorithm;
  readonly #received: Hash;
  #path: string | undefined;
  #handle: FileHandle | undefined;
  #offset = 0;
  #isBroken = false;
  #isInterrupted = false;

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
    this.#received = createHash(algorithm);
  }

  /** Bytes received. */
  get offset(): number {
    return this.#offset;
  }

  /** Useless: a write has failed, so the file may end within a chunk, or the storage limit is reached. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** The connection has ended within the last request. */
  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  /** Appends content; received bytes stay after an interruption, for the client to resume. */
  async append(content: AsyncIterable<Buffer>): Promise<void> {
    this.#isInterrupted = true;
    for await (const chunk of content) {
      this.#isBroken = true;
      const settle = await this.#limit?.reserve(chunk.length, () => this.discard());
      try {
        const file = await this.#openFile();
        // Written while the bytes are hashed.
        const writing = file.writeFile(chunk);
        this.#received.update(chunk);
        await writing;
      } finally {
        settle?.();
      }
      this.#isBroken = false;
      this.#offset += chunk.length;
    }
    this.#isInterrupted = false;
  }

  /** Syncs the file and returns its path and digest; the upload cannot be continued. */
  async finish(wanted: DigestAlgorithm): Promise<{ path: string; digest: string }> {
    await (await this.#openFile()).sync();
    await this.#close();
    let hash = this.#received;
    const file = this.#path as string;
    if (wanted !== this.#algorithm) {
      hash = createHash(wanted);
      for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }))
        hash.update(chunk as Buffer);
    }
    return { path: file, digest: `${wanted}:${hash.digest('hex')}` };
  }

  async #openFile(): Promise<FileHandle> {
    if (this.#handle !== undefined) return this.#handle;
    this.#path = this.#store.stagingPath();
    return (this.#handle = await open(this.#path, 'wx'));
  }

  async #close(): Promise<void> {
    const opened = this.#handle;
    this.#handle = undefined;
    await opened?.close();
  }

  /** Removes the file, unless it has been moved into the layout. */
  async discard(): Promise<void> {
    await this.#close();
    if (this.#path !== undefined) await rm(this.#path, { force: true });
  }
}

interface RunningUpload {
  upload: Upload;
  /** Drops the upload; unset during a request. */
  timer?: NodeJS.Timeout | undefined;
  /** End of its last request. */
  idleSince: number;
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
    limit?.useEviction(() => this.#evict());
  }

  #add(repository: string, algorithm: DigestAlgorithm): RunningUpload {
    const added = {
      upload: new Upload(this.#store, this.#limit, repository, algorithm),
      idleSince: performance.now(),
    };
    this.#running.set(added.upload.id, added);
    return added;
  }

  async drop(id: string): Promise<void> {
    const dropped = this.#running.get(id);
    if (dropped === undefined) return;
    this.#running.delete(id);
    clearTimeout(dropped.timer);
    await dropped.upload.discard();
  }

  #startTimer(item: RunningUpload): void {
    item.idleSince = performance.now();
    item.timer = setTimeout(() => void this.drop(item.upload.id).catch(() => undefined), idleMs).unref();
  }

  /** Drops an upload whose connection has broken, or else the one that is idle for the longest time. */
  async #evict(): Promise<number | undefined> {
    const idle = [...this.#running.values()].filter(
      ({ timer, upload }) => timer !== undefined && upload.offset > 0,
    );
    const oldest = idle.sort((a, b) => a.idleSince - b.idleSince)[0];
    const evicted = idle.find(({ upload }) => upload.isInterrupted) ?? oldest;
    if (evicted === undefined) return undefined;
    const { upload, idleSince } = evicted;
    if (!upload.isInterrupted && performance.now() - idleSince < shortIdleMs) return undefined;
    await this.drop(upload.id);
    return upload.offset;
  }

  /** Runs an upload of one request, discarded afterwards. */
  async once<T>(
    repository: string,
    algorithm: DigestAlgorithm,
    work: (upload: Upload) => Promise<T>,
  ): Promise<T> {
    const { upload } = this.#add(repository, algorithm);
    try {
      return await work(upload);
    } finally {
      await this.drop(upload.id);
    }
  }

  /** Starts an upload of several requests; undefined if there are too many. */
  start(repository: string, algorithm: DigestAlgorithm): Upload | undefined {
    if (this.#running.size >= maxUploads) return undefined;
    const started = this.#add(repository, algorithm);
    this.#startTimer(started);
    return started.upload;
  }

  /** Runs `work` on an upload exclusively; with undefined if the repository does not have it. */
  async use<T>(repository: string, id: string, work: (upload: Upload | undefined) => Promise<T>): Promise<T> {
    return await this.#locks.run(id, async () => {
      const used = this.#running.get(id);
      if (used?.upload.repository !== repository) return await work(undefined);
      clearTimeout(used.timer);
      used.timer = undefined;
      try {
        return await work(used.upload);
      } finally {
        if (used.upload.isBroken) await this.drop(id);
        else if (this.#running.has(id)) this.#startTimer(used);
      }
    });
  }

  async dropAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.drop(id)));
  }
}
