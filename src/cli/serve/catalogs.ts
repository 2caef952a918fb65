import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onAbort } from '../../core/concurrency.js';
import { addContext } from '../../core/diagnostics-error.js';
import { computeDigest, parseDigest } from '../../core/digest.js';
import { OpmateError, UsageError, getMessage, systemCode, systemReason } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { acquireLock } from '../../files/lock.js';
import { makeDirectory } from '../../files/make-directory.js';
import type { CatalogManifests } from '../../serve/catalogs/catalog-manifests.js';
import { CatalogKeeper } from '../../serve/catalogs/catalog-keeper.js';
import type { KeeperClock } from '../../serve/catalogs/kept-catalog.js';
import { writeServerUrl } from '../../serve/catalogs/catalog-records.js';
import { catalogStatus } from '../../serve/catalogs/catalog-status.js';
import { HeldCatalogs } from '../../serve/catalogs/catalog-set.js';
import type { ListenAddress } from '../../serve/server/listening.js';
import { watchManifests } from '../../serve/catalogs/catalog-watch.js';
import { type CatalogServerOptions, prepareCatalogServer } from './catalog-server.js';
import { getAddress } from './listen-options.js';
import { type CommandContext, userCacheDirectory } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { writeAll } from '../output.js';
import { getCredentials, readSecrets } from '../../source/secrets.js';
import { withChanges } from '../../source/session.js';
import { type CommandSession, useSession } from '../session.js';

/** Stored catalogs are checked before the server listens, for no longer than this; then requests for the rest get 503. */
const maxRestoreMs = 10_000;

type ServeCatalogsOptions = GlobalOptions &
  CatalogServerOptions & {
    /** Refused: it belongs to a single catalog. */
    cacheDir?: string | undefined;
    /** Address of the gRPC registry API; not served where it is left out. */
    grpc?: string | true | undefined;
    /** Directory of manifests of Secrets. */
    secrets?: string | undefined;
  };

/** `opmate serve --catalogs`: the catalogs of a directory of manifests, over HTTP, until it is told to stop. */
export async function serveCatalogs(
  context: CommandContext,
  catalogs: string,
  options: ServeCatalogsOptions,
): Promise<number> {
  if (options.name !== undefined) {
    throw new UsageError('--name and --catalogs cannot be used together', {
      hint: 'set the names in the manifests',
    });
  }
  if (options.cacheDir !== undefined) {
    throw new UsageError('--cache-dir and --catalogs cannot be used together', { hint: 'use --storage' });
  }
  const grpcAddress =
    options.grpc === undefined ? undefined : getAddress(options.grpc, '--grpc', '127.0.0.1:50051');
  if (grpcAddress !== undefined && options.tlsSelfSigned) {
    throw new UsageError('--tls-self-signed and --grpc cannot be used together', {
      hint: 'use --tls-cert and --tls-key',
    });
  }
  const directory = path.resolve(context.workingDirectory, catalogs);
  await useSession(context, options, async (session) => {
    const { logger } = session;
    const held = new HeldCatalogs();
    const statuses = (root: string) => keeper.records().map((record) => catalogStatus(record, root));
    const server = await prepareCatalogServer(context, options, held, logger, statuses);
    const storage = await prepareStorage(context, options, catalogs, logger);
    const lock = storage === undefined ? undefined : await lockStorage(storage, logger);
    const clock: KeeperClock = { now: context.now, wait };
    const keeper = new CatalogKeeper({
      held,
      storage,
      origins: withChanges(session, { connect: session.connectAnew }),
      credentials: credentialsIn(context, options.secrets, session),
      clock,
      random: Math.random,
      logger,
    });
    const stop = new AbortController();
    const stopStopping = onAbort(context.signal, () => stop.abort());
    let watching: { done: Promise<void> } | undefined;
    let registry: { close(): Promise<void> } | undefined;
    try {
      const use = ({ manifests, refused }: CatalogManifests): Promise<void> =>
        keeper.apply(manifests, refused);
      watching = await watchManifests({
        directory,
        clock,
        use,
        signal: stop.signal,
        logger,
        followLinks: session.followLinks,
      });
      // Clients of a server that restarts never find it without the catalogs that it has.
      await Promise.race([keeper.restored(), wait(maxRestoreMs, stop.signal)]);
      if (grpcAddress !== undefined) {
        registry = await startRegistry(held, catalogs, grpcAddress, options, session);
      }
      const url = await server.listen();
      if (storage !== undefined) {
        await writeServerUrl(storage, url).catch((error: unknown) => logger.log('warn', getMessage(error)));
      }
      await writeAll(context.stdout, `${url}/catalogs\n`);
      logger.log('info', 'serving catalogs', { directory, url, ...(storage !== undefined && { storage }) });
      logger.log('info', `next: opmate catalogs status --url ${url}`);
      await new Promise<void>((resolve) => void onAbort(stop.signal, resolve));
      logger.log('info', 'stopping: finishing open requests');
    } finally {
      stopStopping();
      stop.abort();
      await watching?.done;
      await Promise.all([server.close(), registry?.close()]);
      await keeper.close();
      await held.close();
      await lock?.release();
    }
  });
  // Being told to stop is how a server ends.
  return 0;
}

