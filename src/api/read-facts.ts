import { collectFacts } from '../catalog/facts.js';
import { mapConcurrent, withOpen } from '../core/concurrency.js';
import { describeBundle } from '../model/describe.js';
import { type CatalogFacts, emptyFacts, joinFacts } from '../model/facts.js';
import { throwAbout } from '../source/reference-error.js';
import { renderBundleSource } from '../source/render.js';
import type { Session } from '../source/session.js';
import { openSource } from '../source/source.js';

/**
 * Reads names, edges and versions of catalogs and bundles as one catalog, for `drawGraph` and `readDrawnChannels`. Throws
 * OpmateError.
 */
export async function readFacts(references: readonly string[], session: Session): Promise<CatalogFacts> {
  const read = (reference: string): Promise<CatalogFacts> =>
    withOpen(openSource(reference, session), async (source) => {
      if (source.kind === 'catalog') return collectFacts(source.catalog, session);
      const blob = renderBundleSource(source, reference, { migrationLevel: 'none' });
      return { ...emptyFacts(), bundles: [describeBundle(blob)] };
    }).catch(throwAbout(reference));
  return joinFacts(await mapConcurrent(references, 8, read, session));
}
