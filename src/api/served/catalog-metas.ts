import { throwIfCancelled } from '../../core/errors.js';
import { getText } from '../../document/json-fields.js';
import { CatalogRecords, getContentsDirectory } from '../../serve/catalogs/catalog-records.js';
import type { Session } from '../../source/session.js';
import { openCatalog } from '../open-catalog.js';
import { type ServedCatalogs, listing, listingOfDirectory } from './catalog-statuses.js';

/** A blob of a served catalog. */
export interface ServedMeta {
  catalog: string;
  schema: string;
  /** Empty for a blob without a package, also for a package. */
  package: string;
  /** Empty for a blob without a name. */
  name: string;
}

/** Selects blobs; an undefined field matches all. */
export interface ServedMetasQuery {
  catalog?: string | undefined;
  schema?: string | undefined;
  packages?: readonly string[] | undefined;
  name?: string | undefined;
}

/**
 * Yields the blobs of served catalogs that match all fields of a query, by catalog and in the order of its files. Throws
 * OpmateError.
 */
export async function* listServedMetas(
  served: ServedCatalogs,
  session: Session,
  query: ServedMetasQuery = {},
): AsyncGenerator<ServedMeta, void, undefined> {
  if ('storage' in served) {
    yield* metasStored(served.storage, session, query);
    return;
  }
  const root = 'url' in served ? served.url.replace(/\/+$/, '').replace(/\/catalogs$/, '') : served.published;
  const listed = 'url' in served ? await listing(root, session) : await listingOfDirectory(root);
  for (const catalog of listed.map((value) => getText(value, 'name')).sort()) {
    if ((query.catalog ?? catalog) !== catalog) continue;
    const source = await openCatalog(`${root}/catalogs/${catalog}`, session);
    try {
      const { signal, logger } = session;
      for await (const meta of source.catalog.metas({ signal, logger, withoutManifests: true })) {
        const found = { catalog, schema: meta.schema, package: meta.package, name: meta.name };
        if (matches(found, query)) yield found;
      }
    } finally {
      await source.close();
    }
  }
}

async function* metasStored(
  storage: string,
  { signal }: Session,
  query: ServedMetasQuery,
): AsyncGenerator<ServedMeta, void, undefined> {
  const { openContent } = await import('../../serve/catalogs/content-store.js');
  for (const { name: catalog, contentHash } of await new CatalogRecords(storage).list()) {
    throwIfCancelled(signal);
    if (contentHash === undefined || (query.catalog ?? catalog) !== catalog) continue;
    const content = await openContent(contentHash, { directory: getContentsDirectory(storage) });
    if (content === undefined) continue;
    try {
      for (const blob of content.blobs({})) {
        const found = { catalog, schema: blob.schema, package: blob.package, name: blob.name };
        if (matches(found, query)) yield found;
      }
    } finally {
      await content.close();
    }
  }
}

function matches(meta: ServedMeta, { schema, packages, name }: ServedMetasQuery): boolean {
  if (packages?.includes(meta.package) === false) return false;
  return (schema ?? meta.schema) === meta.schema && (name ?? meta.name) === meta.name;
}