/** Reads the Secrets anew for each request, so that credentials can be replaced while the server runs. */
function credentialsIn(
  { workingDirectory }: CommandContext,
  secrets: string | undefined,
  { followLinks }: LinkOptions,
): ConstructorParameters<typeof CatalogKeeper>[0]['credentials'] {
  if (secrets === undefined) return undefined;
  const directory = path.resolve(workingDirectory, secrets);
  return async (secret, kind) => getCredentials(await readSecrets(directory, { followLinks }), secret, kind);
}

/** Serves each catalog over gRPC under host names that begin with its name. */
async function startRegistry(
  catalogs: HeldCatalogs,
  name: string,
  address: ListenAddress,
  options: ServeCatalogsOptions,
  { temporaryDirectory, now, logger }: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const { NamedAnswers } = await import('../../serve/grpc/named-answers.js');
  const { startAnswers } = await import('./registry-server.js');
  const queries = new NamedAnswers({ catalogs, temporaryDirectory, now, logger });
  const server = await startAnswers(queries, name, address, options, logger);
  return {
    async close() {
      await server.close();
      await queries.close();
    },
  };
}

/**
 * Where the state of `serve --catalogs` is kept: `--storage`, else below the cache directory, apart for each directory
 * of manifests.
 */
export function getStorage(
  context: CommandContext,
  { storage, catalogs }: { storage?: string | undefined; catalogs: string },
): string {
  const { workingDirectory } = context;
  if (storage !== undefined) return path.resolve(workingDirectory, storage);
  const { hex } = parseDigest(computeDigest(path.resolve(workingDirectory, catalogs)));
  return path.join(getStorages(context), hex.slice(0, 16));
}

/** Where storage directories are that were not named. */
export function getStorages(context: CommandContext): string {
  const { environment, workingDirectory } = context;
  const cache = environment['OPMATE_CACHE_DIR'] || environment['OLM_CACHE_DIR'];
  return path.join(cache ? path.resolve(workingDirectory, cache) : userCacheDirectory(context), 'catalogs');
}

/** The storage directory; undefined, and told, where nothing can be kept and that was not asked for. */
async function prepareStorage(
  context: CommandContext,
  options: ServeCatalogsOptions,
  catalogs: string,
  logger: Logger,
): Promise<string | undefined> {
  const storage = getStorage(context, { storage: options.storage, catalogs });
  try {
    await makeDirectory(storage);
    return storage;
  } catch (error) {
    const message = `${storage}: cannot keep catalogs here: ${systemReason(error)}`;
    if (options.storage !== undefined) {
      throw new OpmateError('IO', message, {
        hint: 'specify a writable directory with --storage',
      });
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
    return await acquireLock(storage, { task: 'opmate serve' });
  } catch (error) {
    if (error instanceof OpmateError && systemCode(error.cause) === undefined) {
      throw addContext(error, { newHint: 'stop that server, or specify another directory with --storage' });
    }
    logger.log('warn', `${storage}: not locked: ${getMessage(error)}`);
    return { release: () => Promise.resolve() };
  }
}

const longestTimer = 2 ** 31 - 1;

/** Waits that long, any number of days, or until the signal fires. */
async function wait(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= longestTimer) {
    await sleep(Math.min(left, longestTimer), undefined, { signal }).catch(() => undefined);
  }
}
