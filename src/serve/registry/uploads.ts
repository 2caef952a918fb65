import { createHash, randomUUID } from 'node:crypto';
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
export type Upload = ReturnType<typeof createUpload>;

function createUpload(
  store: LayoutStore,
  limit: StorageLimit | undefined,
  repository: string,
  algorithm: DigestAlgorithm,
) {
  const received = createHash(algorithm);
  let path: string | undefined;
  let handle: FileHandle | undefined;
  const openFile = async (): Promise<FileHandle> => {
    if (handle !== undefined) return handle;
    path = store.stagingPath();
    return (handle = await open(path, 'wx'));
  };
  const close = async (): Promise<void> => {
    const opened = handle;
    handle = undefined;
    await opened?.close();
  };
  /** Removes the file, unless it has been moved into the layout. */
  const discard = async (): Promise<void> => {
    await close();
    if (path !== undefined) await rm(path, { force: true });
  };
  const upload = {
    id: randomUUID() as string,
    repository,
    /** Bytes received. */
    offset: 0,
    /** Useless: a write has failed, so the file may end within a chunk, or the storage limit is reached. */
    isBroken: false,
    /** The connection has ended within the last request. */
    isInterrupted: false,
    /** Appends content; received bytes stay after an interruption, for the client to resume. */
    async append(content: AsyncIterable<Buffer>): Promise<void> {
      upload.isInterrupted = true;
      for await (const chunk of content) {
        upload.isBroken = true;
        const settle = await limit?.reserve(chunk.length, discard);
        try {
          const file = await openFile();
          // Written while the bytes are hashed.
          const writing = file.writeFile(chunk);
          received.update(chunk);
          await writing;
        } finally {
          settle?.();
        }
        upload.isBroken = false;
        upload.offset += chunk.length;
      }
      upload.isInterrupted = false;
    },
    /** Syncs the file and returns its path and digest; the upload cannot be continued. */
    async finish(wanted: DigestAlgorithm): Promise<{ path: string; digest: string }> {
      await (await openFile()).sync();
      await close();
      let hash = received;
      const file = path as string;
      if (wanted !== algorithm) {
        hash = createHash(wanted);
        for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }))
          hash.update(chunk as Buffer);
      }
      return { path: file, digest: `${wanted}:${hash.digest('hex')}` };
    },
    discard,
  };
  return upload;
}

interface RunningUpload {
  upload: Upload;
  /** Drops the upload; unset during a request. */
  timer?: NodeJS.Timeout | undefined;
  /** End of its last request. */
  idleSince: number;
}

/** Uploads in progress. */
export type Uploads = ReturnType<typeof createUploads>;

/** Creates a list of uploads in progress. Requests for the same upload run one at a time. */
export function createUploads(store: LayoutStore, limit?: StorageLimit) {
  const running = new Map<string, RunningUpload>();
  const locks = new KeyedLock();
  const add = (repository: string, algorithm: DigestAlgorithm): RunningUpload => {
    const added = { upload: createUpload(store, limit, repository, algorithm), idleSince: performance.now() };
    running.set(added.upload.id, added);
    return added;
  };
  const drop = async (id: string): Promise<void> => {
    const dropped = running.get(id);
    if (dropped === undefined) return;
    running.delete(id);
    clearTimeout(dropped.timer);
    await dropped.upload.discard();
  };
  const startTimer = (item: RunningUpload): void => {
    item.idleSince = performance.now();
    item.timer = setTimeout(() => void drop(item.upload.id).catch(() => undefined), idleMs).unref();
  };
  /** Drops an upload whose connection has broken, or else the one that is idle for the longest time. */
  const evict = async (): Promise<number | undefined> => {
    const idle = [...running.values()].filter(
      ({ timer, upload }) => timer !== undefined && upload.offset > 0,
    );
    const oldest = idle.sort((a, b) => a.idleSince - b.idleSince)[0];
    const evicted = idle.find(({ upload }) => upload.isInterrupted) ?? oldest;
    if (evicted === undefined) return undefined;
    const { upload, idleSince } = evicted;
    if (!upload.isInterrupted && performance.now() - idleSince < shortIdleMs) return undefined;
    await drop(upload.id);
    return upload.offset;
  };
  limit?.useEviction(evict);
  return {
    /** Runs an upload of one request, discarded afterwards. */
    async once<T>(
      repository: string,
      algorithm: DigestAlgorithm,
      work: (upload: Upload) => Promise<T>,
    ): Promise<T> {
      const { upload } = add(repository, algorithm);
      try {
        return await work(upload);
      } finally {
        await drop(upload.id);
      }
    },
    /** Starts an upload of several requests; undefined if there are too many. */
    start(repository: string, algorithm: DigestAlgorithm): Upload | undefined {
      if (running.size >= maxUploads) return undefined;
      const started = add(repository, algorithm);
      startTimer(started);
      return started.upload;
    },
    /** Runs `work` on an upload exclusively; with undefined if the repository does not have it. */
    async use<T>(
      repository: string,
      id: string,
      work: (upload: Upload | undefined) => Promise<T>,
    ): Promise<T> {
      return await locks.run(id, async () => {
        const used = running.get(id);
        if (used?.upload.repository !== repository) return await work(undefined);
        clearTimeout(used.timer);
        used.timer = undefined;
        try {
          return await work(used.upload);
        } finally {
          if (used.upload.isBroken) await drop(id);
          else if (running.has(id)) startTimer(used);
        }
      });
    },
    drop,
    async dropAll(): Promise<void> {
      await Promise.all([...running.keys()].map(drop));
    },
  };
}
