import type { CancelOptions } from '../../core/concurrency.js';
import type { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { Reference } from '../../core/reference.js';
import type { ContentManifest, ImageContents } from '../../oci/image/contents.js';
import type { ImageSession, OpenedReference } from '../../oci/image/open.js';
import type { Descriptor, Platform } from '../../oci/image/types.js';

/** An image to be copied. */
export interface Transfer {
  /** Where it is, or how to open a place that no reference names, such as an image that was just built. */
  source: Reference | (() => Promise<OpenedReference>);
  /** With a tag, or the digest of the source. */
  target: Reference;
  /** How messages name both. */
  sourceName: string;
  targetName: string;
  /** Where a configuration names it, for messages. */
  place?: { file: string; line: number } | undefined;
  /** Copied when everything else has been: a catalog, which should name only what is there. */
  isLast?: boolean | undefined;
  /** Of an index only these platforms' images. */
  platforms?: readonly Platform[] | undefined;
  /** What it consists of, where that is known already: then its source is asked only for what must be copied. */
  contents?: ImageContents | undefined;
}

/** An image of which is known what it consists of. */
export interface PinnedTransfer extends Transfer {
  contents: ImageContents;
}

/** An image of which is known what the target lacks. */
export interface SurveyedTransfer extends PinnedTransfer {
  /** Manifests that the target repository lacks, in the order of the contents. */
  manifests: readonly ContentManifest[];
  /** Blobs that these need and the target repository lacks. */
  blobs: readonly Descriptor[];
  /** Whether the target's tag names the root already; true where it has none. */
  isTagged: boolean;
  /**
   * Digest of the blob that a new repository gets before any other. A run that finds it in a repository without tags
   * knows that an earlier run was interrupted there.
   */
  firstBlob?: string | undefined;
}

/** Whether the target needs nothing of an image. */
export function isComplete({ manifests, isTagged }: SurveyedTransfer): boolean {
  return manifests.length === 0 && isTagged;
}

/** What became of the images in a step that goes on after failures. */
export interface StepFaults {
  /** Images that are not at the source. */
  missing: Transfer[];
  failed: { transfer: Transfer; error: OpmateError }[];
}

export interface TransferOptions extends CancelOptions {
  session: ImageSession;
  /** Large blobs under way to or from a registry at a time; of small requests there may be four times as many. */
  maxPerRegistry: number;
  /** Images at a time; as many as `maxPerRegistry` allows unless set. */
  imagesAtOnce?: number | undefined;
  /** Blobs, or manifests, of one image at a time. */
  layersAtOnce?: number | undefined;
  /** Milliseconds for reading, and again for copying, one image; unlimited unless set. */
  imageTimeoutMs?: number | undefined;
  /** Goes on after a failure. Images that are not at the source are passed over either way with `skipMissing`. */
  continueOnError?: boolean | undefined;
  skipMissing?: boolean | undefined;
  /** With `continueOnError`: leaves it to the caller to tell of failures. */
  isQuiet?: boolean | undefined;
  /** Copies what refers to the images too. */
  referrers?: boolean | undefined;
  /** Looks for each image at its source, and copies none. */
  dryRun?: boolean | undefined;
  logger?: Logger | undefined;
}

/** What became of the transfers, each list in their order. */
export interface TransferReport extends StepFaults {
  done: { transfer: Transfer; digest: string }[];
  /** Blobs and their bytes that were sent. */
  blobs: number;
  bytes: number;
}
