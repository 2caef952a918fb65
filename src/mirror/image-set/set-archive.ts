import { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { Logger } from '../../core/log.js';
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
import { type ImageSetLock, type LockedImage, encodeLock } from '../lock/lock.js';
import { ImageClock } from '../transfer/image-clock.js';
import type { PinnedTransfer } from '../transfer/transfer-types.js';

/** Images that are to be archived. */
export interface ArchivableSet {
  transfers(): readonly PinnedTransfer[];
  lock(): ImageSetLock;
  /** Leaves an image out for want of something; throws the error where that may not be. */
  skip(targetName: string, error: OpmateError): Promise<void>;
}

interface ArchiveImageSetOptions extends CancelOptions {
  session: ImageSession;
  partBytes: number;
  strict: boolean;
  base: ArchiveBase | undefined;
  concurrency: number;
  /** Milliseconds for reading the content of one image; unlimited unless set. */
  imageTimeoutMs?: number | undefined;
  logger?: Logger | undefined;
}

/**
 * Writes an image set into an archive. An image with something unavailable is left out as far as the set
 * allows that, and the archive is begun again with what it has. Throws what `writeArchiveSet` throws.
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
      const written = await writeArchiveSet(directory, images, sources.getBlobs(set.transfers()), {
        ...options,
        carried: listCarried(lock.images),
        lock: encodeLock(lock),
      });
      return { written, lock };
    } catch (error) {
      const { failed } = sources;
      if (failed === undefined || options.signal?.aborted) throw error;
      await set.skip(failed.targetName, failed.error);
    } finally {
      await sources.close();
    }
  }
}

/** Digests of charts: the far side computes images from them, and its registry need not have them. */
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

/** An image under its tag, and without tag what refers to it, so that whoever serves the archive finds that. */
export function getArchivedImages({ repository, tag, contents }: LockedImage): ArchivedImage[] {
  const { root, manifests } = contents;
  const index = manifests.findIndex(({ descriptor }) => descriptor.digest === root.digest);
  const referrers = manifests
    .slice(index + 1)
    .map(({ descriptor }) => ({ repository, tag: undefined, root: descriptor }));
  return [{ repository, tag, root }, ...referrers];
}

/** What blobs are read from. */
class ImageSources {
  readonly #options: ArchiveImageSetOptions;
  readonly #places: OpenPlaces;
  /** Images whose blob could not be read, by its digest; one that could in the end is none. */
  readonly #clocks = new Map<string, ImageClock>();
  readonly #failures = new Map<string, { targetName: string; error: OpmateError }>();

  constructor(options: ArchiveImageSetOptions) {
    this.#options = options;
    this.#places = new OpenPlaces(options);
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

  /** The first image whose blob could not be read. */
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
        const { repository } = await this.#places.source(transfer);
        const { bytes } = await repository.getManifest(digest, limited);
        return Readable.from([bytes], { objectMode: false });
      });
    });
  }

  async #openBlob(transfer: PinnedTransfer, blob: Descriptor): Promise<Readable> {
    return this.#watch(transfer, blob.digest, async () => {
      const stream = await this.#inTime(transfer, async (limited) => {
        const { repository } = await this.#places.source(transfer);
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
    const { imageTimeoutMs, signal } = this.#options;
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
