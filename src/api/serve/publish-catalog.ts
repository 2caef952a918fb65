import { withOpen } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import type { Publication } from '../../serve/publish/publish-catalog.js';
import type { Session } from '../../source/session.js';
import { withCatalog } from '../open-catalog.js';

/** Options of `publishCatalog`. */
export interface PublishCatalogOptions {
  /** Name of the catalog in URLs, a DNS subdomain; default that of its directory, file or image. */
  name?: string | undefined;
  /** Adds to a directory that has published catalogs; without it the directory must be absent or empty. */
  update?: boolean | undefined;
  /**
   * Removes files by digest that no catalog of the directory has referred to for this long, in milliseconds; default
   * none.
   */
  pruneMs?: number | undefined;
}

/**
 * Publishes a catalog as static files in a directory, for any web server: all blobs as the HTTP catalog API has them,
 * the blobs of each package, and icons, by digest, with an index. The same catalog is the same bytes. Throws OpmateError.
 */
export async function publishCatalog(
  reference: string,
  directory: string,
  session: Session,
  options: PublishCatalogOptions = {},
): Promise<Publication> {
  const [{ storeContent }, { publishContent }, { findCatalogNameFault, getDefaultCatalogName }] =
    await Promise.all([
      import('../../serve/catalogs/content-store.js'),
      import('../../serve/publish/publish-catalog.js'),
      import('../../serve/http/catalog-names.js'),
    ]);
  const { name = getDefaultCatalogName(reference) } = options;
  const fault = findCatalogNameFault(name);
  if (fault !== undefined) throw new UsageError(`name ${name}: ${fault}`);
  const { now, logger, signal } = session;
  return withCatalog(reference, session, async ({ catalog }) => {
    return withOpen(storeContent(catalog, session), (content) =>
      publishContent(content, directory, { ...options, name, now, logger, signal }),
    );
  });
}
