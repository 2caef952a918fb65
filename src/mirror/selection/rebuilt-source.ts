import type { Catalog } from '../../catalog/catalog.js';
import type { Reference } from '../../core/reference.js';
import type { CatalogFacts } from '../../model/facts.js';
import { openReference, withCatalogCache } from '../../oci/image/open.js';
import type { SourceSession } from '../../source/session.js';
import { type RebuildOptions, type RebuiltCatalog, rebuildCatalog } from './rebuilt-catalog.js';

/** A catalog with its source image and the content to keep. */
export interface RebuildSource {
  catalog: Catalog;
  facts: CatalogFacts;
  /** By digest. */
  reference: Reference;
  digest: string;
}

/** Rebuilds a catalog on its source image, which stays open until the rebuilt catalog is closed. */
export async function rebuildFrom(
  { catalog, facts, reference, digest }: RebuildSource,
  session: SourceSession,
  changes: Pick<RebuildOptions, 'platforms' | 'withoutImages'>,
): Promise<RebuiltCatalog> {
  const { temporaryDirectory, logger, signal } = session;
  const base = await openReference(reference, session);
  try {
    const repository = await withCatalogCache(base.repository, session);
    const options = { ...changes, temporaryDirectory, logger, signal };
    const rebuilt = await rebuildCatalog(catalog, facts, { repository, digest }, options);
    return {
      ...rebuilt,
      close: async () => {
        await rebuilt.close();
        await base.close();
      },
    };
  } catch (error) {
    await base.close();
    throw error;
  }
}
