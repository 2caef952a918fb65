import { getOrAdd } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { type ImageContents, getBlobs } from '../../oci/image/contents.js';
import type { Descriptor } from '../../oci/image/types.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import type { SetImage } from '../plan/planned-image.js';
import type { LockedReleases } from './locked-releases.js';

/** Name of the lock file below `working-dir` and in archives. */
export const lockName = 'opmate.lock.json';

/** Version of the file format: written, and maximum read. */
export const lockFormatVersion = 1;

/**
 * An image set with every reference pinned to digest and size. Independent of the destination, so one lock serves any
 * target, archives included.
 */
export interface ImageSetLock {
  /** Digest of the bytes of the configuration. */
  configuration: string;
  /** Command-line options that affect the selection, such as `dependencies`. */
  options: Readonly<Record<string, string>>;
  catalogs: LockedCatalog[];
  /** In the order of the configuration. */
  charts?: LockedChart[] | undefined;
  releases?: LockedReleases | undefined;
  /** By kind, then source, then name. */
  images: LockedImage[];
}

/** A catalog of the set with the selected content. */
export interface LockedCatalog {
  /** Reference as written in the configuration. */
  catalog: string;
  /** Digest of the source image. */
  sourceDigest: string;
  /** Path below the target. */
  repository: string;
  tag: string;
  isWhole: boolean;
  /** Set for a sqlite index. */
  isDatabase?: boolean | undefined;
  /** Set for a catalog of an earlier run that the last one skipped; it is only kept at the target. */
  isHeld?: boolean | undefined;
  targetCatalogSourceTemplate?: LockedTemplate | undefined;
  /** References removed from `relatedImages` of its bundles. */
  withoutImages?: readonly string[] | undefined;
  /** By name. */
  packages: LockedPackage[];
}

/** A Helm chart of the set, and the artifact for it if charts are mirrored too. */
export interface LockedChart {
  /** URL of its repository, or its path, as written in the configuration. */
  source: string;
  name: string;
  version: string;
  /** Path below the target. */
  repository: string;
  tag: string;
}

/** A CatalogSource template. */
export interface LockedTemplate {
  /** File as named in the configuration. */
  file: string;
  /** Content; undefined in locks of older versions. */
  text: string | undefined;
}

/** A package of a catalog with the selected content. */
export interface LockedPackage {
  name: string;
  defaultChannel: string;
  /** In the order of the catalog. */
  channels: { name: string; head: string }[];
  /** By version. */
  bundles: { name: string; version: string }[];
}

/** An image of the set. */
export interface LockedImage {
  kind: SetImage['kind'] | 'signature';
  /** Reference as written in the catalog or configuration; of a signature the signed image. */
  reference: string;
  /** Reference with transport, as in a mapping file. */
  source: string;
  /** References to the same image in other source repositories that share its name at the target. */
  aliases?: readonly string[] | undefined;
  /** Path below the target. */
  repository: string;
  /** Undefined for an image that is identified by digest only. */
  tag: string | undefined;
  bundles: { package: string; bundle: string }[];
  contents: ImageContents;
  /** Set for an image of an earlier run that the last one skipped; it is only kept at the target. */
  isHeld?: boolean | undefined;
  /** Result of signature verification, if the run verified signatures. */
  verification?: Verdict | undefined;
}

/** Limits of a lock file; what is written can be read again. */
export const lockLimits = {
  bytes: 256 * 1024 * 1024,
  manifests: 1_000_000,
  blobs: 10_000_000,
  /** As in `copyImage`. */
  manifestsOfImage: 20_000,
  depth: 16,
  reasonLength: 2000,
} as const;

/** Returns the blobs of a lock by digest. */
export function getLockBlobs(lock: ImageSetLock): Map<string, Descriptor> {
  const blobs = new Map<string, Descriptor>();
  for (const { contents } of lock.images) {
    for (const [digest, blob] of getBlobs(contents)) getOrAdd(blobs, digest, () => blob);
  }
  return blobs;
}

/** Returns the lock without content that is only kept at the target of an earlier run. */
export function withoutHeld(lock: ImageSetLock): ImageSetLock {
  const isCurrent = ({ isHeld }: { isHeld?: boolean | undefined }): boolean => isHeld !== true;
  return { ...lock, catalogs: lock.catalogs.filter(isCurrent), images: lock.images.filter(isCurrent) };
}

/** Returns the lock without the artifacts of its charts. */
export function withoutCharts(lock: ImageSetLock): ImageSetLock {
  return { ...lock, images: lock.images.filter(({ kind }) => kind !== 'chart') };
}

/** Returns `repository:tag`, or `repository@digest` for an image without a tag. */
export function getLockedName({ repository, tag, contents }: LockedImage): string {
  return tag === undefined ? `${repository}@${contents.root.digest}` : `${repository}:${tag}`;
}

/** Reports whether two images have the same name below a target. */
export function isSameName(
  a: { repository: string; tag?: string | undefined },
  b: { repository: string; tag?: string | undefined },
): boolean {
  return a.repository === b.repository && a.tag === b.tag;
}

/** Compares images by their order in a lock. */
export function compareLocked(a: LockedImage, b: LockedImage): number {
  return (
    compareBytes(a.kind, b.kind) ||
    compareBytes(a.source, b.source) ||
    compareBytes(getLockedName(a), getLockedName(b))
  );
}

/** Returns a manifest and those below it, listed ones first; those nested deeper than the limit are left out. */
export function listManifestTree(root: string, getListed: (digest: string) => readonly string[]): string[] {
  const entered = new Set<string>();
  const order: string[] = [];
  const visit = (digest: string, depth: number): void => {
    if (entered.has(digest) || depth > lockLimits.depth) return;
    entered.add(digest);
    for (const listed of getListed(digest)) visit(listed, depth + 1);
    order.push(digest);
  };
  visit(root, 1);
  return order;
}
