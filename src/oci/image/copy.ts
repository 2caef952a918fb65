import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, RegistryError } from '../../core/errors.js';
import { type Logger, runTask, silentLogger } from '../../core/log.js';
import { type ContentManifest, describeManifest, type ImageContents, readContents } from './contents.js';
import { getSubject } from './platform.js';
import { MissingContentError } from '../layout/layout-store.js';
import type { Repository, WritableRepository } from '../registry/repository.js';
import { maxContentAttempts, pauseBeforeAttempt } from '../transport/retry-policy.js';
import { SharedBlobs } from './shared-blobs.js';
import type { Descriptor, Platform } from './types.js';

/** Default maximum of blobs or manifests copied concurrently. */
export const defaultCopyConcurrency = 6;

interface CopyOptions extends CancelOptions {
  /**
   * Copies only these platforms of an index, default: all. The index itself is unchanged and lists missing images, which
   * not every registry accepts.
   */
  platforms?: readonly Platform[] | undefined;
  /** Copies the referrers of the copied manifests: signatures, SBOMs. */
  referrers?: boolean | undefined;
  concurrency?: number | undefined;
  logger?: Logger | undefined;
}

export interface CopyResult {
  /** Descriptor at the target, equal to that of the source. */
  descriptor: Descriptor;
  /** Number of manifests and indexes, referrers and existing ones included. */
  manifests: number;
  /** Number of blobs by outcome; `skipped` are unavailable non-distributable layers. */
  blobs: { copied: number; mounted: number; present: number; skipped: number };
  /** Bytes of the copied blobs. */
  bytes: number;
}

/**
 * Copies an image, an index with all below it, or an artifact: each blob once, then manifests after those that they list,
 * the one with `targetReference` last. Manifests are copied unchanged. Blobs of a manifest that exists at the target are
 * assumed to exist. Unavailable non-distributable layers are skipped.
 *
 * Throws the errors of the repositories, and OpmateError NOT_FOUND for an index without one of `platforms`. After a
 * failure, the target reference never names incomplete content.
 */
export async function copyImage(
  source: Repository,
  reference: string,
  target: WritableRepository,
  targetReference: string,
  options: CopyOptions = {},
): Promise<CopyResult> {
  const { logger = silentLogger, concurrency = defaultCopyConcurrency } = options;
  const contents = await readContents(source, reference, options);
  const task = `copy ${getSubject(source.name, reference)} to ${getSubject(target.name, targetReference)}`;
  return runTask(logger, task, async () => {
    const missing = await surveyContents(target, contents, targetReference, options);
    const total = missing.blobs.reduce((sum, blob) => sum + blob.size, 0);
    const blobs = { copied: 0, mounted: 0, present: 0, skipped: 0 };
    const shared = new SharedBlobs();
    let current = 0;
    let bytes = 0;
    await mapConcurrent(
      missing.blobs,
      concurrency,
      async (blob) => {
        const outcome = await shared.copy(source, target, blob, { ...options, isAbsent: true });
        blobs[outcome]++;
        if (outcome === 'copied') bytes += blob.size;
        current += blob.size;
        logger.progress({ task, state: 'update', current, total, unit: 'bytes' });
      },
      options,
    );
    const resend = (blob: Descriptor) => shared.resend(source, target, blob, options);
    await putContents(source, target, contents, missing, targetReference, { ...options, resend });
    return { descriptor: contents.root, manifests: contents.manifests.length, blobs, bytes };
  });
}

/** Content of an image that a target lacks. */
interface MissingContents {
  /** In the order of the contents. */
  manifests: readonly ContentManifest[];
  /** Blobs of these without duplicates. */
  blobs: readonly Descriptor[];
  /** The reference names the root already, or is its digest. */
  isTagged: boolean;
}

/** Lookups at a target, by its repository or a cache. */
export interface SurveyTarget extends Pick<Repository, 'headManifest' | 'hasBlob'> {
  /** All its tags, if known. */
  tags?: ReadonlySet<string> | undefined;
  /** The repository is known to be new: without tags, and without blobs of this or an earlier run. */
  isNew?: boolean | undefined;
}

/**
 * Looks up the manifests of an image at a target, the root by its tag, and the blobs of missing ones. A root that exists
 * under another name is missing, so it gets its tag. A new repository gets no requests.
 */
