import { compareBytes } from '../../core/order.js';
import type { LockedImage } from './lock.js';

/** What copying images means in bytes, before any blob is read. */
export interface BytePlan {
  images: number;
  manifests: number;
  /** Blobs, each once, and their bytes. */
  blobs: number;
  bytes: number;
  /** Of these what the target, or archive, has already. */
  presentBlobs: number;
  presentBytes: number;
  /** By name; images that belong to no package are not among them. */
  packages: PackageBytes[];
}

interface PackageBytes {
  name: string;
  images: number;
  /** All that its images need, each blob once. */
  bytes: number;
  /** Of these, what no other package needs, and no image that belongs to none: what leaving it out would save. */
  ownBytes: number;
}

/** A blob of a plan, and which packages need it. */
interface PlannedBlob {
  size: number;
  /** Those of the image where it was found first, a set of its own when there are more. */
  packages: ReadonlySet<string>;
  /** Whether an image needs it that belongs to no package. */
  isShared: boolean;
}

/** Sums up images; `isPresent` says of a blob in a repository whether it need not be sent there. */
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
      const known = packages.get(name) ?? { name, images: 0, bytes: 0, ownBytes: 0 };
      known.images++;
      packages.set(name, known);
    }
    for (const manifest of contents.manifests) {
      manifests.add(manifest.descriptor.digest);
      for (const { digest, size } of manifest.blobs) {
        const isShared = names.size === 0;
        const blob = blobs.get(digest);
        if (blob === undefined) {
          blobs.set(digest, { size, packages: names, isShared });
          continue;
        }
        blob.isShared ||= isShared;
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
      const needing = packages.get(name) as PackageBytes;
      needing.bytes += size;
      if (names.size === 1 && !isShared) needing.ownBytes += size;
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
