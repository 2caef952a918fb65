import { getOrAdd } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { type ImageSetLock, blobsOfLock, nameOfLocked } from './lock.js';

/** What one lock has and the other has not. */
export interface LockDiff {
  packages: { added: string[]; removed: string[] };
  /** `package/channel`; `changed` has another head. */
  channels: { added: string[]; removed: string[]; changed: { channel: string; from: string; to: string }[] };
  /** `package/bundle`. */
  bundles: { added: string[]; removed: string[] };
  /** `repository:tag`, or `repository@digest`; `changed` has the same name and another digest. */
  images: { added: string[]; removed: string[]; changed: { image: string; from: string; to: string }[] };
  /** Of blobs, each once. */
  bytes: { added: number; removed: number };
}

/**
 * Compares two locks; every list is sorted. What several catalogs have of one name counts once; of a channel that
 * has several heads so, all are told.
 */
export function diffLocks(from: ImageSetLock, to: ImageSetLock): LockDiff {
  const [before, after] = [getContents(from), getContents(to)];
  const { changed: changedChannels, ...channels } = compareMaps(before.channels, after.channels);
  const { changed: changedImages, ...images } = compareMaps(before.images, after.images);
  const [oldBlobs, newBlobs] = [blobsOfLock(from), blobsOfLock(to)];
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
    bytes: { added: bytesBeside(newBlobs, oldBlobs), removed: bytesBeside(oldBlobs, newBlobs) },
  };
}

/** Whether two locks mirror the same. */
export function isSameSet({ packages, channels, bundles, images, bytes }: LockDiff): boolean {
  const isEmpty = (lists: object): boolean =>
    Object.values(lists).every((list: unknown[]) => list.length === 0);
  return [packages, channels, bundles, images].every(isEmpty) && bytes.added === 0 && bytes.removed === 0;
}

interface NamedContents {
  packages: Set<string>;
  /** By `package/channel` the head. */
  channels: Map<string, string>;
  bundles: Set<string>;
  /** By name the digest. */
  images: Map<string, string>;
}

function getContents(lock: ImageSetLock): NamedContents {
  const packages = lock.catalogs.flatMap((catalog) => catalog.packages);
  const heads = new Map<string, Set<string>>();
  for (const { name, channels } of packages) {
    for (const channel of channels) {
      const key = `${name}/${channel.name}`;
      getOrAdd(heads, key, () => new Set()).add(channel.head);
    }
  }
  return {
    packages: new Set(packages.map(({ name }) => name)),
    channels: new Map([...heads].map(([channel, names]) => [channel, sortedByBytes(names).join(', ')])),
    bundles: new Set(
      packages.flatMap(({ name, bundles }) => bundles.map((bundle) => `${name}/${bundle.name}`)),
    ),
    images: new Map(lock.images.map((image) => [nameOfLocked(image), image.contents.root.digest])),
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

function bytesBeside(
  blobs: ReadonlyMap<string, { size: number }>,
  others: ReadonlyMap<string, unknown>,
): number {
  let bytes = 0;
  for (const [digest, { size }] of blobs) if (!others.has(digest)) bytes += size;
  return bytes;
}
