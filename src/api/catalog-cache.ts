import type { CacheWriter } from '../mirror/selection/rebuilt-catalog.js';

/** Writes the cache that `opm serve --cache-dir` starts from; what makes it is loaded when it is needed. */
export const writeCatalogCache: CacheWriter = async (catalog, options) => {
  const { writeOpmCache } = await import('../serve/grpc/opm-cache.js');
  return writeOpmCache(catalog, options);
};
