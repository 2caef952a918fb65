import path from 'node:path';
import { type ArchiveLimits, defaultArchiveLimits } from '../archive/limits.js';
import type { CancelOptions } from '../core/concurrency.js';
import { type Logger, silentLogger } from '../core/log.js';
import { findSharingProblem } from '../files/private-directory.js';
import type { LinkOptions } from '../files/directory-root.js';
import type { BlobCache, openBlobCache } from '../oci/registry/blob-cache.js';
import type { Connection, ConnectionOptions } from '../oci/registry/connection.js';
import type { ImageSession } from '../oci/image/open.js';
import type { Platform } from '../oci/image/types.js';
import { platformOfMachine } from './machine.js';

/** Connection options that the session sets. */
type OwnedBySession = 'environment' | 'homeDirectory' | 'runtimeDirectory' | 'logger' | 'now' | 'signal';

/** Environment and settings for reading sources. */
export interface SessionOptions extends CancelOptions {
  /** Environment variables, which locate credentials, proxies, configuration and cache directories. */
  environment: Readonly<Record<string, string | undefined>>;
  homeDirectory: string;
  temporaryDirectory: string;
  /** Architecture of the machine in Node.js terms: `process.arch`. */
  architecture: string;
  /** Platform to select from images; default: that of the machine, else amd64, else the only one. */
  platform?: Platform | undefined;
  /** Base of relative cache directories; default: the working directory of the process. */
  workingDirectory?: string | undefined;
  /** Registry options in addition to those from the environment. */
  registry?: Omit<ConnectionOptions, OwnedBySession>;
  /** Directory of the blob cache; takes precedence over the environment. */
  cacheDirectory?: string | undefined;
  /** Directory for catalog layers if no blob cache is configured; undefined to keep none. */
  catalogCacheDirectory?: string | undefined;
  /** Limits for image content that differ from `defaultArchiveLimits`. */
  limits?: Partial<ArchiveLimits> | undefined;
  /** Follows links out of bundle and catalog directories; default: rejected. */
  followLinks?: boolean | undefined;
  logger?: Logger | undefined;
  now?: (() => Date) | undefined;
}

/** Connection options specific to one place. */
type ConnectionChanges = Partial<
  Pick<ConnectionOptions, 'authFile' | 'skipTlsVerify' | 'caFile' | 'useHttp' | 'retryTimeoutMs'>
>;

/** The part of a session that reading a place requires. */
export interface SourceSession extends ImageSession, LinkOptions {
  /** Returns a new connection with changed options; the caller closes it. */
  connectAnew: (changes: ConnectionChanges) => Promise<Connection>;
  /** Network options for servers other than registries. */
  network?: NetworkOptions | undefined;
  /** Environment of child processes, which receive only paths, proxies and agents. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Directory for unpacked images and archives. */
  temporaryDirectory: string;
  now: () => Date;
  /** Platform to select from an image index; default: `hostPlatform`. */
  platform?: Platform | undefined;
  hostPlatform: Platform;
}

export interface NetworkOptions {
  /** Allows plain HTTP to every host; loopback addresses are always allowed. */
  allowHttp?: boolean;
  skipTlsVerify?: boolean;
  caFile?: string;
}

/** Registry connections and caches shared by several operations; close it. */
export interface Session extends SourceSession {
  connect: () => Promise<Connection>;
  /** Returns a separate connection, with credentials and configuration read again; the caller closes it. */
  connectAnew: (changes?: ConnectionChanges) => Promise<Connection>;
  /** Environment of child processes and of the directories that it configures. */
  environment: SessionOptions['environment'];
  workingDirectory: string;
  /** Network options for servers other than registries, the same as for registries. */
  network: NetworkOptions & { allowHttp: boolean; skipTlsVerify: boolean };
  /** Directory of the caches; undefined if none is configured or it is unsafe. */
  cacheDirectory?: string | undefined;
  limits: ArchiveLimits;
  logger: Logger;
  close(): Promise<void>;
}

/** Returns a session with changes. Shared resources stay shared and are closed with the original session. */
export function withChanges<S extends object, C extends Partial<S>>(session: S, changes: C): S & C {
  return { ...session, ...changes };
}

