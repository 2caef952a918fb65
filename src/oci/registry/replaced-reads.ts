import type { Repository } from './repository.js';

/** The same repository, but for some of its functions. */
export function withReads<R extends Repository>(repository: R, reads: Partial<Repository>): R {
  const own: Partial<Record<string | symbol, unknown>> = reads;
  return new Proxy(repository, {
    get(target, key) {
      const value: unknown = own[key] ?? Reflect.get(target, key, target);
      // Private fields are found on the repository itself only.
      return typeof value === 'function' && own[key] === undefined ? value.bind(target) : value;
    },
  });
}
