import { type MirrorEntry, mergeEntries } from '../cluster-manifests.js';
import { formatRepository } from '../naming/image-name.js';
import type { MappedImage } from './mapping.js';

/** Scope of an entry of a mirror set. */
export type MirrorScope = 'repository' | 'registry';

/**
 * Returns the entries of mirrored images, by digest or by tag. Sources are the names in the catalog, even if images were
 * mirrored from elsewhere. Entries of scope `registry` contain hosts only, so they require equal paths.
 */
export function toMirrorEntries(
  images: readonly MappedImage[],
  scope: MirrorScope,
  by: 'digest' | 'tag' = 'digest',
): MirrorEntry[] {
  return mergeEntries(
    images.flatMap(({ origin, isCatalog, target: { name } }) => {
      if (origin === undefined || (origin.digest === undefined ? 'tag' : 'digest') !== by) return [];
      // A CatalogSource names the mirrored catalog.
      if (isCatalog && by === 'tag') return [];
      return scope === 'registry'
        ? { source: origin.registry, mirrors: [name.registry] }
        : { source: formatRepository(origin), mirrors: [formatRepository(name)] };
    }),
  );
}

/** Returns an image that entries of scope `registry` do not cover, as its path differs at the target. */
export function findUnreachable(images: readonly MappedImage[]): MappedImage | undefined {
  return images.find(
    ({ origin, target }) => origin?.digest !== undefined && origin.repository !== target.name.repository,
  );
}
