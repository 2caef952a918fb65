import path from 'node:path';
import { collectFacts } from '../catalog/facts.js';
import { withOpen } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { SourceSession } from '../source/session.js';
import { catalogsOnly } from '../source/source-types.js';
import { openSource } from '../source/source.js';

/** A bundle in a catalog file of an operator. */
export interface CatalogBundle {
  name: string;
  image: string;
  hasBundleObject: boolean;
  /** One-based line of its blob. */
  line: number | undefined;
}

/** Returns the bundles of the catalog that a file is in: its directory. Throws OpmateError with file and line. */
export async function listCatalogBundles(file: string, session: SourceSession): Promise<CatalogBundle[]> {
  return withOpen(openSource(path.dirname(file), session, catalogsOnly), async (source) => {
    if (source.kind !== 'catalog') throw new OpmateError('UNSUPPORTED', 'not a catalog', { about: file });
    const facts = await collectFacts(source.catalog, session);
    const bundles: CatalogBundle[] = [];
    for (const { name, image, objectCount, origin } of facts.bundles) {
      const line = origin === undefined ? undefined : await source.catalog.lineOf(origin);
      bundles.push({ name, image, hasBundleObject: objectCount > 0, line });
    }
    return bundles;
  });
}