export async function surveyContents(
  target: SurveyTarget,
  contents: ImageContents,
  reference: string,
  options: CancelOptions & {
    concurrency?: number | undefined;
    /** Treats an existing manifest as missing if one of its blobs is. */
    everyBlob?: boolean | undefined;
  },
): Promise<MissingContents> {
  const { concurrency = defaultCopyConcurrency } = options;
  const { root } = contents;
  const { tags } = target;
  let isTagged = reference === root.digest;
  const isNew = !isTagged && target.isNew;
  const existing = await mapConcurrent(
    contents.manifests,
    concurrency,
    async ({ descriptor: { digest } }) => {
      if (isNew) return false;
      if (digest !== root.digest || isTagged)
        return (await target.headManifest(digest, options)) !== undefined;
      if (tags?.has(reference) === false) return false;
      const named = await target.headManifest(reference, options);
      return (isTagged = named?.digest === digest);
    },
    options,
  );
  let manifests = contents.manifests.filter((_, i) => !existing[i]);
  const requested = options.everyBlob === true ? contents.manifests : manifests;
  const needed = new Map(requested.flatMap(({ blobs }) => blobs).map((blob) => [blob.digest, blob]));
  const wanted = [...needed.values()];
  const present = await mapConcurrent(
    wanted,
    concurrency,
    async (blob) => !isNew && target.hasBlob(blob, options),
    options,
  );
  const blobs = wanted.filter((_, i) => !present[i]);
  if (options.everyBlob === true) {
    const lacking = new Set(blobs.map(({ digest }) => digest));
    manifests = contents.manifests.filter(
      (manifest, i) => !existing[i] || manifest.blobs.some(({ digest }) => lacking.has(digest)),
    );
  }
  return { manifests, blobs, isTagged };
}

/**
 * Stores the missing manifests, after those that they list, the root last under its reference. Their blobs must exist.
 * Missing bytes are read from the source by digest. If the target still lacks content, as when another process writes to
 * it, that is sent again.
 */
export async function putContents(
  source: Repository,
  target: WritableRepository,
  contents: ImageContents,
  missing: Pick<MissingContents, 'manifests' | 'isTagged'>,
  reference: string,
  options: CancelOptions & {
    concurrency?: number | undefined;
    /** Sends a blob that the target lacks unexpectedly. */
    resend: (blob: Descriptor) => Promise<unknown>;
  },
): Promise<void> {
  const { concurrency = defaultCopyConcurrency } = options;
  const put = async (manifest: ContentManifest, putReference: string): Promise<void> => {
    const bytes = manifest.bytes ?? (await readKnown(source, manifest, options));
    for (let attempt = 1; ; attempt++) {
      try {
        await target.putManifest(putReference, bytes, manifest.descriptor.mediaType, options);
        return;
      } catch (error) {
        if (attempt >= maxContentAttempts || !lacksContent(error)) throw error;
        await pauseBeforeAttempt(attempt + 1, options);
        await restore(manifest);
      }
    }
  };
  /** Sends the content of a manifest that the target lacks. */
  const restore = async (manifest: ContentManifest): Promise<void> => {
    await mapConcurrent(
      manifest.blobs,
      concurrency,
      async (blob) => {
        if (!(await target.hasBlob(blob, options))) await options.resend(blob);
      },
      options,
    );
    const children = contents.manifests.filter(({ descriptor }) =>
      manifest.manifests.includes(descriptor.digest),
    );
    for (const child of children) {
      const { digest } = child.descriptor;
      if ((await target.headManifest(digest, options)) === undefined) await put(child, digest);
    }
  };
  const { digest } = contents.root;
  for (const level of getLevels(contents, missing.manifests)) {
    const others = level.filter(({ descriptor }) => descriptor.digest !== digest);
    await mapConcurrent(others, concurrency, (item) => put(item, item.descriptor.digest), options);
  }
  const isMissing = missing.manifests.some(({ descriptor }) => descriptor.digest === digest);
  if (!isMissing && missing.isTagged) return;
  const root = contents.manifests.find(({ descriptor }) => descriptor.digest === digest);
  if (root === undefined)
    throw new OpmateError('INVALID', `manifest ${digest} not found`, { subject: source.name });
  await put(root, reference);
}

/** Reports whether a registry refused a manifest because it lacks its content, or is still writing it. */
function lacksContent(error: unknown): boolean {
  if (error instanceof MissingContentError) return true;
  return error instanceof RegistryError && error.registryCodes.includes('MANIFEST_BLOB_UNKNOWN');
}

/** Groups manifests by height: each group lists manifests of earlier ones only. */
function getLevels(contents: ImageContents, wanted: readonly ContentManifest[]): ContentManifest[][] {
  const heights = new Map<string, number>();
  for (const { descriptor, manifests } of contents.manifests) {
    const below = manifests.map((digest) => heights.get(digest) ?? -1);
    heights.set(descriptor.digest, 1 + Math.max(-1, ...below));
  }
  const levels: ContentManifest[][] = [];
  for (const manifest of wanted) (levels[heights.get(manifest.descriptor.digest) ?? 0] ??= []).push(manifest);
  return levels.filter((level) => level !== undefined);
}

/** Reads a manifest whose contents are known. Throws OpmateError INVALID if they differ. */
async function readKnown(
  source: Repository,
  known: ContentManifest,
  options: CancelOptions,
): Promise<Buffer> {
  const { digest } = known.descriptor;
  const content = await source.getManifest(digest, options);
  const subject = getSubject(source.name, digest);
  const { manifest } = describeManifest(content, subject);
  const sizes = new Map(known.blobs.map((blob) => [blob.digest, blob.size]));
  const listed = new Set(manifest.manifests);
  const isSame =
    manifest.blobs.every((blob) => sizes.get(blob.digest) === blob.size) &&
    known.manifests.every((child) => listed.has(child));
  if (isSame) return content.bytes;
  throw new OpmateError('INVALID', 'content does not match the lock', {
    subject,
    hint: 'create the lock again: it was edited',
  });
}
