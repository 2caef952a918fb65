import path from 'node:path';
import { onAbort, openTogether, sleep } from '../../core/concurrency.js';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError, getMessage, systemCode, systemReason } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { acquireLock } from '../../files/lock.js';
import { makeDirectory } from '../../files/make-directory.js';
import { CatalogKeeper } from '../../serve/catalogs/catalog-keeper.js';
import type { KeeperOptions } from '../../serve/catalogs/kept-catalog.js';
import { writeServerUrl } from '../../serve/catalogs/catalog-records.js';
import { type CatalogSet, createCatalogSet } from '../../serve/catalogs/catalog-set.js';
import { createCatalogStatus } from '../../serve/catalogs/catalog-status.js';
import { watchManifests } from '../../serve/catalogs/catalog-watch.js';
import type { KeeperClock } from '../../serve/catalogs/kept-catalog.js';
import { type SecretHosts, getCredentials, parseSecretHosts, readSecrets } from '../../source/secrets.js';
import { type Session, withChanges } from '../../source/session.js';
import { drawRandom } from '../own-process.js';
import type { GrpcServerOptions } from './grpc-server.js';
import { type HttpServerOptions, prepareHttpServer } from './http-server.js';

/** Stored catalogs are checked before the server listens, for no longer than this; then requests for the rest get 503. */
const maxRestoreMs = 10_000;

/** Options of `serveCatalogs`. */
export interface ServeCatalogsOptions {
  /** HTTP catalog API of OLM v1. */
  http: HttpServerOptions;
  /** gRPC registry API of OLM v0, each catalog under host names that begin with its name; default none. */
  grpc?: GrpcServerOptions | undefined;
  /** Directory that keeps catalogs from one start to the next, of this server alone; default none. */
  storage?: string | undefined;
  /** Serve without storage, with a warning, if the directory cannot be made. */
  isStorageOptional?: boolean | undefined;
  /** Directory of manifests of Secrets for Git and HTTP sources. */
  secrets?: string | undefined;
  /** Hosts of Secrets without annotations, as `[NAMESPACE/]NAME=HOST`. */
  secretHosts?: readonly string[] | undefined;
}

/** Served catalogs. `close` finishes requests in progress. */
export interface ServedCatalogSet {
  /** Base URL of the HTTP API; the catalogs are at `/catalogs/NAME`. */
  url: string;
  grpcPort: number | undefined;
  /** Directory that keeps the catalogs. */
  storage: string | undefined;
  close(): Promise<void>;
}

/**
 * Serves the catalogs that the manifests of a directory describe until it is closed or the signal of the session fires.
 * Manifests that change, and catalogs that change at their source, are read again; one that fails leaves the others
 * served. Throws OpmateError for a directory that cannot be used, and IO for an address in use or storage of another
 * server.
 */
export async function serveCatalogs(
  manifests: string,
  session: Session,
  options: ServeCatalogsOptions,
): Promise<ServedCatalogSet> {
  const { logger, now, signal } = session;
  const hosts = parseSecretHosts(options.secretHosts ?? []);
  const held = createCatalogSet();
  const statuses = (root: string) =>
    keeper.getRecords().map((record) => createCatalogStatus(record, `${root}/catalogs/${record.name}`));
  const server = await prepareHttpServer(options.http, held, session, statuses);
  const storage = await prepareStorage(options, session);
  const lock = storage === undefined ? undefined : await lockStorage(storage, logger);
  const clock: KeeperClock = { now, wait };
  const keeper = new CatalogKeeper({
    held,
    storage,
    origins: withChanges(session, { connect: session.connectAnew }),
    credentials: credentialsIn(options, hosts, session),
    clock,
    random: drawRandom,
    logger,
  });
  return openTogether(signal, async (opened) => {
    let registry: { port: number; close(): Promise<void> } | undefined;
    opened.push({ close: () => lock?.release() }, held, keeper);
    opened.push({ close: () => Promise.all([server.close(), registry?.close()]) });
    const stop = new AbortController();
    opened.push({ close: onAbort(signal, () => stop.abort()) });
    const watching = await watchManifests({
      directory: path.resolve(session.workingDirectory, manifests),
      name: manifests,
      clock,
      use: ({ manifests: described, refused }) => keeper.apply(described, refused),
      signal: stop.signal,
      logger,
      followLinks: session.followLinks,
    });
    opened.push({
      close() {
        stop.abort();
        return watching.done;
      },
    });
    // A restarted server listens only once it has its catalogs.
    await Promise.race([keeper.restored(), wait(maxRestoreMs, stop.signal)]);
    if (options.grpc !== undefined) {
      registry = await startRegistry(held, manifests, options.grpc, session);
    }
    const url = await server.listen();
    if (storage !== undefined) {
      await writeServerUrl(storage, url).catch((error: unknown) => logger.log('warn', getMessage(error)));
    }
    return { url, grpcPort: registry?.port, storage };
  });
}

/** Reads the Secrets anew for each request, so that credentials can be replaced while the server runs. */
function credentialsIn(
  { secrets }: Pick<ServeCatalogsOptions, 'secrets'>,
  hosts: SecretHosts,
  { workingDirectory, followLinks }: Session,
): KeeperOptions['credentials'] {
  if (secrets === undefined) return undefined;
  const directory = path.resolve(workingDirectory, secrets);
  return async (request) =>
    getCredentials(await readSecrets(directory, { followLinks }), { ...request, hosts });
}

async function startRegistry(
  catalogs: CatalogSet,
  name: string,
  options: GrpcServerOptions,
  { temporaryDirectory, now, logger }: Session,
): Promise<{ port: number; close(): Promise<void> }> {
  const { NamedQueries } = await import('../../serve/grpc/named-queries.js');
  const { startGrpcServer } = await import('./grpc-server.js');
  const queries = new NamedQueries({ catalogs, temporaryDirectory, now, logger });
  const server = await startGrpcServer(queries, name, options, logger);
  return {
    port: server.port,
    async close() {
      await server.close();
      await queries.close();
    },
  };
}

/** Makes the storage directory; returns undefined, with a warning, if it is optional and cannot be made. */
async function prepareStorage(
  { storage, isStorageOptional = false }: ServeCatalogsOptions,
  { workingDirectory, logger }: Session,
): Promise<string | undefined> {
  if (storage === undefined) return undefined;
  const directory = path.resolve(workingDirectory, storage);
  try {
    await makeDirectory(directory);
    return directory;
  } catch (error) {
    const message = `${directory}: cannot keep catalogs here: ${systemReason(error)}`;
    if (!isStorageOptional) {
      throw new OpmateError('IO', message, { hint: 'specify a writable directory with options.storage' });
    }
    logger.log('warn', `${message}; after a restart all of them are fetched again`);
    return undefined;
  }
}

/**
 * Locks the storage directory: two servers would remove contents of each other. One that cannot be written to has
 * nothing to lock. Throws OpmateError IO.
 */
async function lockStorage(storage: string, logger: Logger): Promise<{ release(): Promise<void> }> {
  try {
    return await acquireLock(storage, { task: 'serve' });
  } catch (error) {
    if (error instanceof OpmateError && systemCode(error.cause) === undefined) {
      throw addContext(error, {
        newHint: 'stop that server, or specify another directory with options.storage',
      });
    }
    logger.log('warn', `${storage}: not locked: ${getMessage(error)}`);
    return { release: () => Promise.resolve() };
  }
}

const longestTimer = 2 ** 31 - 1;

/** Waits, longer than one timer can, or until the signal fires. */
async function wait(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= longestTimer) {
    await sleep(Math.min(left, longestTimer), signal).catch(() => undefined);
  }
}
