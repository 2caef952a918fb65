import { findReference, formatReference } from '../../core/reference.js';
import { type ImageSetLock, isSameName } from './lock.js';

/**
 * Returns the source of a catalog image at any target of locks: by its digest, else by the longest repository with its tag
 * that its path ends with, which `--max-nested-paths` may have shortened. Undefined for none, and for several sources.
 */
export function findLockedSource(image: string, locks: readonly ImageSetLock[]): string | undefined {
  const reference = findReference(image);
  if (reference?.transport !== 'docker') return undefined;
  const path = `/${reference.repository}`;
  const matches = locks.flatMap((lock) =>
    lock.catalogs.flatMap((catalog) => {
      const { digest } =
        lock.images.find((item) => item.kind === 'catalog' && isSameName(item, catalog))?.contents.root ?? {};
      const isSameDigest = reference.digest !== undefined && reference.digest === digest;
      const isSameTag = reference.digest === undefined && reference.tag === catalog.tag;
      if (!isSameDigest && !(isSameTag && isBelow(path, catalog.repository))) return [];
      const source = findReference(catalog.catalog);
      return source?.transport === 'docker'
        ? [{ source: formatReference(source), length: isSameDigest ? Infinity : catalog.repository.length }]
        : [];
    }),
  );
  const longest = Math.max(...matches.map(({ length }) => length));
  const sources = new Set(matches.filter(({ length }) => length === longest).map(({ source }) => source));
  return sources.size === 1 ? [...sources][0] : undefined;
}

function isBelow(path: string, repository: string): boolean {
  const flatten = (text: string): string => text.replaceAll('/', '-');
  return path.endsWith(`/${repository}`) || flatten(path).endsWith(flatten(`/${repository}`));
}
