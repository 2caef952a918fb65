import { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { createPlaces } from '../transfer/transfer-step.js';
import {
  type ArchiveForecast,
  type ArchivedBlob,
  type ArchivedImage,
  type WriteArchiveOptions,
  type WrittenArchive,
  forecastArchiveSet,
  writeArchiveSet,
} from '../../oci/archive-set/archive-set-writer.js';
import type { ArchiveBase } from '../../oci/archive-set/archive-index.js';
import type { ImageSession } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
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
export async function writeImageSetArchive(
  set: ArchivableSet,
  directory: string,
  options: ArchiveImageSetOptions,
): Promise<{ written: WrittenArchive; lock: ImageSetLock }> {
  for (;;) {
    const sources = createSources(options);
    const lock = set.lock();
    try {
      const images = lock.images.flatMap(getArchivedImages);
      const blobs = sources.getBlobs(set.transfers());
      const written = await writeArchiveSet(directory, images, blobs, toWriteOptions(lock, options));
      return { written, lock };
    } catch (error) {
      const [failed] = sources.failures.values();
      if (failed === undefined || options.session.signal?.aborted) throw error;
      await set.skip(failed.targetName, failed.error);
    } finally {
      await sources.places.close();
    }
  }
}

/** Plans the archive of an image set as `writeImageSetArchive` does; writes nothing. Throws OpmateError. */
export function forecastArchive(
  set: Pick<ArchivableSet, 'transfers'>,
  lock: ImageSetLock,
  directory: string,
  options: ArchiveImageSetOptions,
): Promise<ArchiveForecast> {
  const blobs = createSources(options).getBlobs(set.transfers());
  const images = lock.images.flatMap(getArchivedImages);
  return forecastArchiveSet(directory, images, blobs, toWriteOptions(lock, options));
}

function toWriteOptions(lock: ImageSetLock, options: ArchiveImageSetOptions): WriteArchiveOptions {
  const { signal, logger } = options.session;
  return { ...options, signal, logger, carried: listCarried(lock.images), lock: encodeLock(lock) };
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

/** Opens the blobs of an image set. */
function createSources({ session, imageTimeoutMs }: ArchiveImageSetOptions) {
  const { signal } = session;
  const places = createPlaces(session);
  const clocks = new Map<string, ImageClock>();
  /** Images with an unreadable blob, by its digest. */
  const failures = new Map<string, { targetName: string; error: OpmateError }>();
  const openBlob = async (
    transfer: PinnedTransfer,
    digest: string,
    read: (repository: Repository, limits: CancelOptions) => Promise<Readable>,
  ): Promise<Readable> => {
    const { targetName } = transfer;
    const note = (error: unknown): void => {
      const isFailure = error instanceof OpmateError && error.code !== 'CANCELLED';
      if (isFailure) failures.set(digest, { targetName, error });
    };
    const open = async (limits: CancelOptions): Promise<Readable> =>
      read((await places.openSource(transfer)).repository, limits);
    failures.delete(digest);
    try {
      if (imageTimeoutMs === undefined) return (await open({ signal })).once('error', note);
      const clock = getOrAdd(clocks, targetName, () => new ImageClock(targetName, imageTimeoutMs));
      return (await clock.watch(open, { signal })).once('error', note);
    } catch (error) {
      note(error);
      throw error;
    }
  };
  const toStream = (bytes: Buffer): Readable => Readable.from([bytes], { objectMode: false });
  return {
    places,
    failures,
    getBlobs(transfers: readonly PinnedTransfer[]): ArchivedBlob[] {
      const blobs = new Map<string, ArchivedBlob>();
      for (const transfer of transfers) {
        const { target } = transfer;
        const repository = target.transport === 'docker' ? target.repository : undefined;
        for (const { descriptor, bytes, blobs: own } of transfer.contents.manifests) {
          const { digest } = descriptor;
          const openManifest = (): Promise<Readable> =>
            openBlob(transfer, digest, async (source, limits) =>
              toStream((await source.getManifest(digest, limits)).bytes),
            );
          const open = bytes === undefined ? openManifest : () => Promise.resolve(toStream(bytes));
          blobs.set(digest, { descriptor, repository, open });
          for (const blob of own) {
            if (blobs.has(blob.digest)) continue;
            blobs.set(blob.digest, {
              descriptor: blob,
              repository,
              open: () => openBlob(transfer, blob.digest, (source, limits) => source.openBlob(blob, limits)),
            });
          }
        }
      }
      return [...blobs.values()];
    },
  };
}
