import type { OpmateError } from '../../core/errors.js';
import type { Reference } from '../../core/reference.js';
import type { ContentManifest, ImageContents } from '../../oci/image/contents.js';
import type { ImageSession, OpenedReference } from '../../oci/image/open.js';
import type { Descriptor, Platform } from '../../oci/image/types.js';

/** An image to copy. */
export interface Transfer {
  /** Reference, or function that opens an image without one, such as an image that was just built. */
  source: Reference | (() => Promise<OpenedReference>);
  /** Has a tag, or the digest of the source. */
  target: Reference;
  /** Name of the source in messages. */
  sourceName: string;
  /** Name of the target in messages. */
  targetName: string;
  /** Bundles that need it, for messages. */
  neededBy?: string | undefined;
  /** Place in the configuration, for messages. */
  place?: { file: string; line: number } | undefined;
  /** Copied after all other images, such as a catalog, which must name only images at the target. */
  isLast?: boolean | undefined;
  /** Platforms to copy of an index; default all. */
  platforms?: readonly Platform[] | undefined;
  /** Contents, if already read: then only missing content is requested from the source. */
  contents?: ImageContents | undefined;
}

/** An image whose manifests were read. */
export interface PinnedTransfer extends Transfer {
  contents: ImageContents;
}

/** An image with the content that the target lacks. */
export interface SurveyedTransfer extends PinnedTransfer {
  /** Manifests that the target repository lacks, in the order of the contents. */
  manifests: readonly ContentManifest[];
  /** Blobs of these manifests that the target repository lacks. */
  blobs: readonly Descriptor[];
  /** Set if the target's tag already names the root, or the target has no tag. */
  isTagged: boolean;
  /**
   * Digest of the first blob of a new repository. A later run that finds this blob in a repository without tags
   * detects an interrupted copy.
   */
  firstBlob?: string | undefined;
}

/** Reports whether the target lacks nothing of an image. */
export function isComplete({ manifests, isTagged }: SurveyedTransfer): boolean {
  return manifests.length === 0 && isTagged;
}

/** Returns the blobs of an image that its target repository has. */
export function getPresentBlobs({ contents, blobs }: SurveyedTransfer): Descriptor[] {
  const lacking = new Set(blobs.map(({ digest }) => digest));
  const all = contents.manifests.flatMap((manifest) => manifest.blobs);
  return all.filter(({ digest }) => !lacking.has(digest));
}

/** Names of an image in messages. */
export type NamedTransfer = Pick<Transfer, 'sourceName' | 'targetName'>;

/** Failures of a step that continues after errors. */
export interface StepFaults {
  /** Images not found at the source. */
  missing: Transfer[];
  failed: { transfer: NamedTransfer; error: OpmateError }[];
}

/** Hints for images that cannot be read at their source. */
interface SourceHints {
  missing: string;
  /** For a registry that cannot be reached. */
  unreachable: string;
}

/** Options of copying images. */
export interface TransferOptions {
  session: ImageSession;
  /** Maximum parallel transfers of large blobs per registry; small requests may be four times as many. */
  maxPerRegistry: number;
  /** Maximum parallel images; default as many as `maxPerRegistry` allows. */
  imagesAtOnce?: number | undefined;
  /** Maximum parallel blobs, or manifests, per image. */
  layersAtOnce?: number | undefined;
  /** Maximum time for reading, and again for copying, one image, in milliseconds; default unlimited. */
  imageTimeoutMs?: number | undefined;
  /** Continues after a failure. */
  continueOnError?: boolean | undefined;
  /** Skips images not found at the source, with or without `continueOnError`. */
  skipMissing?: boolean | undefined;
  /** Default: the hints for a mapping. */
  hints?: SourceHints | undefined;
  /** Leaves logging of failures to the caller, with `continueOnError`. */
  isQuiet?: boolean | undefined;
  /** Copies referrers too. */
  referrers?: boolean | undefined;
  /** Called with each image once it is copied. */
  onCopied?: ((transfer: NamedTransfer, digest: string) => void) | undefined;
  /** Called with each failed image, also with one that ends the copy; again if a later step fails for it. */
  onFailed?: ((transfer: NamedTransfer) => void) | undefined;
  /** Looks up each image at its source, and copies none. */
  dryRun?: boolean | undefined;
}

/** Results of a copy, each list in the order of the transfers. */
export interface TransferReport extends StepFaults {
  /** `isPresent` if the target had all of it before. */
  done: { transfer: Transfer; digest: string; isPresent?: boolean | undefined }[];
  /** Number of copied blobs. */
  blobs: number;
  /** Bytes of copied blobs. */
  bytes: number;
}
