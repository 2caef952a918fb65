import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { isNonDistributable } from './layout-manifest.js';
import { parseManifest } from './manifest.js';
import { choosePlatform, formatPlatform, isAttestation, readListed, subjectOf } from './platform.js';
import type { ManifestContent, Repository, WritableRepository } from './repository.js';
import { type Descriptor, type Platform, manifestMediaTypes } from './types.js';

/** How many blobs, or manifests, are under way at a time. */
export const defaultCopyConcurrency = 6;
/** Manifests of one copy: indexes, images and referrers. */
const maxManifests = 20_000;
/** How deep manifests may refer to each other, downwards and by `subject`. */
const maxDepth = 16;

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
  /** Manifests and indexes written, referrers included. */
  manifests: number;
  /** Blobs that were sent, that were mounted, and that were there. */
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
  const copier = new Copier(source, target, options);
  const root = await source.getManifest(reference, options);
  return copier.run(root, subjectOf(source.name, reference), targetReference);
}

/** A manifest to be written; those that it needs come before it. */
interface Node {
  content: ManifestContent;
  isRoot: boolean;
}

class Copier {
  readonly #source: Repository;
  readonly #target: WritableRepository;
  readonly #options: CopyOptions;
  readonly #logger: Logger;
  readonly #concurrency: number;
  /** The repository to mount from, as long as that works. */
  #mountFrom: string | undefined;
  /** Heights over the leaves, by digest. */
  readonly #heights = new Map<string, Promise<number>>();
  /** By height: what is lower is written earlier. */
  readonly #levels: Node[][] = [];
  readonly #blobs = new Map<string, Descriptor>();
  readonly #counts = { copied: 0, mounted: 0, present: 0, skipped: 0 };
  #bytes = 0;

  constructor(source: Repository, target: WritableRepository, options: CopyOptions) {
    this.#source = source;
    this.#target = target;
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#concurrency = options.concurrency ?? defaultCopyConcurrency;
    this.#mountFrom = mountSource(source, target);
  }

