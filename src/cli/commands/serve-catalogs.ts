import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onAbort } from '../../core/concurrency.js';
import { digestOf, parseDigest } from '../../core/digest.js';
import { OpmateError, UsageError, messageOf, systemCode, systemReason } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { makeDirectory } from '../../files/make-directory.js';
import { CatalogKeeper, type KeeperClock } from '../../serve/catalogs/catalog-keeper.js';
import { writeServerUrl } from '../../serve/catalogs/catalog-records.js';
import { HeldCatalogs } from '../../serve/catalogs/catalog-set.js';
import { watchManifests } from '../../serve/catalogs/catalog-watch.js';
import { readCertificateFiles, watchCertificateFiles } from '../../serve/grpc/certificate-files.js';
import {
  type ServerCertificate,
  closeCatalogServer,
  createCatalogServer,
  replaceCertificate,
} from '../../serve/http/catalog-server.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';

export interface ServeCatalogsOptions extends GlobalOptions {
  /** Directory of manifests. */
  catalogs?: string;
  /** Where to listen; `true` for the default. */
  http?: string | boolean;
  storage?: string;
  externalUrl?: string;
  tlsCert?: string;
  tlsKey?: string;
  tlsSelfSigned?: boolean;
  /** Both are of a single catalog, and refused. */
  name?: string;
  cacheDir?: string;
}

const defaultAddress = '127.0.0.1:8080';

/** `opmate serve --catalogs`: the catalogs of a directory of manifests, over HTTP, until it is told to stop. */
export async function serveCatalogs(context: CommandContext, options: ServeCatalogsOptions): Promise<number> {
  const { catalogs, tlsCert, tlsKey } = options;
  if (catalogs === undefined) throw new UsageError('--catalogs: name the directory of the manifests');
  if (options.name !== undefined) {
    throw new UsageError('--name does not go with --catalogs', { hint: 'manifests have the names' });
  }
  if (options.cacheDir !== undefined) {
    throw new UsageError('--cache-dir does not go with --catalogs', { hint: 'use --storage' });
  }
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new UsageError('--tls-cert and --tls-key belong together', { hint: 'give both or neither' });
  }
  if (tlsCert !== undefined && options.tlsSelfSigned === true) {
    throw new UsageError('--tls-self-signed and --tls-cert exclude each other');
  }
  const address = addressOf(options.http);
  const directory = path.resolve(context.workingDirectory, catalogs);
  await useSession(context, options, async (session) => {
    const { logger } = session;
    const storage = await prepareStorage(context, options, catalogs, logger);
    const held = new HeldCatalogs();
    const clock: KeeperClock = { now: context.now, wait };
    const files = tlsCert === undefined || tlsKey === undefined ? undefined : { cert: tlsCert, key: tlsKey };
    const certificate = await certificateOf(context, files, options.tlsSelfSigned === true, address.host);
    const server = createCatalogServer({
      catalogs: held,
      externalUrl: options.externalUrl,
      certificate,
      logger,
    });
    const keeper = new CatalogKeeper({
      held,
      storage,
      origins: { ...session, connect: session.connectAnew, environment: context.environment },
      clock,
      random: Math.random,
      logger,
    });
    const stop = new AbortController();
    const stopStopping = onAbort(context.signal, () => stop.abort());
    let watching: { done: Promise<void> } | undefined;
    let watcher: { stop(): void } | undefined;
    try {
      // A manifest with a fault ends this before anything listens.
      const use = (manifests: Parameters<CatalogKeeper['apply']>[0]): Promise<void> =>
        keeper.apply(manifests);
      watching = await watchManifests({ directory, clock, use, signal: stop.signal, logger });
      await listen(server, address);
      const url =
        options.externalUrl?.replace(/\/+$/, '') ?? urlOf(server, address.host, certificate !== undefined);
      if (storage !== undefined) {
        await writeServerUrl(storage, url).catch((error: unknown) => logger.log('warn', messageOf(error)));
      }
      if (files !== undefined && certificate !== undefined) {
        const pair = { cert: Buffer.from(certificate.cert), key: Buffer.from(certificate.key) };
        const reload = ({ cert, key }: { cert: Uint8Array; key: Uint8Array }): void =>
          replaceCertificate(server, {
            cert: Buffer.from(cert).toString(),
            key: Buffer.from(key).toString(),
          });
        watcher = watchCertificateFiles(files, pair, reload, logger);
      }
      await writeAll(context.stdout, `${url}/catalogs\n`);
      logger.log('info', 'serving catalogs', { directory, url, ...(storage !== undefined && { storage }) });
      await new Promise<void>((resolve) => void onAbort(stop.signal, resolve));
      logger.log('info', 'stopping: requests that are under way are finished');
    } finally {
      stopStopping();
      stop.abort();
      watcher?.stop();
      await watching?.done;
      if (server.listening) await closeCatalogServer(server);
      await keeper.close();
      await held.close();
    }
  });
  // Being told to stop is how a server ends.
  return 0;
}

