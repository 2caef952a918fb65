import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { onAbort, openTogether, withOpen } from '../../core/concurrency.js';
import { OpmateError, UsageError, throwIfCancelled } from '../../core/errors.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import { openCatalogQueries } from '../../serve/grpc/catalog-queries.js';
import type { RegistryQueries } from '../../serve/grpc/registry-queries.js';
import { type SharedReader, shareReading } from '../../catalog/shared-reading.js';
import type { Session } from '../../source/session.js';
import type { LoadReport } from '../../sqlite/legacy/manifest-loader.js';
import type { ViewedCatalog } from '../../view/catalog-view.js';
import { openCatalog, withCatalog } from '../open-catalog.js';
import type { ManifestSource } from '../indexes/load-manifests.js';
import type { ExportViewOptions } from '../view/view-catalog.js';
import type { GrpcServerOptions } from './grpc-server.js';
import type { HttpAddress, HttpServerOptions } from './http-server.js';

/** APIs to serve a catalog with; at least one. */
export interface ServeCatalogOptions {
  /** gRPC registry API of OLM v0. */
  grpc?: GrpcServerOptions | undefined;
  /** HTTP catalog API of OLM v1. */
  http?: HttpServerOptions | undefined;
  /** Name of the catalog in the HTTP API; default `catalog`. */
  name?: string | undefined;
  /** Directory of contents of the HTTP API, kept from one start to the next; default none. */
  storage?: string | undefined;
  /** Directory of encoded bundles, kept from one start to the next; default none. */
  cacheDirectory?: string | undefined;
  /** Fail if the cache belongs to another catalog. */
  requireCache?: boolean | undefined;
  /** Address of the page of the catalog, as `viewCatalog` serves it; default none. */
  page?: (HttpAddress & Pick<ExportViewOptions, 'reword'>) | undefined;
}

/** A served catalog. `close` finishes requests in progress. */
export interface CatalogServer {
  grpcPort: number | undefined;
  /** URL of the catalog in the HTTP API. */
  url: string | undefined;
  /** URL of the page. */
  pageUrl: string | undefined;
  close(): Promise<void>;
}

type Opened = { close(): unknown }[];

/**
 * Serves a catalog over gRPC, HTTP, or both, until it is closed or the signal of the session fires. Throws OpmateError
 * for a catalog that is invalid, and IO for an address that is in use.
 */
export async function serveCatalog(
  reference: string,
  session: Session,
  options: ServeCatalogOptions,
): Promise<CatalogServer> {
  const { grpc, http, page } = options;
  return openTogether(session.signal, async (opened) => {
    const source = await openCatalog(reference, session);
    opened.push(source);
    const { catalog } = source;
    // One pass over the blobs serves all APIs.
    const readers = shareReading(catalog, [grpc, http, page].filter(Boolean).length, session);
    const read = async <T>(work: (shared: Catalog) => Promise<T>): Promise<T> => {
      const { catalog: shared, skip } = readers.pop() as SharedReader;
      return work(shared).finally(skip);
    };
    const [queries, server, served] = await settleAll([
      grpc && read((shared) => startQueries(catalog, shared, reference, session, options, opened)),
      http && read((shared) => storeForHttp(shared, session, options, http, opened)),
      page && read((shared) => startPage({ name: reference, catalog: shared }, page, session, opened)),
    ]);
    const url = await server?.listen();
    const pageUrl = served?.url;
    const grpcPort = grpc && queries && (await startGrpc(queries, reference, session, grpc, opened));
    return { grpcPort, url, pageUrl };
  });
}

/** Waits for all work, so that what it opens can be closed. Throws the first failure in this order. */
async function settleAll<T extends readonly unknown[]>(works: T): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(works);
  return settled.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  }) as { [K in keyof T]: Awaited<T[K]> };
}

/** Options of `serveIndex`. */
export interface ServeIndexOptions {
  /** gRPC registry API of OLM v0. */
  grpc: GrpcServerOptions;
  /** Name of the index in messages; default its path. */
  name?: string | undefined;
  /** Load what is valid of package manifests and report the rest; default false. */
  permissive?: boolean | undefined;
  /** Called when the index of package manifests is complete, before it is served. */
  onLoaded?: ((report: LoadReport) => void) | undefined;
}

/**
 * Serves the file of a sqlite index, or an index of package manifests, over gRPC until it is closed or the signal of the
 * session fires; the file is never changed. Throws OpmateError, and ManifestsError as `loadManifests` does.
 */
export async function serveIndex(
  index: string | ManifestSource,
  session: Session,
  options: ServeIndexOptions,
): Promise<Pick<CatalogServer, 'close'> & { grpcPort: number }> {
  return openTogether(session.signal, async (opened) => {
    const file = typeof index === 'string' ? index : await loadIndex(index, session, options, opened);
    const { grpc, name = file } = options;
    const { openSqliteQueries } = await import('../../serve/grpc/sqlite-queries.js');
    const queries = await openSqliteQueries(file, session, { name });
    opened.push(queries);
    return { grpcPort: await startGrpc(queries, name, session, grpc, opened) };
  });
}

