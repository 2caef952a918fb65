import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { parseManifest } from './manifest.js';
import { choosePlatform, missingPlatform, readListed, getSubject } from './platform.js';
import type { ManifestContent, Repository } from '../registry/repository.js';
import { type Descriptor, type Platform, uniqueByDigest } from './types.js';

/** Maximum manifests of an image: indexes, images and referrers. */
const maxManifests = 20_000;
/** Maximum depth of references, by lists and by `subject`. */
const maxDepth = 16;
const defaultConcurrency = 6;

/** A manifest, index or artifact of an image, and the content that it needs. */
export interface ContentManifest {
  /** Media type, digest and size. */
  descriptor: Descriptor;
  /** Digests of the listed manifests that belong to the copy. */
  manifests: readonly string[];
  /** Configuration and layers without duplicates. */
  blobs: readonly Descriptor[];
  /** Undefined if not read yet. */
  bytes?: Buffer | undefined;
}

/** Manifests and blobs of an image. */
export interface ImageContents {
  /** Descriptor of its tag or digest. */
  root: Descriptor;
  /** Manifests after those that they list; referrers come last. */
  manifests: readonly ContentManifest[];
}

interface ReadContentsOptions extends CancelOptions {
  /** Platforms of an index to read; see `CopyOptions`. */
  platforms?: readonly Platform[] | undefined;
  /** Reads the referrers of its manifests. */
  referrers?: boolean | undefined;
  concurrency?: number | undefined;
  /** All tags of the source, if known; see `ReferrersOptions`. */
  tags?: ReadonlySet<string> | undefined;
  logger?: Logger | undefined;
}

/** Reads the manifests of an image, but no blobs. Throws as `copyImage`. */
export async function readContents(
  source: Repository,
  reference: string,
  options: ReadContentsOptions = {},
): Promise<ImageContents> {
  return readContentsFrom(source, reference, await source.getManifest(reference, options), options);
}

/** Reads like `readContents`, with the root already read by `reference`. */
export async function readContentsFrom(
  source: Repository,
  reference: string,
  root: ManifestContent,
  options: ReadContentsOptions = {},
): Promise<ImageContents> {
  const tree = new ContentTree(source, options);
  await tree.read([{ content: root, subject: getSubject(source.name, reference) }], options.platforms);
  const manifests = tree.inOrder([root.descriptor.digest]);
  const contents = { root: manifests.at(-1)?.descriptor ?? root.descriptor, manifests };
  return options.referrers ? tree.addReferrers(contents) : contents;
}

/** Returns the image with the referrers of its manifests, and their referrers. Throws as `copyImage`. */
export function withReferrers(
  source: Repository,
  contents: ImageContents,
  options: ReadContentsOptions = {},
): Promise<ImageContents> {
  return new ContentTree(source, options, contents.manifests).addReferrers(contents);
}

/** A manifest to visit: read already, or listed. */
type Visit = { content: ManifestContent; subject: string } | { entry: Descriptor };

/** Manifests of a source, each of which is read once. */
class ContentTree {
  readonly #source: Repository;
  readonly #options: ReadContentsOptions;
  readonly #concurrency: number;
  readonly #known: Map<string, ContentManifest>;

  constructor(source: Repository, options: ReadContentsOptions, manifests: readonly ContentManifest[] = []) {
    this.#source = source;
    this.#options = options;
    this.#concurrency = options.concurrency ?? defaultConcurrency;
    this.#known = new Map(manifests.map((manifest) => [manifest.descriptor.digest, manifest]));
  }