/**
 * Creates a session. Registries are contacted when the first image is read; the blob cache is used if
 * `OPMATE_CACHE_DIR` (or `OLM_CACHE_DIR`) names one that is owned and writable by the current user only.
 */
export async function openSourceSession(options: SessionOptions): Promise<Session> {
  const { environment, logger = silentLogger, now = () => new Date(), signal } = options;
  let connection: Promise<Connection> | undefined;
  const cacheDirectory =
    options.cacheDirectory || environment['OPMATE_CACHE_DIR'] || environment['OLM_CACHE_DIR'];
  const workingDirectory = path.resolve(options.workingDirectory ?? '.');
  const directory = await requirePrivateCache(
    cacheDirectory ? path.resolve(workingDirectory, cacheDirectory) : undefined,
    logger,
  );
  const cache =
    directory === undefined ? undefined : await openCache({ directory, now: now().getTime(), logger });
  const { registry } = options;
  return {
    connect: () => (connection ??= connect(options, logger)),
    connectAnew: (changes) =>
      connect(
        changes === undefined ? options : { ...options, registry: { ...registry, ...changes } },
        logger,
      ),
    environment,
    workingDirectory,
    network: {
      allowHttp: registry?.useHttp === true || registry?.insecure === true,
      skipTlsVerify: registry?.skipTlsVerify === true || registry?.insecure === true,
      ...(registry?.caFile !== undefined && { caFile: path.resolve(workingDirectory, registry.caFile) }),
    },
    cacheDirectory: directory,
    cache,
    catalogCache:
      cache === undefined ? lazyCatalogCache(options.catalogCacheDirectory, now, logger) : undefined,
    limits: { ...defaultArchiveLimits, ...options.limits },
    followLinks: options.followLinks,
    logger,
    temporaryDirectory: options.temporaryDirectory,
    now,
    platform: options.platform,
    hostPlatform: platformOfMachine(options.architecture),
    signal,
    close: async () => {
      (await connection?.catch(() => undefined))?.close();
    },
  };
}

async function openCache(options: Parameters<typeof openBlobCache>[0]): Promise<BlobCache> {
  return (await import('../oci/registry/blob-cache.js')).openBlobCache(options);
}

/** Maximum bytes of catalog layers in the default cache. */
const maxCatalogCacheBytes = 2 * 1024 ** 3;

/** Opens the default cache when the first catalog is read; logs its problems at debug level only. */
function lazyCatalogCache(
  directory: string | undefined,
  now: () => Date,
  logger: Logger,
): SourceSession['catalogCache'] {
  if (directory === undefined) return undefined;
  const quiet: Logger = {
    ...silentLogger,
    log: (_level, message, fields) => logger.log('debug', message, fields),
  };
  let opened: Promise<BlobCache | undefined> | undefined;
  async function open(cacheDirectory: string): Promise<BlobCache | undefined> {
    const problem = await findSharingProblem(cacheDirectory);
    if (problem !== undefined) {
      quiet.log('debug', `${cacheDirectory}: cache not used: ${problem}`);
      return undefined;
    }
    const maxBytes = maxCatalogCacheBytes;
    return openCache({ directory: cacheDirectory, now: now().getTime(), maxBytes, logger: quiet });
  }
  return () => (opened ??= open(directory));
}

/** Returns the cache directory; undefined, with a warning, if other users can write to it. */
async function requirePrivateCache(
  directory: string | undefined,
  logger: Logger,
): Promise<string | undefined> {
  const problem = directory === undefined ? undefined : await findSharingProblem(directory);
  if (directory === undefined || problem === undefined) return directory;
  logger.log('warn', `${directory}: cache not used: ${problem}; make it private with chmod go-w`);
  return undefined;
}

async function connect(options: SessionOptions, logger: Logger): Promise<Connection> {
  const { createConnection } = await import('../oci/registry/connection.js');
  return createConnection({
    ...options.registry,
    environment: options.environment,
    homeDirectory: options.homeDirectory,
    runtimeDirectory: options.environment['XDG_RUNTIME_DIR'],
    logger,
    now: () => performance.now(),
    signal: options.signal,
  });
}
