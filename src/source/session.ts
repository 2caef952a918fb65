import path from 'node:path';
import { type ArchiveLimits, defaultArchiveLimits } from '../archive/limits.js';
import type { CancelOptions } from '../core/concurrency.js';
import { type Logger, silentLogger } from '../core/log.js';
import { findSharingProblem } from '../files/private-directory.js';
import type { LinkOptions } from '../files/directory-root.js';
import type { BlobCache } from '../oci/registry/blob-cache.js';
import type { Connection, ConnectionOptions } from '../oci/registry/connection.js';
import type { ImageSession } from '../oci/image/open.js';
import type { Platform } from '../oci/image/types.js';

/** What a session says to its connections itself. */
type OwnedBySession = 'environment' | 'homeDirectory' | 'runtimeDirectory' | 'logger' | 'now' | 'signal';

/** The outside world and the choices that reading sources depends on. */
export interface SessionOptions extends CancelOptions {
  /** Environment variables: credentials, proxies, configuration and cache directories are found by them. */
  environment: Readonly<Record<string, string | undefined>>;
  homeDirectory: string;
  temporaryDirectory: string;
  /** The machine's architecture as Node.js names it; `process.arch`. */
  architecture: string;
  /** Platform to take from images; the machine's, else amd64, else the only one, where it is left out. */
  platform?: Platform | undefined;
  /** Relative cache directories are counted from here; from the working directory where it is left out. */
  workingDirectory?: string | undefined;
  /** How registries are talked to, in addition to what the environment says. */
  registry?: Omit<ConnectionOptions, OwnedBySession>;
  /** Directory of the blob cache, instead of the one that the environment names. */
  cacheDirectory?: string | undefined;
  /** Directory that keeps layers of catalogs where there is no blob cache; none when left out. */
  catalogCacheDirectory?: string | undefined;
  /** Caps on what images may hold, where they differ from `defaultArchiveLimits`. */
  limits?: Partial<ArchiveLimits> | undefined;
  /** Follow links that lead out of bundle and catalog directories; refused where left out. */
  followLinks?: boolean | undefined;
  logger?: Logger | undefined;
  now?: (() => Date) | undefined;
}

/** What differs in a connection of one place. */
type ConnectionChanges = Partial<
  Pick<ConnectionOptions, 'authFile' | 'skipTlsVerify' | 'caFile' | 'useHttp'>
>;

/** What reading a place needs of a session. */
export interface SourceSession extends ImageSession, LinkOptions {
  /** A connection as `connect` returns it, but for these changes; the caller closes it. */
  connectAnew: (changes: ConnectionChanges) => Promise<Connection>;
  /** How servers other than registries are talked to. */
  network?: NetworkOptions | undefined;
  /** For programs that are started: paths, proxies and agents are taken from it, nothing else. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Where images and archives are unpacked while they are read. */
  temporaryDirectory: string;
  now: () => Date;
  /** Platform to take from an image index; the host's where it is left out. */
  platform?: Platform | undefined;
  hostPlatform: Platform;
}

export interface NetworkOptions {
  /** Allows plain HTTP to every host; to this machine it is always allowed. */
  allowHttp?: boolean;
  skipTlsVerify?: boolean;
  caFile?: string;
}

/** What several operations share: connections to registries and a cache. `close` it at the end. */
export interface Session extends SourceSession {
  connect: () => Promise<Connection>;
  /** A connection of one's own, to be closed: credentials and configuration are read anew for it. */
  connectAnew: (changes?: ConnectionChanges) => Promise<Connection>;
  /** For programs that are started, and for what is kept in directories that it names. */
  environment: SessionOptions['environment'];
  workingDirectory: string;
  /** How other servers than registries are talked to: as these. */
  network: NetworkOptions & { allowHttp: boolean; skipTlsVerify: boolean };
  /** Where caches are; undefined where the user has named no place. */
  cacheDirectory?: string | undefined;
  limits: ArchiveLimits;
  logger: Logger;
  close(): Promise<void>;
}

/** The same session but for these changes. Whatever it shares stays shared, and is closed with the original only. */
export function withChanges<S extends object, C extends Partial<S>>(session: S, changes: C): S & C {
  return { ...session, ...changes };
}

/** Architecture names of the image specification for those of Node.js. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };

/** The image platform of a machine; catalogs and bundles are always made for Linux. */
export function platformOfMachine(architecture: string): Platform {
  return { os: 'linux', architecture: architectures[architecture] ?? architecture };
}

/**
 * Makes a session. Nothing is connected to before the first image is read; the blob cache is used where
 * `OPMATE_CACHE_DIR` (or `OLM_CACHE_DIR`) names one that nobody else owns or may write to.
 */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { environment, logger = silentLogger, now = () => new Date(), signal } = options;
  let connection: Promise<Connection> | undefined;
  const cacheDirectory =
    options.cacheDirectory || environment['OPMATE_CACHE_DIR'] || environment['OLM_CACHE_DIR'];
  const workingDirectory = path.resolve(options.workingDirectory ?? '.');
  const directory = await privateCache(
    cacheDirectory ? path.resolve(workingDirectory, cacheDirectory) : undefined,
    logger,
  );
  const cache =
    directory === undefined
      ? undefined
      : await (
          await import('../oci/registry/blob-cache.js')
        ).openBlobCache({ directory, now: now().getTime(), logger });
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

/** Maximum bytes of catalog layers in the default cache. */
const maxCatalogCacheBytes = 2 * 1024 ** 3;

/** Opens the default cache when the first catalog is read; its faults are debug messages only. */
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
  async function open(where: string): Promise<BlobCache | undefined> {
    const fault = await findSharingProblem(where);
    if (fault !== undefined) {
      quiet.log('debug', `${where}: cache not used: ${fault}`);
      return undefined;
    }
    const { openBlobCache } = await import('../oci/registry/blob-cache.js');
    return openBlobCache({
      directory: where,
      now: now().getTime(),
      maxBytes: maxCatalogCacheBytes,
      logger: quiet,
    });
  }
  return () => (opened ??= open(directory));
}

/** The directory, unless others could put something into it: then nothing is cached, and the user is told. */
async function privateCache(directory: string | undefined, logger: Logger): Promise<string | undefined> {
  const fault = directory === undefined ? undefined : await findSharingProblem(directory);
  if (directory === undefined || fault === undefined) return directory;
  logger.log('warn', `${directory}: cache not used: ${fault}; use a directory of your own: chmod go-w`);
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
