import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';

/** Returns a note for each target repository of several source repositories, sorted. */
export function findSharedRepositories(images: Iterable<{ source: string; target: string }>): string[] {
  const sources = new Map<string, Set<string>>();
  for (const { source, target } of images) {
    getOrAdd(sources, target, () => new Set()).add(source);
  }
  return [...sources]
    .filter(([, names]) => names.size > 1)
    .map(([target, names]) => `${target}: shared by ${sortedByBytes(names).join(', ')}`)
    .sort(compareBytes);
}

/** Rules for the names and tags of images. */
interface TagRules<T> {
  /** Returns the tag at the target; undefined for an image without one. */
  getTag: (image: T) => string | undefined;
  getName: (image: T) => string;
  isSame: (a: T, b: T) => boolean;
  getHint: (collisions: readonly (readonly [T, T])[]) => string;
}

/** Throws OpmateError INVALID for tags of several images, with one error each as its cause. */
export function requireOneImagePerTag<T>(images: readonly T[], rules: TagRules<T>): void {
  const owners = new Map<string, T>();
  const errors = new Map<string, OpmateError>();
  const collisions: [T, T][] = [];
  for (const image of images) {
    const tag = rules.getTag(image);
    if (tag === undefined) continue;
    const owner = getOrAdd(owners, tag, () => image);
    if (rules.isSame(owner, image)) continue;
    collisions.push([owner, image]);
    const problem = `same target for ${rules.getName(owner)} and ${rules.getName(image)}`;
    getOrAdd(errors, tag, () => new OpmateError('INVALID', problem, { subject: tag }));
  }
  const [first, ...others] = errors.values();
  if (first === undefined) return;
  const isOne = others.length === 0;
  throw new OpmateError('INVALID', isOne ? first.message : `${errors.size} tags collide`, {
    hint: rules.getHint(collisions),
    cause: isOne ? undefined : new AggregateError([first, ...others]),
  });
}
