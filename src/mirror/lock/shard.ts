import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { findSubjectOfTag } from '../../oci/signatures/attached-signatures.js';
import { type LockedImage, nameOfLocked } from './lock.js';

/** One of several machines that share a plan: `index` from 0, below `count`. */
export interface Shard {
  index: number;
  count: number;
}

/** The most shards that may share a plan. */
export const maxShards = 10_000;

/**
 * Reads `I/N`, or what an indexed Kubernetes Job tells its pods; undefined where neither says anything. Throws
 * UsageError.
 */
export function parseShard(
  text: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Shard | undefined {
  if (text !== undefined) {
    const [, index, count] = /^([^/]*)\/([^/]*)$/.exec(text) ?? [];
    const problem = `--shard ${quoteGo(text)}`;
    return shardFrom(index ?? '', count ?? '', problem, 'use I/N, e.g. 0/4 for the first of four machines');
  }
  const { JOB_COMPLETION_INDEX: index = '', JOB_COMPLETION_COUNT: count = '' } = environment;
  if (index === '' && count === '') return undefined;
  if (index === '' || count === '') {
    const [input, other] =
      index === ''
        ? ['JOB_COMPLETION_COUNT', 'JOB_COMPLETION_INDEX']
        : ['JOB_COMPLETION_INDEX', 'JOB_COMPLETION_COUNT'];
    const hint =
      other === 'JOB_COMPLETION_COUNT'
        ? 'set JOB_COMPLETION_COUNT to the completions of the Job, or use --shard I/N'
        : 'run in a Job with completionMode Indexed, or use --shard I/N';
    throw new UsageError(`${input} is set, but ${other} is not`, { hint });
  }
  const hint = 'use numbers, the first of them zero-based and less than the second';
  const problem = `JOB_COMPLETION_INDEX ${quoteGo(index)} of JOB_COMPLETION_COUNT ${quoteGo(count)}`;
  return shardFrom(index, count, problem, hint);
}

function shardFrom(index: string, count: string, subject: string, hint: string): Shard {
  const [first, most] = [index, count].map((part) => (/^\d{1,6}$/.test(part) ? Number(part) : Number.NaN));
  const shard = { index: first as number, count: most as number };
  if (shard.count > maxShards) throw new UsageError(`more than ${maxShards} machines`, { subject, hint });
  if (shard.count >= 1 && shard.index < shard.count) return shard;
  throw new UsageError('not one of several machines', { subject, hint });
}

/**
 * The part of some images that a shard copies, in the order given: every image is in exactly one part whatever the
 * order in which they are given, and parts are about equal in bytes, and in images where bytes do not tell. Keys are
 * the images' own.
 */
export function getShard<T extends { key: string; bytes: number }>(images: readonly T[], shard: Shard): T[] {
  const own = new Set(divide(images, shard.count)[shard.index]);
  return images.filter((image) => own.has(image));
}

/**
 * The shard of each image of a plan, catalogs left aside. Images of one repository that share a manifest are of one
 * shard, and so are signatures and what they sign: no two shards put the same manifest.
 */
export function assignShards(images: readonly LockedImage[], count: number): number[] {
  const groups = new ImageGroups(images);
  const parts = [...groups.bytes()].map(([key, bytes]) => ({ key, bytes }));
  const shards = new Map<string, number>();
  for (const [index, own] of divide(parts, count).entries())
    for (const { key } of own) shards.set(key, index);
  return images.map((_, i) => shards.get(groups.toKey(i)) as number);
}

/** Images that belong together. */
class ImageGroups {
  readonly #images: readonly LockedImage[];
  /** By image, an image of the same group; itself for the first one. */
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

  /** The name of the first image of a group, in byte order, that is no signature. */
  toKey(i: number): string {
    return this.#keys().get(this.#getRoot(i)) as string;
  }

  /** Bytes of each group; without signatures and referrers, which a plan may not know yet. */
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
        const [root, name] = [this.#getRoot(i), nameOfLocked(image)];
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

/** Manifests of an image without what refers to it, which stands after its root. */
function ownManifests({ root, manifests }: LockedImage['contents']): LockedImage['contents']['manifests'] {
  return manifests.slice(0, manifests.findIndex(({ descriptor }) => descriptor.digest === root.digest) + 1);
}

/** Divides items into `count` parts of about equal bytes, whatever their order. */
function divide<T extends { key: string; bytes: number }>(items: readonly T[], count: number): T[][] {
  const largestFirst = [...items].sort((a, b) => b.bytes - a.bytes || compareBytes(a.key, b.key));
  const parts = new Parts(count);
  const divided = Array.from({ length: count }, (): T[] => []);
  for (const item of largestFirst) divided[parts.take(item.bytes)]?.push(item);
  return divided;
}

/** What the machines have to do, as a heap whose first has the least. */
class Parts {
  readonly #heap: Part[];

  constructor(count: number) {
    this.#heap = Array.from({ length: count }, (_, index) => ({ index, bytes: 0, images: 0 }));
  }

  /** Gives an image to the machine that has the least to do, and returns which that is. */
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
