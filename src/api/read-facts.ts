import { mapConcurrent } from '../core/concurrency.js';
import { type CatalogFacts, joinFacts } from '../model/facts.js';
import { sourceFacts } from '../source/facts.js';
import { inReference } from '../source/reference-error.js';
import type { Session } from '../source/session.js';
import { openSource } from '../source/source.js';

/**
 * Reads names, edges and versions of catalogs and bundles, as of one catalog: what `drawGraph` and `readDrawnChannels`
 * need. Throws OpmateError.
 */
export async function readFacts(references: readonly string[], session: Session): Promise<CatalogFacts> {
  const readOne = async (reference: string): Promise<CatalogFacts> => {
    try {
      const source = await openSource(reference, session);
      try {
        return await sourceFacts(source, reference, session);
      } finally {
        await source.close();
      }
    } catch (error) {
      throw inReference(error, reference);
    }
  };
  return joinFacts(await mapConcurrent(references, 8, readOne, session));
}
