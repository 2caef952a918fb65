import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { onAbort, openTogether, withOpen } from '../../core/concurrency.js';
import { OpmateError, UsageError, throwIfCancelled } from '../../core/errors.js';
import { openCatalogQueries } from '../../serve/grpc/catalog-queries.js';
import type { RegistryQueries } from '../../serve/grpc/registry-queries.js';
import type { Session } from '../../source/session.js';
import { openCatalog, withCatalog } from '../open-catalog.js';
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
  page?: HttpAddress | undefined;
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
  const { grpc, http, page, cacheDirectory, requireCache } = options;
  return openTogether(session.signal, async (opened) => {
    const source = await openCatalog(reference, session);
    opened.push(source);
    const { catalog } = source;
    let queries: RegistryQueries | undefined;
    if (grpc !== undefined) {
      queries = await openQueries(catalog, reference, session, {
        cacheDirectory: cacheDirectory && path.resolve(session.workingDirectory, cacheDirectory),
        requireCache,
      });
      opened.push(queries);
    }
    const url = http && (await startHttp(catalog, session, options, http, opened));
    let pageUrl: string | undefined;
    if (page !== undefined) {
      const { servePage } = await import('../view/page.js');
      const address = { host: page.host ?? '127.0.0.1', port: page.port };
      const served = await servePage({ name: reference, catalog }, address, session);
      opened.push(served);
      pageUrl = served.url;
    }
    const grpcPort = grpc && queries && (await startGrpc(queries, reference, session, grpc, opened));
    return { grpcPort, url, pageUrl };
  });
}

/**
 * Serves the file of a sqlite index over gRPC until it is closed or the signal of the session fires; the file is never
 * changed. Throws OpmateError.
 */
export async function serveIndex(
  file: string,
  session: Session,
  { grpc, name = file }: { grpc: GrpcServerOptions; name?: string | undefined },
): Promise<Pick<CatalogServer, 'close'> & { grpcPort: number }> {
  return openTogether(session.signal, async (opened) => {
    const { openSqliteQueries } = await import('../../serve/grpc/sqlite-queries.js');
    const queries = await openSqliteQueries(file, session, { name });
    opened.push(queries);
    return { grpcPort: await startGrpc(queries, name, session, grpc, opened) };
  });
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
          hint: 'remove --cache-only',
        });
      }
      if (cached.isCached) return;
      throw new OpmateError('IO', `${cacheDirectory}: cannot write the cache: ${cached.reason}`, {
        hint: 'specify a writable directory with space for the bundles of the catalog',
      });
    });
  });
}

/** Opens a file-based catalog or sqlite index for the gRPC registry API. */
async function openQueries(
  catalog: Catalog,
  reference: string,
  session: Session,
  options: Omit<Parameters<typeof openCatalogQueries>[1], 'temporaryDirectory' | 'now'> = {},
): Promise<RegistryQueries & Partial<Pick<Awaited<ReturnType<typeof openCatalogQueries>>, 'encoded'>>> {
  const { temporaryDirectory, now, logger, signal } = session;
  const settings = { temporaryDirectory, now, logger, signal, ...options };
  if (catalog.listFiles !== undefined) return openCatalogQueries(catalog, settings);
  const { SqliteCatalog } = await import('../../sqlite/read/catalog.js');
  if (!(catalog instanceof SqliteCatalog)) return openCatalogQueries(catalog, settings);
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

async function startHttp(
  catalog: Catalog,
  session: Session,
  { name = 'catalog', storage }: ServeCatalogOptions,
  options: HttpServerOptions,
  opened: Opened,
): Promise<string> {
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
  return `${await server.listen()}/catalogs/${name}`;
}