/**
 * Where the state of `serve --catalogs` is kept: `--storage`, else below the cache directory, apart for each directory
 * of manifests.
 */
export function storageOf(
  context: CommandContext,
  { storage, catalogs }: { storage?: string | undefined; catalogs: string },
): string {
  const { workingDirectory } = context;
  if (storage !== undefined) return path.resolve(workingDirectory, storage);
  const { hex } = parseDigest(digestOf(path.resolve(workingDirectory, catalogs)));
  return path.join(storagesOf(context), hex.slice(0, 16));
}

/** Where storage directories are that were not named: in the cache directory of the environment, else of the user. */
export function storagesOf({ environment, homeDirectory, workingDirectory }: CommandContext): string {
  const cache = environment['OPMATE_CACHE_DIR'] || environment['OLM_CACHE_DIR'];
  if (cache) return path.resolve(workingDirectory, cache, 'catalogs');
  const own = environment['XDG_CACHE_HOME'];
  return path.join(
    own && path.isAbsolute(own) ? own : path.join(homeDirectory, '.cache'),
    'opmate',
    'catalogs',
  );
}

/** The storage directory; undefined, and told, where nothing can be kept and that was not asked for. */
async function prepareStorage(
  context: CommandContext,
  options: ServeCatalogsOptions,
  catalogs: string,
  logger: Logger,
): Promise<string | undefined> {
  const storage = storageOf(context, { storage: options.storage, catalogs });
  try {
    await makeDirectory(storage);
    return storage;
  } catch (error) {
    const message = `${storage}: cannot keep catalogs here: ${systemReason(error)}`;
    if (options.storage !== undefined) {
      throw new OpmateError('IO', message, {
        hint: 'give a directory that can be written to with --storage',
      });
    }
    logger.log('warn', `${message}; after a restart all of them are fetched again`);
    return undefined;
  }
}

export async function certificateOf(
  context: CommandContext,
  files: { cert: string; key: string } | undefined,
  isSelfSigned: boolean,
  host: string,
): Promise<ServerCertificate | undefined> {
  if (files !== undefined) {
    const { cert, key } = await readCertificateFiles(files);
    return { cert: String(cert), key: String(key) };
  }
  if (!isSelfSigned) return undefined;
  const { createSelfSignedCertificate } = await import('../../serve/http/self-signed.js');
  return createSelfSignedCertificate([...new Set(['localhost', '127.0.0.1', host])], context.now());
}

export interface Address {
  host: string;
  port: number;
}

/** `HOST:PORT`, `:PORT` for all addresses, or only a port for this machine. Throws UsageError. */
export function addressOf(
  given: string | boolean | undefined,
  flag = '--http',
  usual: string = defaultAddress,
): Address {
  const text = typeof given === 'string' ? given : usual;
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]:|([^:[\]]*):)?(\d{1,5})$/.exec(text) ?? [];
  const number = Number(port ?? Number.NaN);
  if (!(number >= 0 && number <= 65535)) {
    throw new UsageError(`${flag} ${text}: not an address`, { hint: 'write HOST:PORT, :PORT or PORT' });
  }
  if (plain === '') return { host: '::', port: number };
  return { host: bracketed ?? plain ?? '127.0.0.1', port: number };
}

export async function listen(server: Server, { host, port }: Address, flag = '--http'): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      const isUsed = systemCode(error) === 'EADDRINUSE';
      const what = isUsed ? 'the port is in use' : systemReason(error);
      reject(
        new OpmateError('IO', `listen on ${host}:${port}: ${what}`, {
          cause: error,
          hint: `choose another port with ${flag}`,
        }),
      );
    });
    server.listen(port, host, resolve);
  });
}

export function urlOf(server: Server, host: string, isSecure: boolean): string {
  const { port } = server.address() as AddressInfo;
  const isAny = host === '::' || host === '0.0.0.0';
  const shown = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${isSecure ? 'https' : 'http'}://${shown}:${port}`;
}

const longestTimer = 2 ** 31 - 1;

/** Waits that long, any number of days, or until the signal fires. */
async function wait(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= longestTimer) {
    await sleep(Math.min(left, longestTimer), undefined, { signal }).catch(() => undefined);
  }
}
