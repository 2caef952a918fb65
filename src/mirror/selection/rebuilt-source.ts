import type { Catalog } from '../../catalog/catalog.js';
import type { Reference } from '../../core/reference.js';
import type { CatalogFacts } from '../../model/facts.js';
import { openReference, withCatalogCache } from '../../oci/image/open.js';
import type { SourceSession } from '../../source/session.js';
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
  session: SourceSession,
  changes: Pick<RebuildOptions, 'platforms' | 'withoutImages'>,
): Promise<RebuiltCatalog> {
  const { temporaryDirectory, logger, signal } = session;
  const base = await openReference(reference, session);
  try {
    const repository = await withCatalogCache(base.repository, session);
    const made = await rebuildCatalog(
      catalog,
      facts,
      { repository, digest },
      {
        ...changes,
        ...{ temporaryDirectory, logger, signal },
      },
    );
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
