import { type MirrorEntry, mergeEntries } from '../cluster-manifests.js';
import { getPath, getRepository } from './image-names.js';
import type { MappedImage } from './mapping.js';

/** What the entries of a mirror set stand for: each repository, or each registry. */
export type MirrorScope = 'repository' | 'registry';

/**
 * Returns the entries by which a cluster finds mirrored operand and bundle images, by digest or by tag. Sources are the
 * names in the catalog, wherever the images were mirrored from. Entries of the scope `registry` have hosts only, so
 * paths must be the same at both.
 */
export function toMirrorEntries(
  images: readonly MappedImage[],
  scope: MirrorScope,
  by: 'digest' | 'tag' = 'digest',
): MirrorEntry[] {
  return mergeEntries(
    images.flatMap(({ origin, isCatalog, target: { name } }) => {
      if (origin === undefined || (origin.digest === undefined ? 'tag' : 'digest') !== by) return [];
      // A CatalogSource names the copy itself.
      if (isCatalog && by === 'tag') return [];
      return scope === 'registry'
        ? { source: origin.registry, mirrors: [name.registry] }
        : { source: getRepository(origin), mirrors: [getRepository(name)] };
    }),
  );
}

/** An image that entries of the scope `registry` do not lead to, since its path is another at the target. */
export function findUnreachable(images: readonly MappedImage[]): MappedImage | undefined {
  return images.find(
    ({ origin, target }) => origin?.digest !== undefined && getPath(origin) !== getPath(target.name),
  );
}
