import { getOrAdd } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { type ImageSetLock, getLockBlobs, getLockedName } from './lock.js';

/** Differences between two locks; all lists are sorted. */
export interface LockDiff {
  packages: { added: string[]; removed: string[] };
  /** `package/channel`; `changed` if the head differs. */
  channels: { added: string[]; removed: string[]; changed: { channel: string; from: string; to: string }[] };
  /** `package/bundle`. */
  bundles: { added: string[]; removed: string[] };
  /** `repository:tag`, or `repository@digest`; `changed` if the digest differs. */
  images: { added: string[]; removed: string[]; changed: { image: string; from: string; to: string }[] };
  /** Bytes of blobs, each counted once. */
  bytes: { added: number; removed: number };
}

/**
 * Compares two locks. Equal names in several catalogs count once; if their heads of a channel differ, all heads are
 * listed.
 */
export function diffLocks(from: ImageSetLock, to: ImageSetLock): LockDiff {
  const [before, after] = [getContents(from), getContents(to)];
  const { changed: changedChannels, ...channels } = compareMaps(before.channels, after.channels);
  const { changed: changedImages, ...images } = compareMaps(before.images, after.images);
  const [oldBlobs, newBlobs] = [getLockBlobs(from), getLockBlobs(to)];
  return {
    packages: compareSets(before.packages, after.packages),
    channels: {
      ...channels,
      changed: changedChannels.map(({ name, ...heads }) => ({ channel: name, ...heads })),
    },
    bundles: compareSets(before.bundles, after.bundles),
    images: {
      ...images,
      changed: changedImages.map(({ name, ...digests }) => ({ image: name, ...digests })),
    },
    bytes: { added: sumMissing(newBlobs, oldBlobs), removed: sumMissing(oldBlobs, newBlobs) },
  };
}

/** Returns the names of the images of a lock that another one does not have, whatever their digests. */
export function listRemovedImages(from: ImageSetLock, to: ImageSetLock): string[] {
  const names = new Set(to.images.map(getLockedName));
  return sortedByBytes(new Set(from.images.map(getLockedName).filter((name) => !names.has(name))));
}

/**
 * Returns the lock that a new one replaces, with the images of `older`, the one replaced before, that neither has: they are
 * at the target until they are deleted.
 */
export function joinReplaced(
  replaced: ImageSetLock,
  older: ImageSetLock | undefined,
  next: ImageSetLock,
): ImageSetLock {
  const names = new Set([...replaced.images, ...next.images].map(getLockedName));
  const left = (older?.images ?? []).filter((image) => !names.has(getLockedName(image)));
  return { ...replaced, images: [...replaced.images, ...left] };
}

/** Reports whether two locks mirror the same content. */
export function isSameSet({ packages, channels, bundles, images, bytes }: LockDiff): boolean {
  const isEmpty = (lists: object): boolean =>
    Object.values(lists).every((list: unknown[]) => list.length === 0);
  return [packages, channels, bundles, images].every(isEmpty) && bytes.added === 0 && bytes.removed === 0;
}

function getContents(lock: ImageSetLock) {
  const packages = lock.catalogs.flatMap((catalog) => catalog.packages);
  const heads = new Map<string, Set<string>>();
  for (const { name, channels } of packages) {
    for (const channel of channels) {
      getOrAdd(heads, `${name}/${channel.name}`, () => new Set()).add(channel.head);
    }
  }
  return {
    packages: new Set(packages.map(({ name }) => name)),
    channels: new Map([...heads].map(([channel, names]) => [channel, sortedByBytes(names).join(', ')])),
    bundles: new Set(
      packages.flatMap(({ name, bundles }) => bundles.map((bundle) => `${name}/${bundle.name}`)),
    ),
    images: new Map(lock.images.map((image) => [getLockedName(image), image.contents.root.digest])),
  };
}

function compareSets(from: ReadonlySet<string>, to: ReadonlySet<string>) {
  return {
    added: sortedByBytes([...to].filter((name) => !from.has(name))),
    removed: sortedByBytes([...from].filter((name) => !to.has(name))),
  };
}

function compareMaps(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>) {
  const changed = sortedByBytes(from.keys()).flatMap((name) => {
    const [before, after] = [from.get(name), to.get(name)];
    return before === undefined || after === undefined || before === after
      ? []
      : [{ name, from: before, to: after }];
  });
  return { ...compareSets(new Set(from.keys()), new Set(to.keys())), changed };
}

function sumMissing(
  blobs: ReadonlyMap<string, { size: number }>,
  others: ReadonlyMap<string, unknown>,
): number {
  let bytes = 0;
  for (const [digest, { size }] of blobs) if (!others.has(digest)) bytes += size;
  return bytes;
}
