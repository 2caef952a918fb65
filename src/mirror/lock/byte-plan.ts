import { getOrAdd } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { type SurveyedTransfer, getPresentBlobs } from '../transfer/transfer-types.js';
import type { LockedImage } from './lock.js';

/** Size of a copy before any blob is read; each blob counts once. */
export interface BytePlan {
  images: number;
  manifests: number;
  blobs: number;
  bytes: number;
  /** Blobs that the target, or archive, already has. */
  presentBlobs: number;
  presentBytes: number;
  /** By name; images of no package are not included. */
  packages: PackageBytes[];
}

interface PackageBytes {
  name: string;
  images: number;
  /** Bytes of all blobs of its images. */
  bytes: number;
  /** Unique bytes: of blobs that only this package needs. */
  ownBytes: number;
}

interface PlannedBlob {
  size: number;
  /** Packages that need it. */
  packages: ReadonlySet<string>;
  /** Set if an image of no package needs it too. */
  isShared: boolean;
}

/** Sums up images; `isPresent` reports whether a blob need not be sent. */
export function planBytes(
  images: readonly Pick<LockedImage, 'bundles' | 'contents'>[],
  isPresent: (digest: string) => boolean,
): BytePlan {
  const blobs = new Map<string, PlannedBlob>();
  const manifests = new Set<string>();
  const packages = new Map<string, PackageBytes>();
  for (const { bundles, contents } of images) {
    const names = new Set(bundles.map((bundle) => bundle.package));
    for (const name of names) {
      getOrAdd(packages, name, () => ({ name, images: 0, bytes: 0, ownBytes: 0 })).images++;
    }
    for (const manifest of contents.manifests) {
      manifests.add(manifest.descriptor.digest);
      for (const { digest, size } of manifest.blobs) {
        const blob = getOrAdd(blobs, digest, () => ({ size, packages: names, isShared: false }));
        blob.isShared ||= names.size === 0;
        // Most blobs have the same packages as their first image, and share its set.
        if (![...names].every((name) => blob.packages.has(name)))
          blob.packages = new Set([...blob.packages, ...names]);
      }
    }
  }
  const plan = { bytes: 0, presentBlobs: 0, presentBytes: 0 };
  for (const [digest, { size, packages: names, isShared }] of blobs) {
    plan.bytes += size;
    if (isPresent(digest)) {
      plan.presentBlobs++;
      plan.presentBytes += size;
    }
    for (const name of names) {
      const sums = packages.get(name) as PackageBytes;
      sums.bytes += size;
      if (names.size === 1 && !isShared) sums.ownBytes += size;
    }
  }
  return {
    images: images.length,
    manifests: manifests.size,
    blobs: blobs.size,
    ...plan,
    packages: [...packages.values()].sort((a, b) => compareBytes(a.name, b.name)),
  };
}

/** Returns the size of a copy after a survey of the target. */
export function planSurveyed(
  images: readonly LockedImage[],
  surveyed: readonly SurveyedTransfer[],
): BytePlan {
  return planBytes(images, createPresence(surveyed));
}

/**
 * Returns a predicate for blobs that need not be sent: a blob in any repository of the target can be mounted in the
 * others.
 */
export function createPresence(surveyed: readonly SurveyedTransfer[]): (digest: string) => boolean {
  const lacking = new Set(surveyed.flatMap(({ blobs }) => blobs.map(({ digest }) => digest)));
  const present = new Set(surveyed.flatMap(getPresentBlobs).map(({ digest }) => digest));
  return (digest) => present.has(digest) || !lacking.has(digest);
}
