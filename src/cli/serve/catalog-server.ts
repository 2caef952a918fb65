import { UsageError } from '../../core/errors.js';
import type { JsonValue } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import type { CatalogSet } from '../../serve/catalogs/stored-content.js';
import { type CatalogServers, createCatalogServers } from '../../serve/http/catalog-server.js';
import { readCertificateFiles, watchCertificateFiles } from '../../serve/server/certificate-files.js';
import {
  type ServerCertificate,
  closeHttpServer,
  replaceCertificate,
} from '../../serve/server/http-server.js';
import { listenOn, getUrl } from '../../serve/server/listening.js';
import type { FlagValues } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { getAddress, findTlsFiles } from './listen-options.js';
import type { catalogServerFlags } from './server-flags.js';

/** Options of a server of the HTTP catalog API. */
export type CatalogServerOptions = FlagValues<typeof catalogServerFlags>;

/** A server that is set up and does not listen yet. */
interface PreparedCatalogServer {
  /** Listens; returns the URL that it is reached at. Throws OpmateError IO. */
  listen(): Promise<string>;
  /** Finishes requests that are under way. Does nothing where it has not listened. */
  close(): Promise<void>;
}

/** Sets up the server of the HTTP catalog API as the flags say. Throws OpmateError. */
export async function prepareCatalogServer(
  context: CommandContext,
  flags: CatalogServerOptions,
  catalogs: CatalogSet,
  logger: Logger,
  statuses?: (root: string) => JsonValue[],
): Promise<PreparedCatalogServer> {
  const { externalUrl, metricsListen, allowHost, maxConnections } = flags;
  const files = findTlsFiles(flags);
  if (files !== undefined && flags.tlsSelfSigned) {
    throw new UsageError('--tls-self-signed and --tls-cert cannot be used together');
  }
  const address = getAddress(flags.http);
  const metricsAddress =
    metricsListen === undefined ? undefined : getAddress(metricsListen, '--metrics-listen');
  const pair = files === undefined ? undefined : await readCertificateFiles(files);
  const certificate = pair ?? (await findSelfSigned(context, flags.tlsSelfSigned, address.host));
  const servers: CatalogServers = createCatalogServers({
    catalogs,
    externalUrl,
    certificate,
    host: address.host,
    allowedHosts: allowHost,
    maxConnections,
    hasOwnMetrics: metricsAddress !== undefined,
    statuses,
    logger,
  });
  let watcher: { stop(): void } | undefined;
  return {
    async listen() {
      await listenOn(servers.api, address, '--http');
      if (metricsAddress !== undefined) {
        await listenOn(servers.metrics, metricsAddress, '--metrics-listen');
        logger.log('info', 'serving metrics', {
          url: `${getUrl(servers.metrics, metricsAddress.host, false)}/metrics`,
        });
      }
      if (files !== undefined && pair !== undefined) {
        const reload = (next: ServerCertificate): void => replaceCertificate(servers.api, next);
        watcher = watchCertificateFiles(files, pair, reload, logger);
      }
      return externalUrl?.replace(/\/+$/, '') ?? getUrl(servers.api, address.host, certificate !== undefined);
    },
    async close() {
      watcher?.stop();
      await Promise.all([servers.api, servers.metrics].map((server) => closeHttpServer(server)));
    },
  };
}

async function findSelfSigned(
  context: CommandContext,
  isWanted: boolean,
  host: string,
): Promise<ServerCertificate | undefined> {
  if (!isWanted) return undefined;
  const { createSelfSignedCertificate } = await import('../../serve/http/self-signed.js');
  return createSelfSignedCertificate([...new Set(['localhost', '127.0.0.1', host])], context.now());
}
