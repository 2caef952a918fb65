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

/** Images by their tags at the target. */
export class TagOwners<T> {
  readonly #owners = new Map<string, T>();
  readonly #faults = new Map<string, OpmateError>();

  /** Assigns a tag to an image unless it is taken; returns the image with the tag. */
  claim(tag: string, image: T): T {
    return getOrAdd(this.#owners, tag, () => image);
  }

  /** Records a tag of two images. */
  refuse(tag: string, name: string, other: string): void {
    if (this.#faults.has(tag)) return;
    const problem = `same target for ${name} and ${other}`;
    this.#faults.set(tag, new OpmateError('INVALID', problem, { subject: tag }));
  }

  /** Throws OpmateError INVALID for the recorded tags, with one error each as its cause. */
  throwIfRefused(hint: string): void {
    const errors = [...this.#faults.values()];
    const [only] = errors;
    if (only === undefined) return;
    throw new OpmateError('INVALID', errors.length === 1 ? only.message : `${errors.length} tags collide`, {
      hint,
      cause: errors.length === 1 ? undefined : new AggregateError(errors),
    });
  }
}
