import { mapConcurrent, withOpen } from '../core/concurrency.js';
import { type CatalogFacts, joinFacts } from '../model/facts.js';
import { sourceFacts } from '../source/facts.js';
import { inReference } from '../source/reference-error.js';
import type { Session } from '../source/session.js';
import { openSource } from '../source/source.js';

/**
 * Reads names, edges and versions of catalogs and bundles as one catalog, for `drawGraph` and `readDrawnChannels`. Throws
 * OpmateError.
 */
export async function readFacts(references: readonly string[], session: Session): Promise<CatalogFacts> {
  const read = async (reference: string): Promise<CatalogFacts> => {
    try {
      return await withOpen(openSource(reference, session), (source) =>
        sourceFacts(source, reference, session),
      );
    } catch (error) {
      throw inReference(error, reference);
    }
  };
  return joinFacts(await mapConcurrent(references, 8, read, session));
}