  async run(root: ManifestContent, subject: string, targetReference: string): Promise<CopyResult> {
    const task = `copy ${subject} to ${subjectOf(this.#target.name, targetReference)}`;
    this.#logger.progress({ task, state: 'start' });
    try {
      await this.#collect(root, subject, [], true);
      const blobs = [...this.#blobs.values()];
      const total = blobs.reduce((sum, blob) => sum + blob.size, 0);
      let current = 0;
      await mapConcurrent(
        blobs,
        this.#concurrency,
        async (blob) => {
          await this.#copyBlob(blob);
          current += blob.size;
          this.#logger.progress({ task, state: 'update', current, total, unit: 'bytes' });
        },
        this.#options,
      );
      const descriptor = await this.#writeManifests(targetReference);
      this.#logger.progress({ task, state: 'done' });
      return { descriptor, manifests: this.#heights.size, blobs: this.#counts, bytes: this.#bytes };
    } catch (error) {
      this.#logger.progress({ task, state: 'failed' });
      throw error;
    }
  }

  /** Notes what is to be copied of a manifest and all below it; returns its height. */
  #collect(
    content: ManifestContent,
    subject: string,
    ancestors: readonly string[],
    isRoot = false,
  ): Promise<number> {
    const { digest } = content.descriptor;
    const height = this.#visit(content, subject, [...ancestors, digest], isRoot);
    this.#heights.set(digest, height);
    return height;
  }

  async #visit(
    content: ManifestContent,
    subject: string,
    lineage: readonly string[],
    isRoot: boolean,
  ): Promise<number> {
    const { digest, mediaType } = content.descriptor;
    if (lineage.length > maxDepth)
      throw new LimitError(`${subject}: manifests nested deeper than ${maxDepth}`);
    if (this.#heights.size >= maxManifests)
      throw new LimitError(`${subject}: more than ${maxManifests} manifests`);
    const parsed = parseManifest(content.bytes, { subject, mediaType });
    let height = 0;
    if (parsed.kind === 'index') {
      const entries = this.#wanted(parsed.index.manifests, subject);
      const isManifest = (entry: Descriptor): boolean => manifestMediaTypes.includes(entry.mediaType);
      for (const entry of entries) if (!isManifest(entry)) this.#blobs.set(entry.digest, entry);
      const unique = new Map(entries.filter(isManifest).map((entry) => [entry.digest, entry]));
      const heights = await mapConcurrent(
        [...unique.values()],
        this.#concurrency,
        (entry) => this.#descend(entry, subject, lineage),
        this.#options,
      );
      height = heights.reduce((highest, one) => Math.max(highest, one + 1), 0);
    } else if (!(await this.#isThere(digest))) {
      const { config, layers } = parsed.manifest;
      for (const blob of [config, ...layers]) this.#blobs.set(blob.digest, blob);
    }
    (this.#levels[height] ??= []).push({ content, isRoot });
    if (this.#options.referrers) {
      for (const entry of await this.#source.listReferrers(digest, this.#options)) {
        await this.#descend(entry, subject, lineage);
      }
    }
    return height;
  }

  async #descend(entry: Descriptor, subject: string, lineage: readonly string[]): Promise<number> {
    if (lineage.includes(entry.digest))
      throw new OpmateError('INVALID', `${subject}: a manifest that contains itself`);
    const known = this.#heights.get(entry.digest);
    if (known !== undefined) return known;
    const content = await readListed(this.#source, entry, this.#options);
    return (
      this.#heights.get(entry.digest) ??
      this.#collect(content, subjectOf(this.#source.name, entry.digest), lineage)
    );
  }

  /** Whether the target has an image already. An index says nothing about what it lists. */
  async #isThere(digest: string): Promise<boolean> {
    return (await this.#target.headManifest(digest, this.#options)) !== undefined;
  }

  #wanted(entries: readonly Descriptor[], subject: string): readonly Descriptor[] {
    const { platforms } = this.#options;
    if (platforms === undefined) return entries;
    return platforms.map((platform) => {
      const found = choosePlatform(entries, { platform, hostPlatform: platform });
      if (found) return found;
      const names = entries.filter((entry) => !isAttestation(entry)).flatMap((entry) => entry.platform ?? []);
      const offered =
        [...new Set(names.map(formatPlatform))].slice(0, 10).join(', ') || 'none with a platform';
      throw new OpmateError(
        'NOT_FOUND',
        `${subject}: no image for ${formatPlatform(platform)}, only ${offered}`,
      );
    });
  }

  async #copyBlob(blob: Descriptor): Promise<void> {
    const options = this.#options;
    throwIfCancelled(options.signal);
    if (this.#mountFrom !== undefined) {
      if (await this.#mount(blob, this.#mountFrom)) return void this.#counts.mounted++;
      this.#mountFrom = undefined;
    }
    let opened = false;
    try {
      const open = () => {
        opened = true;
        return this.#source.openBlob(blob, options);
      };
      await this.#target.putBlob(blob, open, options);
    } catch (error) {
      const isGone = error instanceof OpmateError && error.code === 'NOT_FOUND' && opened;
      if (!isGone || !isNonDistributable(blob)) throw error;
      this.#logger.log('warn', `${this.#source.name}: ${blob.digest}: non-distributable layer left out`);
      return void this.#counts.skipped++;
    }
    if (!opened) return void this.#counts.present++;
    this.#counts.copied++;
    this.#bytes += blob.size;
  }

  async #mount(blob: Descriptor, from: string): Promise<boolean> {
    try {
      return await this.#target.mountBlob(blob, from, this.#options);
    } catch (error) {
      // Whoever may push here need not be allowed to mount from there.
      const isRefusal =
        error instanceof OpmateError && ['AUTH', 'NOT_FOUND', 'UNSUPPORTED'].includes(error.code);
      if (isRefusal) return false;
      throw error;
    }
  }

  async #writeManifests(targetReference: string): Promise<Descriptor> {
    const put = async ({ content }: Node, reference: string): Promise<Descriptor> =>
      this.#target.putManifest(reference, content.bytes, content.descriptor.mediaType, this.#options);
    let root: Node | undefined;
    for (const level of this.#levels) {
      await mapConcurrent(
        level.filter((node) => !node.isRoot),
        this.#concurrency,
        (node) => put(node, node.content.descriptor.digest),
        this.#options,
      );
      root ??= level.find((node) => node.isRoot);
    }
    if (root === undefined) throw new OpmateError('INTERNAL', `${this.#source.name}: nothing to copy`);
    return put(root, targetReference);
  }
}

/** The name of the source within the registry that it shares with the target, if it does. */
function mountSource(source: Repository, target: WritableRepository): string | undefined {
  const [from, to] = [source, target].map((repository) =>
    'registry' in repository && 'repository' in repository
      ? { registry: String(repository.registry), repository: String(repository.repository) }
      : undefined,
  );
  if (!from || !to || from.registry !== to.registry || from.repository === to.repository) return undefined;
  return from.repository;
}
