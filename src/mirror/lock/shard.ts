import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { findSubjectOfTag } from '../../oci/signatures/attached-signatures.js';
import { type LockedImage, getLockedName } from './lock.js';

/** One of several machines that share a plan; `index` is zero-based. */
export interface Shard {
  index: number;
  count: number;
}

/** Maximum number of shards of a plan. */
export const maxShards = 10_000;

/**
 * Parses `I/N`, else the environment variables of an indexed Kubernetes Job; undefined if neither is set. Throws
 * UsageError.
 */
export function parseShard(
  text: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Shard | undefined {
  if (text !== undefined) {
    const [, index, count] = /^([^/]*)\/([^/]*)$/.exec(text) ?? [];
    const hint = 'use I/N, e.g. 0/4 for the first of four machines';
    return createShard(index ?? '', count ?? '', `--shard ${quoteGo(text)}`, hint);
  }
  const { JOB_COMPLETION_INDEX: index = '', JOB_COMPLETION_COUNT: count = '' } = environment;
  if (index === '' && count === '') return undefined;
  if (index === '' || count === '') {
    if (count === '')
      throw new UsageError('JOB_COMPLETION_INDEX is set, but JOB_COMPLETION_COUNT is not', {
        hint: 'set JOB_COMPLETION_COUNT to the completions of the Job, or use --shard I/N',
      });
    throw new UsageError('JOB_COMPLETION_COUNT is set, but JOB_COMPLETION_INDEX is not', {
      hint: 'run in a Job with completionMode Indexed, or use --shard I/N',
    });
  }
  const hint = 'use numbers, the first of them zero-based and less than the second';
  const subject = `JOB_COMPLETION_INDEX ${quoteGo(index)} of JOB_COMPLETION_COUNT ${quoteGo(count)}`;
  return createShard(index, count, subject, hint);
}

function createShard(index: string, count: string, subject: string, hint: string): Shard {
  const toNumber = (text: string): number => (/^\d{1,6}$/.test(text) ? Number(text) : Number.NaN);
  const shard = { index: toNumber(index), count: toNumber(count) };
  if (shard.count > maxShards) throw new UsageError(`more than ${maxShards} machines`, { subject, hint });
  if (shard.count >= 1 && shard.index < shard.count) return shard;
  throw new UsageError('not one of several machines', { subject, hint });
}

/**
 * Returns the images of a shard, in their order. Each image belongs to one shard, whatever their order; shards have about
 * equal bytes, and about equal numbers of images without bytes. Keys must be unique.
 */
export function getShard<T extends { key: string; bytes: number }>(images: readonly T[], shard: Shard): T[] {
  const own = new Set(divide(images, shard.count)[shard.index]);
  return images.filter((image) => own.has(image));
}

/**
 * Returns the shard of each image of a plan without catalogs. Images of a repository that share a manifest, and
 * signatures and their images, belong to one shard, so no two shards push the same manifest.
 */
export function assignShards(images: readonly LockedImage[], count: number): number[] {
  const groups = new ImageGroups(images);
  const parts = [...groups.bytes()].map(([key, bytes]) => ({ key, bytes }));
  const shards = new Map<string, number>();
  for (const [index, own] of divide(parts, count).entries())
    for (const { key } of own) shards.set(key, index);
  return images.map((_, i) => shards.get(groups.toKey(i)) as number);
}

/** Groups of images that belong to one shard. */
class ImageGroups {
  readonly #images: readonly LockedImage[];
  /** Index of another image of the group, by image; the root has its own index. */
  readonly #parents: number[];

  constructor(images: readonly LockedImage[]) {
    this.#images = images;
    this.#parents = images.map((_, i) => i);
    const known = new Map<string, number>();
    const join = (key: string, i: number): void => {
      this.#parents[this.#getRoot(i)] = this.#getRoot(getOrAdd(known, key, () => i));
    };
    for (const [i, { repository, contents }] of images.entries())
      for (const { descriptor } of ownManifests(contents)) join(`${repository} ${descriptor.digest}`, i);
    for (const [i, { kind, repository, tag }] of images.entries()) {
      const signed = kind === 'signature' ? findSubjectOfTag(tag) : undefined;
      if (signed !== undefined) join(`${repository} ${signed}`, i);
    }
  }

  /** Returns the first name of the group of an image in byte order; signatures come last. */
  toKey(i: number): string {
    return this.#keys().get(this.#getRoot(i)) as string;
  }

  /** Returns the bytes of each group, without signatures and referrers, which a plan may not contain yet. */
  bytes(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    for (const [i, { kind, contents }] of this.#images.entries()) {
      const key = this.toKey(i);
      const blobs = kind === 'signature' ? [] : ownManifests(contents).flatMap((manifest) => manifest.blobs);
      sums.set(key, (sums.get(key) ?? 0) + blobs.reduce((sum, { size }) => sum + size, 0));
    }
    return sums;
  }

  #names: Map<number, string> | undefined;

  #keys(): Map<number, string> {
    if (this.#names !== undefined) return this.#names;
    const names = new Map<number, string>();
    for (const isSignature of [false, true]) {
      const own = new Map<number, string>();
      for (const [i, image] of this.#images.entries()) {
        if ((image.kind === 'signature') !== isSignature) continue;
        const [root, name] = [this.#getRoot(i), getLockedName(image)];
        const other = own.get(root);
        if (other === undefined || compareBytes(name, other) < 0) own.set(root, name);
      }
      for (const [root, name] of own) if (!names.has(root)) names.set(root, name);
    }
    return (this.#names = names);
  }

  #getRoot(i: number): number {
    let root = i;
    while (this.#parents[root] !== root) root = this.#parents[root] as number;
    this.#parents[i] = root;
    return root;
  }
}

/** Returns the manifests of an image without its referrers, which follow its root. */
function ownManifests({ root, manifests }: LockedImage['contents']): LockedImage['contents']['manifests'] {
  return manifests.slice(0, manifests.findIndex(({ descriptor }) => descriptor.digest === root.digest) + 1);
}

/** Divides items into parts of about equal bytes, whatever their order. */
function divide<T extends { key: string; bytes: number }>(items: readonly T[], count: number): T[][] {
  const largestFirst = [...items].sort((a, b) => b.bytes - a.bytes || compareBytes(a.key, b.key));
  const parts = new Parts(count);
  const divided = Array.from({ length: count }, (): T[] => []);
  for (const item of largestFirst) divided[parts.take(item.bytes)]?.push(item);
  return divided;
}

/** The loads of the parts, as a heap with the least first. */
class Parts {
  readonly #heap: Part[];

  constructor(count: number) {
    this.#heap = Array.from({ length: count }, (_, index) => ({ index, bytes: 0, images: 0 }));
  }

  /** Adds an image to the part with the least load, and returns the index of the part. */
  take(bytes: number): number {
    const heap = this.#heap;
    const part = heap[0] as Part;
    part.bytes += bytes;
    part.images++;
    for (let position = 0; ;) {
      const least = [2 * position + 1, 2 * position + 2].reduce(
        (best, child) => (isLess(heap[child], heap[best] as Part) ? child : best),
        position,
      );
      if (least === position) return part.index;
      heap[position] = heap[least] as Part;
      heap[least] = part;
      position = least;
    }
  }
}

interface Part {
  index: number;
  bytes: number;
  images: number;
}

function isLess(a: Part | undefined, b: Part): boolean {
  return a !== undefined && (a.bytes - b.bytes || a.images - b.images || a.index - b.index) < 0;
}
