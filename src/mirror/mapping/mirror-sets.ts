import { type MirrorEntry, mergeEntries } from '../cluster-manifests.js';
import { pathOf, repositoryOf } from './image-names.js';
import type { MappedImage } from './mapping.js';

/** What the entries of a mirror set stand for: each repository, or each registry. */
export type MirrorScope = 'repository' | 'registry';

/**
 * The entries by which a cluster finds mirrored images that it asks for by digest; images that have only a tag
 * give none. A cluster is told the names that the catalog has, wherever the images were mirrored from. In the scope `registry` only hosts are told, so paths must be the same at both.
 */
export function mirrorEntriesOf(images: readonly MappedImage[], scope: MirrorScope): MirrorEntry[] {
  return mergeEntries(
    images.flatMap(({ origin, target: { name } }) => {
      if (origin?.digest === undefined) return [];
      return scope === 'registry'
        ? { source: origin.registry, mirrors: [name.registry] }
        : { source: repositoryOf(origin), mirrors: [repositoryOf(name)] };
    }),
  );
}

/** An image that entries of the scope `registry` do not lead to, since its path is another at the target. */
export function findUnreachable(images: readonly MappedImage[]): MappedImage | undefined {
  return images.find(
    ({ origin, target }) => origin?.digest !== undefined && pathOf(origin) !== pathOf(target.name),
  );
}
