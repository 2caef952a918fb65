import { readdir } from 'node:fs/promises';
import { compareBytes } from '../../core/order.js';
import type { CancelOptions } from '../../core/concurrency.js';
import type { ImageContents } from '../../oci/image/contents.js';
import { openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import { type ArchiveIndex, archiveIndexName } from '../../oci/archive-set/archive-index.js';
import { readUnfinishedArchives } from '../../oci/archive-set/archive-progress.js';
import { planBytes } from './byte-plan.js';
import { type ImageSetLock, type LockedImage, encodeLock, nameOfLocked, parseLock, planOf } from './lock.js';
import { type LockedTransfersOptions, getTargetName, transfersOfLock } from './locked-transfers.js';
import { assignShards } from './shard.js';
import { createPresence } from './surveyed-set.js';
import { surveyTransfers } from '../transfer/transfer.js';
import { type TransferOptions, isComplete } from '../transfer/transfer-types.js';

/** What of a lock is in its place, and what is left to copy. */
export interface LockStatus {
  isComplete: boolean;
  images: { total: number; complete: number };
  /** Each once. */
  blobs: { total: number; left: number };
  bytes: { total: number; left: number };
  /** The catalogs of the lock by their names there. */
  catalogs: { image: string; isComplete: boolean }[];
  /** By name. */
  packages: PackageStatus[];
  /** By index, where the number of shards is given; catalogs are no shard's. */
  shards?: ShardStatus[] | undefined;
  /** Names of the images that are not complete. */
  incomplete: string[];
  /** What is there where the place is a directory; undefined where no archive is finished. */
  archive?: { id: string; base: string | undefined; isOfLock: boolean } | undefined;
}

interface PackageStatus {
  name: string;
  images: number;
  complete: number;
  /** Of the blobs that its images lack, each once. */
  bytesLeft: number;
}

interface ShardStatus {
  shard: number;
  images: number;
  complete: number;
  /** Of the blobs that its images lack, each once; those that several shards need are in each of them. */
  bytesLeft: number;
}

/** What is known of a place. */
interface PlaceView {
  nameOf: (image: LockedImage) => string;
  isComplete: (image: LockedImage) => boolean;
  hasBlob: (digest: string) => boolean;
}

/**
 * Asks a registry what it has of a lock: one request a manifest, and one a blob of those manifests that are not
 * there. Writes nothing. Throws OpmateError if the registry is unavailable.
 */
export async function readRegistryStatus(
  lock: ImageSetLock,
  options: LockedTransfersOptions & {
    transfer: TransferOptions;
    /** Number of shards that share the lock. */
    shards?: number | undefined;
  },
): Promise<LockStatus> {
  const transfers = transfersOfLock(lock, options);
  const { surveyed } = await surveyTransfers(transfers, {
    ...options.transfer,
    isExact: true,
  });
  const complete = new Set(surveyed.filter(isComplete).map(({ targetName }) => targetName));
  const view: PlaceView = {
    nameOf: (image) => getTargetName(image, options.target),
    isComplete: (image) => complete.has(getTargetName(image, options.target)),
    hasBlob: createPresence(surveyed),
  };
  const shards = options.shards === undefined ? undefined : shardStatus(lock, options.shards, view);
  return { ...getStatus(lock, view), ...(shards && { shards }) };
}

function shardStatus(lock: ImageSetLock, count: number, view: PlaceView): ShardStatus[] {
  const images = lock.images.filter(({ kind }) => kind !== 'catalog');
  const shards = assignShards(images, count);
  return Array.from({ length: count }, (_, shard) => {
    const own = images.filter((_image, i) => shards[i] === shard);
    const left = own.filter((image) => !view.isComplete(image));
    const { bytes } = planBytes(
      left.map((image) => withoutBlobs(image, view.hasBlob)),
      () => false,
    );
    return { shard, images: own.length, complete: own.length - left.length, bytesLeft: bytes };
  });
}

/**
 * Looks what a directory has of a lock: in the archive there, whose base is taken to be at hand, and in one that is
 * being written. Complete is what a finished archive names; of an unfinished one the images are told of which
 * everything is there. Throws OpmateError for an archive that lacks a part or cannot be read, and NOT_FOUND where
 * there is no directory.
 */
export async function readArchiveStatus(
  lock: ImageSetLock,
  directory: string,
  options: CancelOptions = {},
): Promise<LockStatus> {
  const unfinished = await readUnfinishedArchives(directory, options);
  const index = await readFinished(directory);
  const there = new Set<string>();
  const add = (from: ArchiveIndex, isThere: (digest: string) => boolean): void => {
    for (const digest of from.blobs.keys()) if (isThere(digest)) there.add(digest);
    for (const digest of from.inBase.keys()) there.add(digest);
  };
  if (index !== undefined) add(index, () => true);
  for (const archive of unfinished) add(archive.index, (digest) => archive.written.has(digest));
  const has = (digest: string): boolean => there.has(digest);
  const status = getStatus(lock, {
    nameOf: nameOfLocked,
    isComplete: ({ contents }) => getDigests(contents).every(has),
    hasBlob: has,
  });
  const names = new Map(
    (index?.images ?? []).map((image) => [nameOfArchived(image), image.descriptor.digest]),
  );
  const isNamed = lock.images.every((image) => names.get(nameOfLocked(image)) === image.contents.root.digest);
  return {
    ...status,
    isComplete: status.isComplete && index !== undefined && isNamed,
    archive: index && { id: index.id, base: index.base, isOfLock: isSameLock(index.lock, lock) },
  };
}

function isSameLock(text: string, lock: ImageSetLock): boolean {
  return text === encodeLock(lock) || planOf(parseLock(text, 'the lock of the archive')) === planOf(lock);
}

/**
 * The lock that the archive in a directory is made of, or with `unfinished` that of the one that is being written;
 * undefined if missing. Throws OpmateError.
 */
export async function readLockOfArchive(
  directory: string,
  { unfinished, ...options }: CancelOptions & { unfinished: boolean },
): Promise<ImageSetLock | undefined> {
  const index = unfinished
    ? (await readUnfinishedArchives(directory, options))[0]?.index
    : await readFinished(directory);
  return index && parseLock(index.lock, `${directory}: the lock of the archive`);
}

async function readFinished(directory: string): Promise<ArchiveIndex | undefined> {
  if (!(await readdir(directory)).includes(archiveIndexName)) return undefined;
  const archive = await openArchiveSets([directory]);
  await archive.close();
  return archive.index;
}

function getDigests({ manifests }: ImageContents): string[] {
  return manifests.flatMap(({ descriptor, blobs }) => [
    descriptor.digest,
    ...blobs.map(({ digest }) => digest),
  ]);
}

function nameOfArchived({ repository, tag, descriptor }: ArchiveIndex['images'][number]): string {
  return tag === undefined ? `${repository}@${descriptor.digest}` : `${repository}:${tag}`;
}

function getStatus(lock: ImageSetLock, view: PlaceView): LockStatus {
  const plan = planBytes(lock.images, view.hasBlob);
  const incomplete = lock.images.filter((image) => !view.isComplete(image));
  const lacking = new Set(incomplete);
  const left = new Map(
    planBytes(
      incomplete.map((image) => withoutBlobs(image, view.hasBlob)),
      () => false,
    ).packages.map(({ name, images, bytes }) => [name, { images, bytes }]),
  );
  return {
    isComplete: incomplete.length === 0,
    images: { total: lock.images.length, complete: lock.images.length - incomplete.length },
    blobs: { total: plan.blobs, left: plan.blobs - plan.presentBlobs },
    bytes: { total: plan.bytes, left: plan.bytes - plan.presentBytes },
    catalogs: lock.images
      .filter(({ kind }) => kind === 'catalog')
      .map((image) => ({ image: view.nameOf(image), isComplete: !lacking.has(image) })),
    packages: plan.packages.map(({ name, images }) => ({
      name,
      images,
      complete: images - (left.get(name)?.images ?? 0),
      bytesLeft: left.get(name)?.bytes ?? 0,
    })),
    incomplete: incomplete.map(view.nameOf).sort(compareBytes),
  };
}

/** An image with only those blobs that are not there. */
function withoutBlobs(image: LockedImage, hasBlob: (digest: string) => boolean): LockedImage {
  const manifests = image.contents.manifests.map((manifest) => ({
    ...manifest,
    blobs: manifest.blobs.filter(({ digest }) => !hasBlob(digest)),
  }));
  return { ...image, contents: { ...image.contents, manifests } };
}
