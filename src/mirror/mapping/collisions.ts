import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';

/** Source and target repository of an image, without tag and digest. */
interface MappedRepository {
  source: string;
  target: string;
}

/** Returns a note for each target repository of several source repositories, sorted. */
export function findSharedRepositories(images: Iterable<MappedRepository>): string[] {
  const sources = new Map<string, Set<string>>();
  for (const { source, target } of images) {
    getOrAdd(sources, target, () => new Set()).add(source);
  }
  return [...sources]
    .filter(([, names]) => names.size > 1)
    .map(([target, names]) => `${target}: shared by ${sortedByBytes(names).join(', ')}`)
    .sort(compareBytes);
}

/** The images that get each tag at the target. */
export class TagOwners<T> {
  readonly #owners = new Map<string, T>();
  readonly #faults = new Map<string, OpmateError>();

  /** Notes an image for a tag; returns the first one with this tag, which may be itself. */
  claim(tag: string, image: T): T {
    return getOrAdd(this.#owners, tag, () => image);
  }

  /** Notes that a tag would name two images. */
  refuse(tag: string, name: string, other: string): void {
    if (this.#faults.has(tag)) return;
    const problem = `same target for ${name} and ${other}`;
    this.#faults.set(tag, new OpmateError('INVALID', problem, { subject: tag }));
  }

  /** Throws OpmateError INVALID for the tags that would name two images, one error each as its cause. */
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
