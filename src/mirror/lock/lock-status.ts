import { readdir } from 'node:fs/promises';
import type { CancelOptions } from '../../core/concurrency.js';
import { firstBy } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { type ArchiveIndex, archiveIndexName } from '../../oci/archive-set/archive-index.js';
import { readUnfinishedArchives } from '../../oci/archive-set/archive-directory.js';
import { openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import { type TransferOptions, isComplete } from '../transfer/transfer-types.js';
import { surveyTransfers } from '../transfer/transfer.js';
import { type BytePlan, type CatalogContents, createPresence, planBytes } from './byte-plan.js';
import { encodeLock, planOf } from './encode-lock.js';
import { type ImageSetLock, type LockedImage, getLockedName } from './lock.js';
import { type LockPlanOptions, getTargetName, toTransfers } from './lock-plan.js';
import { parseLock } from './parse-lock.js';
import { assignShards } from './shard.js';

/** Progress of mirroring a lock to a destination. */
export interface LockStatus {
  isComplete: boolean;
  images: { total: number; complete: number };
  /** Each blob counts once. */
  blobs: { total: number; left: number };
  bytes: { total: number; left: number };
  /** Catalogs of the lock by their names at the destination. */
  catalogs: { image: string; isComplete: boolean }[];
  /** By name, then catalog, which is set for a package in several catalogs. */
  packages: ({ name: string; catalog?: string | undefined } & PartStatus)[];
  /** By index, if the number of shards is set; catalogs belong to no shard. */
  shards?: ({ shard: number } & PartStatus)[] | undefined;
  /** Names of incomplete images. */
  incomplete: string[];
  /** The archive in a directory; undefined if none is finished. */
  archive?: { id: string; base: string | undefined; isOfLock: boolean } | undefined;
}

interface PartStatus {
  images: number;
  complete: number;
  /** Bytes of the blobs that its images lack, each counted once; a blob of several parts counts for each. */
  bytesLeft: number;
}

/** The state of a destination. */
interface DestinationState {
  getName: (image: LockedImage) => string;
  isComplete: (image: LockedImage) => boolean;
  hasBlob: (digest: string) => boolean;
}

/**
 * Reads the status of a lock from a registry: one request per manifest, and per blob of missing manifests. Writes
 * nothing. Throws OpmateError if the registry is unavailable.
 */
export async function readRegistryStatus(
  lock: ImageSetLock,
  options: LockPlanOptions & {
    transfer: TransferOptions;
    /** Number of shards that share the lock. */
    shards?: number | undefined;
  },
): Promise<LockStatus> {
  const { surveyed } = await surveyTransfers(toTransfers(lock, options), {
    ...options.transfer,
    isExact: true,
  });
  const getName = (image: LockedImage): string => getTargetName(image, options.target);
  const complete = new Set(surveyed.filter(isComplete).map(({ targetName }) => targetName));
  const state: DestinationState = {
    getName,
    isComplete: (image) => complete.has(getName(image)),
    hasBlob: createPresence(surveyed),
  };
  const { shards } = options;
  return {
    ...getStatus(lock, state),
    ...(shards !== undefined && { shards: getShardStatus(lock, shards, state) }),
  };
}

function getShardStatus(lock: ImageSetLock, count: number, state: DestinationState): LockStatus['shards'] {
  const images = lock.images.filter(({ kind }) => kind !== 'catalog');
  const shards = assignShards(images, count);
  return Array.from({ length: count }, (_, shard) => {
    const own = images.filter((_image, i) => shards[i] === shard);
    const left = own.filter((image) => !state.isComplete(image));
    const { bytes } = planMissing(left, [], state);
    return { shard, images: own.length, complete: own.length - left.length, bytesLeft: bytes };
  });
}

/**
 * Reads the status of a lock from an archive directory: a finished archive, whose base is assumed to be available, and an
 * unfinished one. Complete requires that a finished archive lists all images. Throws OpmateError for a damaged archive,
 * and NOT_FOUND for a missing directory.
 */
export async function readArchiveStatus(
  lock: ImageSetLock,
  directory: string,
  options: CancelOptions = {},
): Promise<LockStatus> {
  const unfinished = await readUnfinishedArchives(directory, options);
  const index = await readFinishedIndex(directory);
  const present = new Set<string>([...(index?.blobs.keys() ?? []), ...(index?.inBase.keys() ?? [])]);
  for (const { index: partial, written } of unfinished) {
    for (const digest of partial.blobs.keys()) if (written.has(digest)) present.add(digest);
    for (const digest of partial.inBase.keys()) present.add(digest);
  }
  const hasBlob = (digest: string): boolean => present.has(digest);
  const status = getStatus(lock, {
    getName: getLockedName,
    isComplete: ({ contents }) =>
      contents.manifests.every(
        ({ descriptor, blobs }) => hasBlob(descriptor.digest) && blobs.every(({ digest }) => hasBlob(digest)),
      ),
    hasBlob,
  });
  const names = new Map(
    (index?.images ?? []).map(({ repository, tag, descriptor: { digest } }) => [
      tag === undefined ? `${repository}@${digest}` : `${repository}:${tag}`,
      digest,
    ]),
  );
  const isListed = lock.images.every(
    (image) => names.get(getLockedName(image)) === image.contents.root.digest,
  );
  return {
    ...status,
    isComplete: status.isComplete && index !== undefined && isListed,
    archive: index && { id: index.id, base: index.base, isOfLock: isSameLock(index.lock, lock) },
  };
}

function isSameLock(text: string, lock: ImageSetLock): boolean {
  return (
    text === encodeLock(lock) ||
    planOf(parseLock(text, 'the lock of the archive', 'reference')) === planOf(lock)
  );
}

/**
 * Returns the lock of the archive in a directory, or with `unfinished` of the archive being written; undefined if missing.
 * Throws OpmateError.
 */
export async function readLockOfArchive(
  directory: string,
  { unfinished, ...options }: CancelOptions & { unfinished: boolean },
): Promise<ImageSetLock | undefined> {
  const index = unfinished
    ? (await readUnfinishedArchives(directory, options))[0]?.index
    : await readFinishedIndex(directory);
  return index && parseLock(index.lock, `${directory}: the lock of the archive`, 'reference');
}

async function readFinishedIndex(directory: string): Promise<ArchiveIndex | undefined> {
  if (!(await readdir(directory)).includes(archiveIndexName)) return undefined;
  const archive = await openArchiveSets([directory]);
  await archive.close();
  return archive.index;
}

function getStatus(lock: ImageSetLock, state: DestinationState): LockStatus {
  const plan = planBytes(lock.images, state.hasBlob, lock.catalogs);
  const incomplete = lock.images.filter((image) => !state.isComplete(image));
  const toKey = ({ name, catalog }: { name: string; catalog?: string | undefined }): string =>
    JSON.stringify([name, catalog]);
  const left = firstBy(planMissing(incomplete, lock.catalogs, state).packages, toKey);
  return {
    isComplete: incomplete.length === 0,
    images: { total: lock.images.length, complete: lock.images.length - incomplete.length },
    blobs: { total: plan.blobs, left: plan.blobs - plan.presentBlobs },
    bytes: { total: plan.bytes, left: plan.bytes - plan.presentBytes },
    catalogs: lock.images
      .filter(({ kind }) => kind === 'catalog')
      .map((image) => ({ image: state.getName(image), isComplete: state.isComplete(image) })),
    packages: plan.packages.map(({ name, catalog, images }) => {
      const missing = left.get(toKey({ name, catalog }));
      return {
        name,
        ...(catalog !== undefined && { catalog }),
        images,
        complete: images - (missing?.images ?? 0),
        bytesLeft: missing?.bytes ?? 0,
      };
    }),
    incomplete: incomplete.map(state.getName).sort(compareBytes),
  };
}

/** Sums up the blobs that images lack. */
function planMissing(
  images: readonly LockedImage[],
  catalogs: CatalogContents,
  { hasBlob }: DestinationState,
): BytePlan {
  const lacking = images.map(({ bundles, contents }) => {
    const manifests = contents.manifests.map((manifest) => ({
      ...manifest,
      blobs: manifest.blobs.filter(({ digest }) => !hasBlob(digest)),
    }));
    return { bundles, contents: { ...contents, manifests } };
  });
  return planBytes(lacking, () => false, catalogs);
}