/** Loads package manifests into an index that exists as long as it is served; returns its file. */
async function loadIndex(
  source: ManifestSource,
  session: Session,
  { permissive, onLoaded }: ServeIndexOptions,
  opened: Opened,
): Promise<string> {
  const { loadManifests } = await import('../indexes/load-manifests.js');
  const temporary = await makeTemporaryDirectory(session.temporaryDirectory, session.now());
  opened.push({ close: () => temporary.remove() });
  const file = path.join(temporary.path, 'index.db');
  onLoaded?.(await loadManifests(file, source, session, { permissive }));
  return file;
}

/**
 * Builds the cache that `serveCatalog` starts from. Throws OpmateError: for a catalog that is invalid, IO for a cache
 * that cannot be written.
 */
export async function buildServeCache(
  reference: string,
  cacheDirectory: string,
  session: Session,
): Promise<void> {
  await withCatalog(reference, session, async ({ catalog }) => {
    const directory = path.resolve(session.workingDirectory, cacheDirectory);
    const cache = openQueries(catalog, reference, session, { cacheDirectory: directory });
    await withOpen(cache, async (queries) => {
      // An interrupted build leaves no cache.
      const stopWaiting = onAbort(session.signal, () => void queries.close());
      const cached = await queries.encoded;
      stopWaiting();
      throwIfCancelled(session.signal);
      if (cached === undefined) {
        throw new OpmateError('UNSUPPORTED', 'a sqlite index is served without a cache', {
          subject: reference,
          hint: 'remove api.buildServeCache',
        });
      }
      if (cached.isCached) return;
      throw new OpmateError('IO', `${cacheDirectory}: cannot write the cache: ${cached.reason}`, {
        hint: 'specify a writable directory with space for the bundles of the catalog',
      });
    });
  });
}

/** Opens a file-based catalog, which is read as `shared`, or a sqlite index for the gRPC registry API. */
async function openQueries(
  catalog: Catalog,
  reference: string,
  session: Session,
  options: Omit<Parameters<typeof openCatalogQueries>[1], 'temporaryDirectory' | 'now'> = {},
  shared: Catalog = catalog,
): Promise<RegistryQueries & Partial<Pick<Awaited<ReturnType<typeof openCatalogQueries>>, 'encoded'>>> {
  const { temporaryDirectory, now, logger, signal } = session;
  const settings = { temporaryDirectory, now, logger, signal, ...options };
  if (catalog.listFiles !== undefined) return openCatalogQueries(shared, settings);
  const { SqliteCatalog } = await import('../../sqlite/read/catalog.js');
  if (!(catalog instanceof SqliteCatalog)) return openCatalogQueries(shared, settings);
  const { openSqliteQueries } = await import('../../serve/grpc/sqlite-queries.js');
  return openSqliteQueries(catalog.file, session, { name: reference });
}

async function startGrpc(
  queries: RegistryQueries,
  name: string,
  { logger }: Session,
  options: GrpcServerOptions,
  opened: Opened,
): Promise<number> {
  const { startGrpcServer } = await import('./grpc-server.js');
  const server = await startGrpcServer(queries, name, options, logger);
  opened.push(server);
  return server.port;
}

async function startQueries(
  catalog: Catalog,
  shared: Catalog,
  reference: string,
  session: Session,
  { cacheDirectory, requireCache }: ServeCatalogOptions,
  opened: Opened,
): Promise<RegistryQueries> {
  const directory = cacheDirectory && path.resolve(session.workingDirectory, cacheDirectory);
  const options = { cacheDirectory: directory, requireCache };
  const queries = await openQueries(catalog, reference, session, options, shared);
  opened.push(queries);
  return queries;
}

async function startPage(
  shown: ViewedCatalog,
  { host = '127.0.0.1', port, reword }: NonNullable<ServeCatalogOptions['page']>,
  session: Session,
  opened: Opened,
): Promise<{ url: string }> {
  const { servePage } = await import('../view/page.js');
  const served = await servePage(shown, { host, port, reword }, session);
  opened.push(served);
  return served;
}

/** Stores a catalog for its HTTP API; `listen` returns its URL. */
async function storeForHttp(
  catalog: Catalog,
  session: Session,
  { name = 'catalog', storage }: ServeCatalogOptions,
  options: HttpServerOptions,
  opened: Opened,
): Promise<{ listen: () => Promise<string> }> {
  const [{ createCatalogSet }, { storeContent }, { prepareHttpServer }, { findCatalogNameFault }] =
    await Promise.all([
      import('../../serve/catalogs/catalog-set.js'),
      import('../../serve/catalogs/content-store.js'),
      import('./http-server.js'),
      import('../../serve/http/catalog-names.js'),
    ]);
  const fault = findCatalogNameFault(name);
  if (fault !== undefined) throw new UsageError(`name ${name}: ${fault}`);
  const directory = storage === undefined ? undefined : path.resolve(session.workingDirectory, storage);
  const catalogs = createCatalogSet();
  opened.push(catalogs);
  const server = await prepareHttpServer(options, catalogs, session);
  const content = await storeContent(catalog, { ...session, directory });
  await catalogs.put({ name, content, labels: {}, priority: 0 });
  catalogs.markReady();
  opened.push(server);
  return { listen: async () => `${await server.listen()}/catalogs/${name}` };
}
