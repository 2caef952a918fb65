import { OpmateError } from '../core/errors.js';
import type { ImageContents } from '../oci/contents.js';
import type { Descriptor } from '../oci/types.js';
import type { PlannedImage } from './image-set-plan.js';

/** Name of the lock file below `working-dir` and in archives. */
export const lockName = 'opmate.lock.json';

/**
 * An image set with every reference pinned to digest and size: what was, or is to be, mirrored. Independent of
 * where to, so that one lock serves any target, archives included.
 */
export interface ImageSetLock {
  /** `sha256:…` of the bytes of the configuration. */
  configuration: string;
  /** Which options of the command line shaped the selection, e.g. `dependencies`. */
  options: Readonly<Record<string, string>>;
  catalogs: LockedCatalog[];
  /** By kind, then source, then name. */
  images: LockedImage[];
}

/** A catalog of the set, and what of it. */
export interface LockedCatalog {
  /** As the configuration writes it. */
  catalog: string;
  /** Of the image that the catalog was read from. */
  sourceDigest: string;
  /** Path below the target and tag. */
  repository: string;
  tag: string;
  isWhole: boolean;
  targetCatalogSourceTemplate?: string | undefined;
  /** By name. */
  packages: LockedPackage[];
}

export interface LockedPackage {
  name: string;
  defaultChannel: string;
  /** In the order of the catalog. */
  channels: { name: string; head: string }[];
  /** By version. */
  bundles: { name: string; version: string }[];
}

/** An image of the set, to the byte. */
export interface LockedImage {
  kind: PlannedImage['kind'] | 'signature';
  /** As the catalog or configuration writes it; of a signature that of the image that it signs. */
  reference: string;
  /** What it was found by, as in the left side of a mapping line. */
  source: string;
  /** Path below the target, and the tag there; no tag where a digest is all that names it. */
  repository: string;
  tag: string | undefined;
  bundles: { package: string; bundle: string }[];
  contents: ImageContents;
}

/** The blobs of a lock by digest, each once. */
export function blobsOfLock(lock: ImageSetLock): Map<string, Descriptor> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: lock });
}

/** A lock as the text of its file: equal locks have equal bytes. */
export function encodeLock(lock: ImageSetLock): string {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: lock });
}

/** Reads a lock file, checking all of it. Throws OpmateError SYNTAX, INVALID, LIMIT or UNSUPPORTED (newer version). */
export function parseLock(text: string, file: string): ImageSetLock {
  throw new OpmateError('INTERNAL', `${file}: not built yet`, { cause: text });
}
