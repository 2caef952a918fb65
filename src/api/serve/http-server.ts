import type { JsonValue } from '../../document/json.js';
import type { CatalogSet } from '../../serve/catalogs/catalog-set.js';
import { createCatalogServers } from '../../serve/http/catalog-server.js';
import { type CertificateFiles, openCertificateFiles } from '../../serve/server/certificate-files.js';
import { closeHttpServer, replaceCertificate } from '../../serve/server/http-server.js';
import type { ServerCertificate } from '../../serve/server/tls.js';
import { getServerUrl, listenOn } from '../../serve/server/listening.js';
import type { Session } from '../../source/session.js';

/** Address of a server that binds loopback by default. */
export interface HttpAddress {
  /** Default `127.0.0.1`. */
  host?: string | undefined;
  /** 0 selects a free port. */
  port: number;
}

/** Options of the HTTP catalog API. */
export interface HttpServerOptions extends HttpAddress {
  /** Certificate and key, read again when they change, or a temporary self-signed certificate; default plain HTTP. */
  tls?: CertificateFiles | 'self-signed' | undefined;
  /** Address of `/metrics`; default that of the API. */
  metrics?: HttpAddress | undefined;
  /** Base URL of the API; default its address. */
  externalUrl?: string | undefined;
  /** Host headers of requests that are allowed in addition to the address. */
  allowedHosts?: readonly string[] | undefined;
  /** Maximum number of open connections; default 1000. */
  maxConnections?: number | undefined;
}

/** Sets up the server of the HTTP catalog API, which does not listen yet. Throws OpmateError. */
export async function prepareHttpServer(
  options: HttpServerOptions,
  catalogs: CatalogSet,
  { now, logger }: Session,
  statuses?: (root: string) => JsonValue[],
) {
  const { host = '127.0.0.1', port, tls, metrics, externalUrl } = options;
  const files = await openCertificateFiles(tls === 'self-signed' ? undefined : tls, logger);
  const certificate = tls === 'self-signed' ? await createSelfSigned(host, now()) : files.certificate;
  const hasOwnMetrics = metrics !== undefined;
  const servers = createCatalogServers({
    ...options,
    catalogs,
    certificate,
    host,
    hasOwnMetrics,
    statuses,
    logger,
  });
  return {
    /** Listens; returns the URL that it is reached at. Throws OpmateError IO. */
    async listen(): Promise<string> {
      await listenOn(servers.api, { host, port }, 'options.http');
      if (metrics !== undefined) {
        const { host: metricsHost = '127.0.0.1' } = metrics;
        await listenOn(servers.metrics, { host: metricsHost, port: metrics.port }, 'options.metrics');
        const url = `${getServerUrl(servers.metrics, metricsHost, false)}/metrics`;
        logger.log('info', 'serving metrics', { url });
      }
      files.follow((next) => replaceCertificate(servers.api, next));
      return externalUrl?.replace(/\/+$/, '') ?? getServerUrl(servers.api, host, certificate !== undefined);
    },
    /** Finishes requests in progress. */
    async close(): Promise<void> {
      files.close();
      await Promise.all([servers.api, servers.metrics].map((server) => closeHttpServer(server)));
    },
  };
}

async function createSelfSigned(host: string, now: Date): Promise<ServerCertificate> {
  const { createSelfSignedCertificate } = await import('../../serve/http/self-signed.js');
  return createSelfSignedCertificate([...new Set(['localhost', '127.0.0.1', host])], now);
}
