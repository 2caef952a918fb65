import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, RegistryError } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { type ContentManifest, describeManifest, type ImageContents, readContents } from './contents.js';
import { getSubject } from './platform.js';
import type { Repository, WritableRepository } from '../registry/repository.js';
import { maxContentAttempts, pauseBeforeAttempt } from '../transport/retry-policy.js';
import { SharedBlobs } from './shared-blobs.js';
import type { Descriptor, Platform } from './types.js';

/** How many blobs, or manifests, are under way at a time. */
export const defaultCopyConcurrency = 6;

export interface CopyOptions extends CancelOptions {
  /**
   * Of an index only these platforms' images are copied; the index itself keeps its bytes and so names
   * some that the target does not have, which not every registry takes. All when left out.
   */
  platforms?: readonly Platform[] | undefined;
  /** Copies what refers to the copied manifests too: signatures, SBOMs. */
  referrers?: boolean | undefined;
  concurrency?: number | undefined;
  logger?: Logger | undefined;
}

export interface CopyResult {
  /** What is now at the target: the bytes, and so the digest, of the source. */
  descriptor: Descriptor;
  /** Manifests and indexes of the image, referrers included, those among them that were there. */
  manifests: number;
  /** Blobs that were sent, that were mounted, that were there, and that could not be had and need not be. */
  blobs: { copied: number; mounted: number; present: number; skipped: number };
  /** Bytes of the blobs that were sent. */
  bytes: number;
}

/**
 * Copies an image, an index with all below it, or an artifact: each blob once, then manifests with what they
 * need before them, the one that gets `targetReference` last. Manifest bytes stay as they are. A manifest that
 * the target has is taken to be there with its blobs. A non-distributable layer that the source does not have
 * is left out.
 *
 * Throws what the repositories throw (messages begin with the name of the one that failed), and OpmateError
 * NOT_FOUND for an index without one of `platforms`. Whatever happened, nothing incomplete has the target's name.
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
  logger.progress({ task, state: 'start' });
  try {
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
    logger.progress({ task, state: 'done' });
    return { descriptor: contents.root, manifests: contents.manifests.length, blobs, bytes };
  } catch (error) {
    logger.progress({ task, state: 'failed' });
    throw error;
  }
}

/** What a target lacks of an image. */
interface MissingContents {
  /** In the order of the contents. */
  manifests: readonly ContentManifest[];
  /** Blobs that these need, each once. */
  blobs: readonly Descriptor[];
  /** Whether the reference, where it is a tag, names the root already. */
  isTagged: boolean;
}

/** What a target can be asked, e.g. by a repository itself or by one that remembers the answers. */
export interface AskedTarget extends Pick<Repository, 'headManifest' | 'hasBlob'> {
  /** All its tags, where they are known. */
  tags?: ReadonlySet<string> | undefined;
  /** Whether it is known to have nothing that a tag names, and no blob of this or an earlier run. */
  isNew?: boolean | undefined;
}

/**
 * Asks a target what it has of an image: each manifest once, the root by its tag, and each blob of those that are not
 * there. A root that is there under another name counts as missing: its blobs are then found, and it gets its tag.
 * A new repository is asked for nothing.
 */
export async function surveyContents(
  target: AskedTarget,
  contents: ImageContents,
  reference: string,
  options: CancelOptions & {
    concurrency?: number | undefined;
    /** A manifest that is there is missing where one of its blobs is. */
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
 * Stores the manifests that a target lacks, all of whose blobs are there: what another one lists before it, and the
 * root last, under its reference. Bytes that are not at hand are read from the source, by digest. Where the target
 * still says that it lacks something, as while another process writes there, what it lacks is looked for once
 * more and sent again.
 */
export async function putContents(
  source: Repository,
  target: WritableRepository,
  contents: ImageContents,
  missing: Pick<MissingContents, 'manifests' | 'isTagged'>,
  reference: string,
  options: CancelOptions & {
    concurrency?: number | undefined;
    /** Sends a blob that the target turns out to lack. */
    resend: (blob: Descriptor) => Promise<unknown>;
  },
): Promise<void> {
  const { concurrency = defaultCopyConcurrency } = options;
  const put = async (manifest: ContentManifest, where: string): Promise<void> => {
    const bytes = manifest.bytes ?? (await readKnown(source, manifest, options));
    for (let attempt = 1; ; attempt++) {
      try {
        await target.putManifest(where, bytes, manifest.descriptor.mediaType, options);
        return;
      } catch (error) {
        if (attempt >= maxContentAttempts || !lacksContent(error)) throw error;
        await pauseBeforeAttempt(attempt + 1, options);
        await restore(manifest);
      }
    }
  };
  /** Brings what a manifest needs and the target lacks. */
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
    await mapConcurrent(
      others,
      concurrency,
      (manifest) => put(manifest, manifest.descriptor.digest),
      options,
    );
  }
  const isMissing = missing.manifests.some(({ descriptor }) => descriptor.digest === digest);
  if (!isMissing && missing.isTagged) return;
  const root = contents.manifests.find(({ descriptor }) => descriptor.digest === digest);
  if (root === undefined)
    throw new OpmateError('INVALID', `${digest}: not among its own manifests`, { subject: source.name });
  await put(root, reference);
}

/** Whether a registry refused a manifest because it lacks, or is just writing, a blob or manifest that it needs. */
function lacksContent(error: unknown): boolean {
  return error instanceof RegistryError && error.registryCodes.includes('MANIFEST_BLOB_UNKNOWN');
}

/** Manifests of an image in groups, those of one listing only what is in earlier ones. */
function getLevels(contents: ImageContents, wanted: readonly ContentManifest[]): ContentManifest[][] {
  const heights = new Map<string, number>();
  for (const { descriptor, manifests } of contents.manifests) {
    const below = manifests.map((digest) => heights.get(digest) ?? -1);
    heights.set(descriptor.digest, 1 + below.reduce((most, item) => Math.max(most, item), -1));
  }
  const levels: ContentManifest[][] = [];
  for (const manifest of wanted) (levels[heights.get(manifest.descriptor.digest) ?? 0] ??= []).push(manifest);
  return levels.filter((level) => level !== undefined);
}

/** Reads a manifest of which is known already what it needs. Throws OpmateError INVALID where that is not so. */
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
  throw new OpmateError('INVALID', 'needs other content than was written down for it', {
    subject,
    hint: 'create the lock again: it was edited',
  });
}
