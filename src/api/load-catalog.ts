import type { Catalog } from '../catalog/catalog.js';
import { collectFacts } from '../catalog/facts.js';
import type { CatalogFacts } from '../model/facts.js';
import { throwAbout } from '../source/reference-error.js';
import type { Session } from '../source/session.js';
import { type BundleRefusal, openCatalog } from './open-catalog.js';

/** A catalog that was opened by reference. */
export interface LoadedCatalog extends Catalog {
  /** Reads the catalog once and returns names, edges and versions, for `validateCatalog` and lists. */
  facts(): Promise<CatalogFacts>;
}

/**
 * Opens the catalog that a reference names: a directory, or an image, which is unpacked below the session's
 * temporary directory until `close`. Throws OpmateError; UNSUPPORTED for a bundle.
 */
export async function loadCatalog(
  reference: string,
  session: Session,
  refusal?: BundleRefusal,
): Promise<LoadedCatalog> {
  const source = await openCatalog(reference, session, refusal);
  const { catalog } = source;
  return {
    name: catalog.name,
    metas: (options) => catalog.metas({ signal: session.signal, ...options }),
    read: (origin) => catalog.read(origin),
    readText: (origin) => catalog.readText(origin),
    lineOf: (origin, path) => catalog.lineOf(origin, path),
    facts: () => collectFacts(catalog, session).catch(throwAbout(reference)),
    close: () => source.close(),
  };
}
