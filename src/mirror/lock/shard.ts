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
const maxShards = 10_000;

/** Throws UsageError for a number of shards above the maximum. */
export function requireShardCount(count: number): void {
  if (count > maxShards) throw new UsageError(`options.shards: maximum ${maxShards}, got ${count}`);
}

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
    return createShard(index ?? '', count ?? '', `mirror.shard ${quoteGo(text)}`, hint);
  }
  const { JOB_COMPLETION_INDEX: index = '', JOB_COMPLETION_COUNT: count = '' } = environment;
  if (index === '' && count === '') return undefined;
  if (index === '' || count === '') {
    if (count === '')
      throw new UsageError('JOB_COMPLETION_INDEX is set, but JOB_COMPLETION_COUNT is not', {
        hint: 'set JOB_COMPLETION_COUNT to the completions of the Job, or use mirror.shard I/N',
      });
    throw new UsageError('JOB_COMPLETION_COUNT is set, but JOB_COMPLETION_INDEX is not', {
      hint: 'run in a Job with completionMode Indexed, or use mirror.shard I/N',
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
  const keys = findGroups(images);
  const sums = new Map<string, number>();
  for (const [i, { kind, contents }] of images.entries()) {
    // A plan may not contain signatures and referrers yet.
    const blobs = kind === 'signature' ? [] : ownManifests(contents).flatMap((manifest) => manifest.blobs);
    const key = keys[i] as string;
    sums.set(key, (sums.get(key) ?? 0) + blobs.reduce((sum, { size }) => sum + size, 0));
  }
  const parts = [...sums].map(([key, bytes]) => ({ key, bytes }));
  const shards = new Map<string, number>();
  for (const [index, own] of divide(parts, count).entries())
    for (const { key } of own) shards.set(key, index);
  return keys.map((key) => shards.get(key) as number);
}

/** Returns the group of each image: the first name of its images in byte order; signatures come last. */
function findGroups(images: readonly LockedImage[]): string[] {
  /** Index of another image of the group, by image; the root has its own index. */
  const parents = images.map((_, i) => i);
  const getRoot = (i: number): number => {
    let root = i;
    while (parents[root] !== root) root = parents[root] as number;
    return (parents[i] = root);
  };
  const known = new Map<string, number>();
  const join = (key: string, i: number): void => {
    parents[getRoot(i)] = getRoot(getOrAdd(known, key, () => i));
  };
  for (const [i, { repository, contents }] of images.entries())
    for (const { descriptor } of ownManifests(contents)) join(`${repository} ${descriptor.digest}`, i);
  for (const [i, { kind, repository, tag }] of images.entries()) {
    const signed = kind === 'signature' ? findSubjectOfTag(tag) : undefined;
    if (signed !== undefined) join(`${repository} ${signed}`, i);
  }
  const firsts = new Map<number, { isSignature: boolean; name: string }>();
  for (const [i, image] of images.entries()) {
    const [isSignature, name, root] = [image.kind === 'signature', getLockedName(image), getRoot(i)];
    const first = getOrAdd(firsts, root, () => ({ isSignature, name }));
    const isBefore =
      first.isSignature === isSignature ? compareBytes(name, first.name) < 0 : first.isSignature;
    if (isBefore) firsts.set(root, { isSignature, name });
  }
  return images.map((_, i) => firsts.get(getRoot(i))?.name as string);
}

/** Returns the manifests of an image without its referrers, which follow its root. */
function ownManifests({ root, manifests }: LockedImage['contents']): LockedImage['contents']['manifests'] {
  return manifests.slice(0, manifests.findIndex(({ descriptor }) => descriptor.digest === root.digest) + 1);
}

/** Divides items into parts of about equal bytes, whatever their order. */
function divide<T extends { key: string; bytes: number }>(items: readonly T[], count: number): T[][] {
  const largestFirst = [...items].sort((a, b) => b.bytes - a.bytes || compareBytes(a.key, b.key));
  const divided = Array.from({ length: count }, (_, index): Part<T> => ({ index, bytes: 0, items: [] }));
  // A heap with the smallest part first.
  const heap = [...divided];
  for (const item of largestFirst) {
    const part = heap[0] as Part<T>;
    part.bytes += item.bytes;
    part.items.push(item);
    for (let position = 0; ;) {
      const smallest = [2 * position + 1, 2 * position + 2].reduce(
        (best, child) => (isLess(heap[child], heap[best] as Part<T>) ? child : best),
        position,
      );
      if (smallest === position) break;
      heap[position] = heap[smallest] as Part<T>;
      heap[smallest] = part;
      position = smallest;
    }
  }
  return divided.map(({ items: own }) => own);
}

interface Part<T> {
  index: number;
  bytes: number;
  items: T[];
}

function isLess(a: Part<unknown> | undefined, b: Part<unknown>): boolean {
  return a !== undefined && (a.bytes - b.bytes || a.items.length - b.items.length || a.index - b.index) < 0;
}
