import { realpath } from 'node:fs/promises';
import { basename } from 'node:path';
import { type CancelOptions, onAbort } from '../../core/concurrency.js';
import { UsageError, getMessage, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { ArchiveProof } from '../../oci/archive-set/archive-index.js';
import { toRepositoryName } from '../../oci/registry/registry-names.js';
import { HostRule, isLoopbackHost } from '../server/host-rule.js';
import { PasswordFile } from '../server/htpasswd.js';
import {
  type ServerCertificate,
  closeHttpServer,
  createHttpServer,
  replaceCertificate,
} from '../server/http-server.js';
import { getUrl, listenOn, shownAddress } from '../server/listening.js';
import { Repositories } from './repositories.js';
import { RegistryRequests, refuseRegistryRequest } from './requests.js';
import { StorageLimit } from './storage-limit.js';
import { openRegistryStore } from './store.js';
import { Uploads } from './uploads.js';

/** How long `close` waits for requests that are under way. */
const closeGraceMs = 5_000;

export interface RegistryOptions extends CancelOptions {
  /** An OCI image layout, or a new or empty directory that is made one; or an archive set, for reading only. */
  directory: string;
  /** Directories of the archive sets that this one is based on. */
  archiveBases?: readonly string[];
  /** What the archive set must be; a directory that is no archive set is refused then. */
  archiveProof?: ArchiveProof;
  /** Address to listen on; loopback when left out. Others need `htpasswd` or `insecureListen`. */
  host?: string;
  /** Port to listen on; any free one when left out or 0. */
  port?: number;
  /** Certificate chain and key, PEM; plain HTTP without. */
  tls?: ServerCertificate;
  /** Users with bcrypt hashes of their passwords; everybody may read and write without. */
  htpasswd?: string | undefined;
  /** Allows listening beyond loopback without `htpasswd`. */
  insecureListen?: boolean | undefined;
  /** Takes no changes. */
  readOnly?: boolean | undefined;
  /** Bytes that blobs and uploads may take together; no limit of its own when left out. */
  maxSize?: number | undefined;
  /** Names that requests may call the registry by, then checked on every address; see HostRule. */
  allowedHosts?: readonly string[] | undefined;
  maxConnections?: number | undefined;
  logger?: Logger;
}

export interface Registry {
  /** `http://127.0.0.1:40001`, without a final slash. */
  readonly url: string;
  readonly port: number;
  /** Shows new connections another certificate. Throws OpmateError INVALID. */
  replaceCertificate(certificate: ServerCertificate): void;
  /** Stops listening, finishes what is under way, and removes unfinished uploads. */
  close(): Promise<void>;
}

/**
 * Serves an OCI image layout directory over the distribution API (distribution-spec 1.1), for reading and writing, or
 * the images of an archive set, for reading. The default repository is named after the directory; see `Repositories`.
 * An image needs its blobs; an index is accepted without some of its images. When `signal` fires the registry closes.
 * Throws OpmateError NOT_FOUND, INVALID, UNSUPPORTED or IO, and CANCELLED.
 */
export async function startRegistry(options: RegistryOptions): Promise<Registry> {
  const { directory, host = '127.0.0.1', port = 0, tls, logger = silentLogger, signal } = options;
  throwIfCancelled(signal);
  if (options.htpasswd === undefined && options.insecureListen !== true && !isLoopbackHost(host)) {
    throw new UsageError(
      `listen ${shownAddress({ host, port })}: not a loopback address, and no authentication is configured`,
      { hint: 'add --htpasswd FILE, or allow everybody with --insecure-listen' },
    );
  }
  const passwords = options.htpasswd === undefined ? undefined : await PasswordFile.open(options.htpasswd);
  const store = await openRegistryStore(directory, options.archiveBases ?? [], logger, options.archiveProof);
  const defaultName = toRepositoryName(basename(await realpath(directory)));
  const repositories = new Repositories(store, defaultName, logger);
  const layout = options.readOnly === true ? undefined : store.layout;
  const limit =
    layout === undefined || options.maxSize === undefined
      ? undefined
      : await StorageLimit.open(layout, options.maxSize);
  const uploads = layout && new Uploads(layout, limit);
  const handler = new RegistryRequests({ repositories, uploads, limit, passwords, logger });
  const { allowedHosts = [], maxConnections } = options;
  const server = createHttpServer({
    handle: (request, response) => handler.handle(request, response),
    refuse: refuseRegistryRequest,
    hosts: new HostRule({ names: [host, ...allowedHosts], everywhere: allowedHosts.length > 0 }),
    certificate: tls,
    // A large upload may take longer than any fixed time; a connection that stands still may not.
    requestMs: 0,
    maxConnections,
    logger,
  });
  const actualPort = await listenOn(server, { host, port });
  server.on('error', (error) => logger.log('error', `${host}:${port}: ${getMessage(error)}`));

  let closing: Promise<void> | undefined;
  let unwatch = (): void => undefined;
  const shutDown = async (): Promise<void> => {
    unwatch();
    await closeHttpServer(server, closeGraceMs);
    await uploads?.dropAll();
  };
  const close = (): Promise<void> => (closing ??= shutDown());
  unwatch = onAbort(signal, () => {
    void close().catch((error: unknown) => logger.log('error', getMessage(error)));
  });
  return {
    url: getUrl(server, host, tls !== undefined),
    port: actualPort,
    replaceCertificate: (certificate) => replaceCertificate(server, certificate),
    close,
  };
}
