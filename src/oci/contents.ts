import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { Logger } from '../core/log.js';
import type { Repository } from './repository.js';
import type { Descriptor, Platform } from './types.js';

/** One manifest, index or artifact of an image, and what it needs. */
export interface ContentManifest {
  /** Media type, digest and size. */
  descriptor: Descriptor;
  /** Digests of the manifests that it lists and that belong to the copy. */
  manifests: readonly string[];
  /** Configuration and layers, each once. */
  blobs: readonly Descriptor[];
  /** Its bytes, where they have been read; they are got by digest where not. */
  bytes?: Buffer | undefined;
}

/** All that an image consists of, known before any blob of it is read. */
export interface ImageContents {
  /** What its tag or digest names. */
  root: Descriptor;
  /** What another one lists stands before it; the root is among them, and what refers to it after it. */
  manifests: readonly ContentManifest[];
}

export interface ReadContentsOptions extends CancelOptions {
  /** Of an index only these platforms' images; see `CopyOptions`. */
  platforms?: readonly Platform[] | undefined;
  /** What refers to its manifests too. */
  referrers?: boolean | undefined;
  concurrency?: number | undefined;
  logger?: Logger | undefined;
}

/** Reads the manifests of an image, each once, and none of its blobs. Throws as `copyImage` does. */
export function readContents(
  source: Repository,
  reference: string,
  options: ReadContentsOptions = {},
): Promise<ImageContents> {
  throw new OpmateError('INTERNAL', `${source.name}: ${reference}: not built yet`, { cause: options });
}

/** The blobs of an image by digest. */
export function blobsOf(contents: ImageContents): Map<string, Descriptor> {
  return new Map(contents.manifests.flatMap(({ blobs }) => blobs).map((blob) => [blob.digest, blob]));
}
