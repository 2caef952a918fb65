import { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { OpenPlaces } from '../transfer/transfer-step.js';
import {
  type ArchivedBlob,
  type ArchivedImage,
  type WrittenArchive,
  writeArchiveSet,
} from '../../oci/archive-set/archive-set-writer.js';
import type { ArchiveBase } from '../../oci/archive-set/archive-index.js';
import type { ImageSession } from '../../oci/image/open.js';
import type { Descriptor } from '../../oci/image/types.js';
import { encodeLock } from '../lock/encode-lock.js';
import type { ImageSetLock, LockedImage } from '../lock/lock.js';
import { ImageClock } from '../transfer/image-clock.js';
import type { PinnedTransfer } from '../transfer/transfer-types.js';

/** Images to archive. */
export interface ArchivableSet {
  transfers(): readonly PinnedTransfer[];
  lock(): ImageSetLock;
  /** Skips an image with unavailable content; throws `error` unless images may be skipped. */
  skip(targetName: string, error: OpmateError): Promise<void>;
}

interface ArchiveImageSetOptions {
  session: ImageSession;
  partBytes: number;
  strict: boolean;
  base: ArchiveBase | undefined;
  concurrency: number;
  /** Maximum time for reading the content of one image, in milliseconds; default unlimited. */
  imageTimeoutMs?: number | undefined;
}

/**
 * Writes an image set into an archive. If the set allows it, images with unavailable content are skipped, and the archive
 * is restarted with what it has. Throws errors of `writeArchiveSet`.
 */
export async function archiveImageSet(
  set: ArchivableSet,
  directory: string,
  options: ArchiveImageSetOptions,
): Promise<{ written: WrittenArchive; lock: ImageSetLock }> {
  for (;;) {
    const sources = new ImageSources(options);
    const lock = set.lock();
    try {
      const images = lock.images.flatMap(getArchivedImages);
      const { signal, logger } = options.session;
      const written = await writeArchiveSet(directory, images, sources.getBlobs(set.transfers()), {
        ...{ ...options, signal, logger },
        carried: listCarried(lock.images),
        lock: encodeLock(lock),
      });
      return { written, lock };
    } catch (error) {
      const { failed } = sources;
      if (failed === undefined || options.session.signal?.aborted) throw error;
      await set.skip(failed.targetName, failed.error);
    } finally {
      await sources.close();
    }
  }
}

/** Returns the digests of charts, which archives always contain: images are computed from them. */
export function listCarried(images: readonly LockedImage[]): Set<string> {
  const charts = images.filter(({ kind }) => kind === 'chart');
  return new Set(
    charts.flatMap(({ contents }) =>
      contents.manifests
        .flatMap(({ descriptor, blobs }) => [descriptor, ...blobs])
        .map(({ digest }) => digest),
    ),
  );
}

/** Returns the entries of an image for the index of an archive: under its tag, and its referrers without tag. */
export function getArchivedImages({ repository, tag, contents }: LockedImage): ArchivedImage[] {
  const { root, manifests } = contents;
  const index = manifests.findIndex(({ descriptor }) => descriptor.digest === root.digest);
  const referrers = manifests
    .slice(index + 1)
    .map(({ descriptor }) => ({ repository, tag: undefined, root: descriptor }));
  return [{ repository, tag, root }, ...referrers];
}

/** Sources of blobs. */
class ImageSources {
  readonly #options: ArchiveImageSetOptions;
  readonly #places: OpenPlaces;
  readonly #clocks = new Map<string, ImageClock>();
  /** Images with an unreadable blob, by its digest. */
  readonly #failures = new Map<string, { targetName: string; error: OpmateError }>();

  constructor(options: ArchiveImageSetOptions) {
    this.#options = options;
    this.#places = new OpenPlaces(options.session);
  }

  getBlobs(transfers: readonly PinnedTransfer[]): ArchivedBlob[] {
    const blobs = new Map<string, ArchivedBlob>();
    for (const transfer of transfers) {
      const { target } = transfer;
      const repository = target.transport === 'docker' ? target.repository : undefined;
      for (const { descriptor, bytes, blobs: own } of transfer.contents.manifests) {
        blobs.set(descriptor.digest, {
          ...{ descriptor, repository },
          open: () => this.#openManifest(transfer, descriptor, bytes),
        });
        for (const blob of own) {
          if (blobs.has(blob.digest)) continue;
          blobs.set(blob.digest, {
            ...{ descriptor: blob, repository },
            open: () => this.#openBlob(transfer, blob),
          });
        }
      }
    }
    return [...blobs.values()];
  }

  /** The first image with an unreadable blob. */
  get failed(): { targetName: string; error: OpmateError } | undefined {
    return this.#failures.values().next().value;
  }

  close(): Promise<void> {
    return this.#places.close();
  }

  async #openManifest(
    transfer: PinnedTransfer,
    { digest }: Descriptor,
    known: Buffer | undefined,
  ): Promise<Readable> {
    return this.#watch(transfer, digest, async () => {
      if (known !== undefined) return Readable.from([known], { objectMode: false });
      return this.#inTime(transfer, async (limited) => {
        const { repository } = await this.#places.openSource(transfer);
        const { bytes } = await repository.getManifest(digest, limited);
        return Readable.from([bytes], { objectMode: false });
      });
    });
  }

  async #openBlob(transfer: PinnedTransfer, blob: Descriptor): Promise<Readable> {
    return this.#watch(transfer, blob.digest, async () => {
      const stream = await this.#inTime(transfer, async (limited) => {
        const { repository } = await this.#places.openSource(transfer);
        return repository.openBlob(blob, limited);
      });
      stream.once('error', (error) => this.#note(transfer, blob.digest, error));
      return stream;
    });
  }

  #inTime(
    { targetName }: PinnedTransfer,
    open: (options: CancelOptions) => Promise<Readable>,
  ): Promise<Readable> {
    const { imageTimeoutMs, session } = this.#options;
    const { signal } = session;
    if (imageTimeoutMs === undefined) return open({ signal });
    const clock = getOrAdd(this.#clocks, targetName, () => new ImageClock(targetName, imageTimeoutMs));
    return clock.watch(open, { signal });
  }

  async #watch(transfer: PinnedTransfer, digest: string, open: () => Promise<Readable>): Promise<Readable> {
    this.#failures.delete(digest);
    try {
      return await open();
    } catch (error) {
      this.#note(transfer, digest, error);
      throw error;
    }
  }

  #note({ targetName }: PinnedTransfer, digest: string, error: unknown): void {
    const isFailure = error instanceof OpmateError && error.code !== 'CANCELLED';
    if (isFailure) this.#failures.set(digest, { targetName, error });
  }
}
