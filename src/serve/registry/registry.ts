import { realpath } from 'node:fs/promises';
import { basename } from 'node:path';
import { type CancelOptions, closeOnAbort } from '../../core/concurrency.js';
import { UsageError, getMessage, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { ArchiveProof } from '../../oci/archive-set/archive-index.js';
import { toRepositoryName } from '../../oci/registry/registry-names.js';
import { createHostRule, isLoopbackHost } from '../server/host-rule.js';
import { openPasswordFile } from '../server/htpasswd.js';
import { closeHttpServer, createHttpServer, replaceCertificate } from '../server/http-server.js';
import type { ServerCertificate } from '../server/tls.js';
import { getServerUrl, listenOn, formatAddress } from '../server/listening.js';
import { Repositories } from './repositories.js';
import { createRegistryHandler, refuseRegistryRequest } from './requests.js';
import { limitStorage } from './storage-limit.js';
import { openRegistryStore } from './store.js';
import { Uploads } from './uploads.js';

/** Time that `close` waits for open requests. */
const closeGraceMs = 5_000;

export interface RegistryOptions extends CancelOptions {
  /** OCI image layout, a missing or empty directory to create one in, or an archive set, which is read-only. */
  directory: string;
  /** Directories of base archive sets. */
  archiveBases?: readonly string[];
  /** Expected identity or signature of the archive set; other directories are refused. */
  archiveProof?: ArchiveProof;
  /** Address to listen on, default loopback; others need `htpasswd` or `insecureListen`. */
  host?: string;
  /** Port to listen on; default 0, any free one. */
  port?: number;
  /** PEM certificate chain and key; default plain HTTP. */
  tls?: ServerCertificate;
  /** File of users with bcrypt hashes; by default, all clients may read and write. */
  htpasswd?: string | undefined;
  /** Allow listening beyond loopback without `htpasswd`. */
  insecureListen?: boolean | undefined;
  /** Refuse changes. */
  readOnly?: boolean | undefined;
  /** Maximum bytes of blobs and uploads together; default unlimited. */
  maxSize?: number | undefined;
  /** Host names of requests, checked on every address; see `createHostRule`. */
  allowedHosts?: readonly string[] | undefined;
  maxConnections?: number | undefined;
  logger?: Logger;
}

export interface Registry {
  /** `http://127.0.0.1:40001`, without trailing slash. */
  readonly url: string;
  readonly port: number;
  /** Replaces the certificate for new connections. Throws OpmateError INVALID. */
  replaceCertificate(certificate: ServerCertificate): void;
  /** Stops listening, finishes open requests, and removes unfinished uploads. */
  close(): Promise<void>;
}

/**
 * Serves an OCI image layout, or an archive set read-only, over the distribution API (distribution-spec 1.1). The default
 * repository is named after the directory; see `Repositories`. A pushed image needs its blobs; an index may lack images.
 * The registry closes when `signal` aborts. Throws OpmateError NOT_FOUND, INVALID, UNSUPPORTED, IO or CANCELLED.
 */
export async function startRegistry(options: RegistryOptions): Promise<Registry> {
  const { directory, host = '127.0.0.1', port = 0, tls, logger = silentLogger, signal } = options;
  throwIfCancelled(signal);
  if (options.htpasswd === undefined && options.insecureListen !== true && !isLoopbackHost(host)) {
    throw new UsageError(
      `listen ${formatAddress({ host, port })}: not a loopback address, and no authentication is configured`,
      { hint: 'add options.htpasswd FILE, or allow anonymous access with options.insecureListen' },
    );
  }
  const passwords = options.htpasswd === undefined ? undefined : await openPasswordFile(options.htpasswd);
  const store = await openRegistryStore(directory, options.archiveBases ?? [], logger, options.archiveProof);
  const defaultName = toRepositoryName(basename(await realpath(directory)));
  const repositories = new Repositories(store, defaultName, logger);
  const layout = options.readOnly === true ? undefined : store.layout;
  const limit =
    layout === undefined || options.maxSize === undefined
      ? undefined
      : await limitStorage(layout, options.maxSize);
  const uploads = layout && new Uploads(layout, limit);
  const { allowedHosts = [], maxConnections } = options;
  const server = createHttpServer({
    handle: createRegistryHandler({ repositories, uploads, limit, passwords, logger }),
    refuse: refuseRegistryRequest,
    allowsHost: createHostRule({ names: [host, ...allowedHosts], everywhere: allowedHosts.length > 0 }),
    certificate: tls,
    // Large uploads take any time; idle connections are limited.
    requestMs: 0,
    maxConnections,
    logger,
  });
  const actualPort = await listenOn(server, { host, port });
  server.on('error', (error) => logger.log('error', `${host}:${port}: ${getMessage(error)}`));
  const close = async (): Promise<void> => {
    await closeHttpServer(server, closeGraceMs);
    await uploads?.dropAll();
  };
  return {
    url: getServerUrl(server, host, tls !== undefined),
    port: actualPort,
    replaceCertificate: (certificate) => replaceCertificate(server, certificate),
    close: closeOnAbort(signal, close, (error) => logger.log('error', getMessage(error))),
  };
}