  /** Reads manifests and all below them by level. */
  async read(first: readonly Visit[], platforms?: readonly Platform[]): Promise<void> {
    const visit = async (item: Visit) => {
      if ('content' in item) return describeManifest(item.content, item.subject, platforms);
      const content = await readListed(this.#source, item.entry, this.#options);
      return describeManifest(content, getSubject(this.#source.name, item.entry.digest), platforms);
    };
    let level = first;
    for (let depth = 1; level.length > 0; depth++) {
      if (depth > maxDepth) throw tooDeep(this.#source.name);
      const described = await mapConcurrent(level, this.#concurrency, visit, this.#options);
      for (const { manifest } of described) this.#known.set(manifest.descriptor.digest, manifest);
      const listed = described
        .flatMap(({ entries }) => entries)
        .filter(({ digest }) => !this.#known.has(digest));
      const next = uniqueByDigest(listed);
      if (this.#known.size + next.length > maxManifests)
        throw new LimitError(`more than ${maxManifests} manifests`, { subject: this.#source.name });
      level = next.map((entry) => ({ entry }));
    }
  }

  /** Returns these manifests and all below them, listed ones first. */
  inOrder(digests: readonly string[]): ContentManifest[] {
    const ordered = new Map<string, ContentManifest>();
    const heights = new Map<string, number>();
    const place = (digest: string, lineage: readonly string[]): number => {
      const manifest = this.#known.get(digest);
      const placed = heights.get(digest);
      if (manifest === undefined || placed !== undefined) return placed ?? 0;
      const subject = getSubject(this.#source.name, digest);
      if (lineage.includes(digest)) throw new OpmateError('INVALID', 'manifest lists itself', { subject });
      if (lineage.length >= maxDepth) throw tooDeep(subject);
      let height = 1;
      for (const child of manifest.manifests)
        height = Math.max(height, 1 + place(child, [...lineage, digest]));
      if (height > maxDepth) throw tooDeep(subject);
      heights.set(digest, height);
      ordered.set(digest, manifest);
      return height;
    };
    for (const digest of digests) place(digest, []);
    return [...ordered.values()];
  }

  async addReferrers(contents: ImageContents): Promise<ImageContents> {
    const all = [...contents.manifests];
    let pending = contents.manifests;
    for (let depth = 1; pending.length > 0; depth++) {
      const lists = await mapConcurrent(
        pending,
        this.#concurrency,
        ({ descriptor }) => this.#source.listReferrers(descriptor.digest, this.#options),
        this.#options,
      );
      const fresh = uniqueByDigest(lists.flat().filter(({ digest }) => !this.#known.has(digest)));
      if (fresh.length > 0 && depth > maxDepth)
        throw new LimitError(`referrers nested deeper than ${maxDepth}`, { subject: this.#source.name });
      const before = new Set(this.#known.keys());
      await this.read(fresh.map((entry) => ({ entry })));
      pending = this.inOrder(fresh.map(({ digest }) => digest)).filter(
        ({ descriptor }) => !before.has(descriptor.digest),
      );
      all.push(...pending);
    }
    return { root: contents.root, manifests: all };
  }
}

function tooDeep(subject: string): LimitError {
  return new LimitError(`manifests nested deeper than ${maxDepth}`, { subject });
}

/** Returns the content that a manifest needs, and its entries that are manifests. */
export function describeManifest(
  content: ManifestContent,
  subject: string,
  platforms?: readonly Platform[],
): { manifest: ContentManifest; entries: readonly Descriptor[] } {
  const { digest, size } = content.descriptor;
  const parsed = parseManifest(content.bytes, { subject, mediaType: content.descriptor.mediaType });
  const entries =
    parsed.kind === 'index' ? uniqueByDigest(wantedEntries(parsed.index.manifests, subject, platforms)) : [];
  const blobs = parsed.kind === 'index' ? [] : [parsed.manifest.config, ...parsed.manifest.layers];
  return {
    manifest: {
      descriptor: { mediaType: parsed.mediaType, digest, size },
      manifests: entries.map((entry) => entry.digest),
      blobs: uniqueByDigest(blobs).map(getBlob),
      bytes: content.bytes,
    },
    entries,
  };
}

/** Returns the fields of a blob that copying requires. */
function getBlob({ mediaType, digest, size, urls }: Descriptor): Descriptor {
  return { mediaType, digest, size, ...(urls && { urls }) };
}

function wantedEntries(
  entries: readonly Descriptor[],
  subject: string,
  platforms: readonly Platform[] | undefined,
): readonly Descriptor[] {
  if (platforms === undefined) return entries;
  return platforms.map((platform) => {
    const chosen = choosePlatform(entries, { platform, hostPlatform: platform });
    if (chosen) return chosen;
    throw missingPlatform(platform, entries, { subject });
  });
}

/** Returns the blobs of an image by digest. */
export function getBlobs(contents: ImageContents): Map<string, Descriptor> {
  return new Map(contents.manifests.flatMap(({ blobs }) => blobs).map((blob) => [blob.digest, blob]));
}
