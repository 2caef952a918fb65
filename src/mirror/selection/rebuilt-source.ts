import type { Catalog } from '../../catalog/catalog.js';
import type { Reference } from '../../core/reference.js';
import type { CatalogFacts } from '../../model/facts.js';
import { type ImageSession, openReference, withCatalogCache } from '../../oci/image/open.js';
import { withChanges } from '../../source/session.js';
import { type RebuildOptions, type RebuiltCatalog, rebuildCatalog } from './rebuilt-catalog.js';

/** A catalog, what is kept of it, and the image that it was read from. */
export interface RebuildSource {
  catalog: Catalog;
  facts: CatalogFacts;
  /** By digest. */
  reference: Reference;
  digest: string;
}

/** Rebuilds a catalog on the image that it came from, which stays open until the rebuilt one is closed. */
export async function rebuildFrom(
  { catalog, facts, reference, digest }: RebuildSource,
  options: RebuildOptions & { session: ImageSession },
): Promise<RebuiltCatalog> {
  const { session, ...rest } = options;
  const base = await openReference(reference, withChanges(session, { signal: options.signal }));
  try {
    const repository = await withCatalogCache(base.repository, session);
    const made = await rebuildCatalog(catalog, facts, { repository, digest }, rest);
    return {
      digest: made.digest,
      repository: made.repository,
      close: async () => {
        await made.close();
        await base.close();
      },
    };
  } catch (error) {
    await base.close();
    throw error;
  }
}
