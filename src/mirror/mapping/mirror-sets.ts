import { type MirrorEntry, mergeEntries } from '../cluster-manifests.js';
import { formatRepository } from '../naming/image-name.js';
import type { PlannedImage } from '../plan/planned-image.js';

/** Scope of an entry of a mirror set. */
export type MirrorScope = 'repository' | 'registry';

/**
 * Returns the entries of mirrored images, by digest or by tag. Sources are the names in the catalog, even if images were
 * mirrored from elsewhere. Entries of scope `registry` contain hosts only, so they require equal paths.
 */
export function toMirrorEntries(
  images: readonly PlannedImage[],
  scope: MirrorScope,
  by: 'digest' | 'tag' = 'digest',
): MirrorEntry[] {
  return mergeEntries(
    images.flatMap(({ kind, reference, target }) => {
      if (reference.transport !== 'docker' || target.transport !== 'docker') return [];
      if ((reference.digest === undefined ? 'tag' : 'digest') !== by) return [];
      // A CatalogSource names the mirrored catalog.
      if (kind === 'catalog' && by === 'tag') return [];
      return scope === 'registry'
        ? { source: reference.registry, mirrors: [target.registry] }
        : { source: formatRepository(reference), mirrors: [formatRepository(target)] };
    }),
  );
}

/** Returns an image that entries of scope `registry` do not cover, as its path differs at the target. */
export function findUnreachable(images: readonly PlannedImage[]): PlannedImage | undefined {
  return images.find(
    ({ reference, target }) =>
      reference.transport === 'docker' &&
      target.transport === 'docker' &&
      reference.digest !== undefined &&
      reference.repository !== target.repository,
  );
}
