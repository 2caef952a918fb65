import { OpmateError } from '../core/errors.js';
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

export interface PackageBytes {
  name: string;
  images: number;
  /** All that its images need, each blob once. */
  bytes: number;
  /** What would not be copied without it. */
  ownBytes: number;
}

/** Sums up images; `isPresent` says of a blob in a repository whether it need not be sent there. */
export function planBytes(images: readonly LockedImage[], isPresent: (digest: string) => boolean): BytePlan {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [images, isPresent] });
}
