import type { Repository } from './repository.js';

/** Returns the repository with some of its methods replaced. */
export function withReads<R extends Repository>(repository: R, reads: Partial<Repository>): R {
  const own: Partial<Record<string | symbol, unknown>> = reads;
  return new Proxy(repository, {
    get(target, key) {
      const value: unknown = own[key] ?? Reflect.get(target, key, target);
      // Private fields exist on the repository itself only.
      return typeof value === 'function' && own[key] === undefined ? value.bind(target) : value;
    },
  });
}
