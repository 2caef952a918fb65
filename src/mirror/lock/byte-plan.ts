import { getOrAdd, pushTo } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { toBundleKey } from '../plan/planned-image.js';
import { type SurveyedTransfer, getPresentBlobs } from '../transfer/transfer-types.js';
import type { LockedCatalog, LockedImage } from './lock.js';

/** Size of a copy before any blob is read; each blob counts once. */
export interface BytePlan {
  images: number;
  manifests: number;
  blobs: number;
  bytes: number;
  /** Blobs that the target, or archive, already has. */
  presentBlobs: number;
  presentBytes: number;
  /** By name, then catalog; images of no package are not included. */
  packages: PackageBytes[];
}

/** A package, or its part in one catalog where several catalogs of the set have it. */
interface PackageBytes {
  name: string;
  /** As written in the configuration; only of a package in several catalogs. */
  catalog?: string | undefined;
  images: number;
  /** Bytes of all blobs of its images. */
  bytes: number;
  /** Unique bytes: of blobs that only this package needs. */
  ownBytes: number;
}

interface PlannedBlob {
  size: number;
  /** Packages that need it. */
  packages: ReadonlySet<PackageBytes>;
  /** Set if an image of no package needs it too. */
  isShared: boolean;
}

/** The bundles of the catalogs of a set. */
export type CatalogContents = readonly Pick<LockedCatalog, 'catalog' | 'packages'>[];

/** Sums up images; `isPresent` reports whether a blob need not be sent. */
export function planBytes(
  images: readonly Pick<LockedImage, 'bundles' | 'contents'>[],
  isPresent: (digest: string) => boolean,
  catalogs: CatalogContents = [],
): BytePlan {
  const findCatalogs = createCatalogIndex(catalogs);
  const blobs = new Map<string, PlannedBlob>();
  const manifests = new Set<string>();
  const packages = new Map<string, PackageBytes>();
  const getPackage = (name: string, catalog: string | undefined): PackageBytes =>
    getOrAdd(packages, JSON.stringify([name, catalog]), () => ({
      name,
      images: 0,
      bytes: 0,
      ownBytes: 0,
      ...(catalog !== undefined && { catalog }),
    }));
  for (const { bundles, contents } of images) {
    const owners = new Set(
      bundles.flatMap((bundle) => findCatalogs(bundle).map((catalog) => getPackage(bundle.package, catalog))),
    );
    for (const owner of owners) owner.images++;
    for (const manifest of contents.manifests) {
      manifests.add(manifest.descriptor.digest);
      for (const { digest, size } of manifest.blobs) {
        const blob = getOrAdd(blobs, digest, () => ({ size, packages: owners, isShared: false }));
        blob.isShared ||= owners.size === 0;
        // Most blobs have the same packages as their first image, and share its set.
        if (![...owners].every((owner) => blob.packages.has(owner)))
          blob.packages = new Set([...blob.packages, ...owners]);
      }
    }
  }
  const plan = { bytes: 0, presentBlobs: 0, presentBytes: 0 };
  for (const [digest, { size, packages: owners, isShared }] of blobs) {
    plan.bytes += size;
    if (isPresent(digest)) {
      plan.presentBlobs++;
      plan.presentBytes += size;
    }
    for (const owner of owners) {
      owner.bytes += size;
      if (owners.size === 1 && !isShared) owner.ownBytes += size;
    }
  }
  return {
    images: images.length,
    manifests: manifests.size,
    blobs: blobs.size,
    ...plan,
    packages: [...packages.values()].sort(
      (a, b) => compareBytes(a.name, b.name) || compareBytes(a.catalog ?? '', b.catalog ?? ''),
    ),
  };
}

/**
 * Returns a function that returns the catalogs with a bundle if several have its package; otherwise one undefined, also for a
 * bundle that no catalog has.
 */
function createCatalogIndex(catalogs: CatalogContents) {
  const byPackage = new Map<string, Set<string>>();
  const byBundle = new Map<string, string[]>();
  for (const { catalog, packages } of catalogs) {
    for (const { name, bundles } of packages) {
      getOrAdd(byPackage, name, () => new Set()).add(catalog);
      for (const bundle of bundles)
        pushTo(byBundle, toBundleKey({ package: name, bundle: bundle.name }), catalog);
    }
  }
  return (bundle: LockedImage['bundles'][number]): readonly (string | undefined)[] => {
    const isShared = (byPackage.get(bundle.package)?.size ?? 0) > 1;
    return (isShared ? byBundle.get(toBundleKey(bundle)) : undefined) ?? [undefined];
  };
}

/** Returns the size of a copy after a survey of the target. */
export function planSurveyed(
  images: readonly LockedImage[],
  surveyed: readonly SurveyedTransfer[],
  catalogs: CatalogContents,
): BytePlan {
  return planBytes(images, createPresence(surveyed), catalogs);
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
