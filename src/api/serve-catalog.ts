import type { Catalog } from '../catalog/catalog.js';
import { UsageError } from '../core/errors.js';
import { openCatalogAnswers } from '../serve/grpc/catalog-answers.js';
import type { RegistryAnswers } from '../serve/grpc/registry-answers.js';
import type { Publication } from '../serve/publish/publish-catalog.js';
import type { Session } from '../source/session.js';
import { openCatalog, withCatalog } from './open-catalog.js';

/** Address of a server. */
export interface ServeAddress {
  /** Default: all addresses for gRPC, `127.0.0.1` for HTTP. */
  host?: string | undefined;
  /** 0 selects a free port. */
  port: number;
}

/** APIs to serve a catalog with; at least one. */
export interface ServeCatalogOptions {
  /** gRPC registry API of OLM v0. */
  grpc?: ServeAddress | undefined;
  /** HTTP catalog API of OLM v1. */
  http?: ServeAddress | undefined;
  /** Name of the catalog in the HTTP API; default `catalog`. */
  name?: string | undefined;
  /** Directory of encoded bundles, kept from one start to the next; default none. */
  cacheDirectory?: string | undefined;
}

/** A served catalog. `close` finishes requests in progress. */
export interface ServedCatalog {
  grpcPort: number | undefined;
  /** URL of the catalog in the HTTP API. */
  url: string | undefined;
  close(): Promise<void>;
}

/**
 * Serves a catalog over gRPC, HTTP, or both, until it is closed. Throws OpmateError for a catalog that is invalid, and
 * IO for an address that is in use.
 */
export async function serveCatalog(
  reference: string,
  session: Session,
  options: ServeCatalogOptions,
): Promise<ServedCatalog> {
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const item of closers.splice(0).reverse()) await item();
  };
  try {
    const source = await openCatalog(reference, session);
    closers.push(() => source.close());
    const grpcPort =
      options.grpc && (await startGrpc(source.catalog, reference, session, options, options.grpc, closers));
    const url = options.http && (await startHttp(source.catalog, session, options, options.http, closers));
    return { grpcPort, url, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens what the gRPC registry API answers with: a file-based catalog or a sqlite index. */
export async function openAnswers(
  catalog: Catalog,
  reference: string,
  session: Session,
  options: Omit<Parameters<typeof openCatalogAnswers>[1], 'temporaryDirectory' | 'now'> = {},
): Promise<RegistryAnswers & Partial<Pick<Awaited<ReturnType<typeof openCatalogAnswers>>, 'encoded'>>> {
  const { temporaryDirectory, now, logger, signal } = session;
  const settings = { temporaryDirectory, now, logger, signal, ...options };
  if (catalog.listFiles !== undefined) return openCatalogAnswers(catalog, settings);
  const { SqliteCatalog } = await import('../sqlite/read/catalog.js');
  if (!(catalog instanceof SqliteCatalog)) return openCatalogAnswers(catalog, settings);
  const { openSqliteAnswers } = await import('../serve/grpc/sqlite-answers.js');
  return openSqliteAnswers(catalog.file, session, { name: reference });
}

async function startGrpc(
  catalog: Catalog,
  reference: string,
  session: Session,
  { cacheDirectory }: ServeCatalogOptions,
  { host, port }: ServeAddress,
  closers: (() => Promise<void>)[],
): Promise<number> {
  const queries = await openAnswers(catalog, reference, session, { cacheDirectory });
  closers.push(async () => queries.close());
  const { startRegistryServer } = await import('../serve/grpc/server.js');
  const server = await startRegistryServer({ answers: queries, host, port, logger: session.logger });
  closers.push(() => server.close());
  return server.port;
}

async function startHttp(
  catalog: Catalog,
  session: Session,
  { name = 'catalog' }: ServeCatalogOptions,
  { host = '127.0.0.1', port }: ServeAddress,
  closers: (() => Promise<void>)[],
): Promise<string> {
  const [{ HeldCatalogs }, { storeContent }, { createCatalogServer }, { closeHttpServer }, listening] =
    await Promise.all([
      import('../serve/catalogs/catalog-set.js'),
      import('../serve/catalogs/content-store.js'),
      import('../serve/http/catalog-server.js'),
      import('../serve/server/http-server.js'),
      import('../serve/server/listening.js'),
    ]);
  const { temporaryDirectory, now, logger, signal } = session;
  const catalogs = new HeldCatalogs();
  closers.push(() => catalogs.close());
  const content = await storeContent(catalog, {
    directory: undefined,
    temporaryDirectory,
    now,
    logger,
    signal,
  });
  await catalogs.put({ name, content, labels: {}, priority: 0 });
  catalogs.markReady();
  const server = createCatalogServer({ catalogs, host, logger });
  await listening.listenOn(server, { host, port });
  closers.push(() => closeHttpServer(server));
  return `${listening.getUrl(server, host, false)}/catalogs/${name}`;
}

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
  const [{ storeContent }, { publishContent }, { catalogNameFault, defaultCatalogName }] = await Promise.all([
    import('../serve/catalogs/content-store.js'),
    import('../serve/publish/publish-catalog.js'),
    import('../serve/http/catalog-names.js'),
  ]);
  const { name = defaultCatalogName(reference) } = options;
  const fault = catalogNameFault(name);
  if (fault !== undefined) throw new UsageError(`name ${name}: ${fault}`);
  const { temporaryDirectory, now, logger, signal } = session;
  return withCatalog(reference, session, async ({ catalog }) => {
    const content = await storeContent(catalog, { temporaryDirectory, now, logger, signal });
    try {
      return await publishContent(content, directory, { ...options, name, now, logger, signal });
    } finally {
      await content.close();
    }
  });
}
