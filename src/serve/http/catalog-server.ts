import type { Server } from 'node:http';
import { OpmateError } from '../../core/errors.js';
import type { JsonValue } from '../../document/json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { CatalogSet } from '../catalogs/stored-content.js';
import type { QueryLimits } from '../graphql/catalog-query.js';
import { HostRule } from '../server/host-rule.js';
import { type ServerCertificate, createHttpServer } from '../server/http-server.js';
import { CatalogRequests, refuseCatalogRequest } from './catalog-requests.js';
import { sendMetrics } from './metrics.js';

export interface CatalogServerOptions {
  catalogs: CatalogSet;
  /** What URLs that are shown begin with, e.g. `https://catalogs.example`; that of the socket where left out. */
  externalUrl?: string | undefined;
  certificate?: ServerCertificate | undefined;
  /** The name that the server listens to, and others that requests may call it by; see HostRule. */
  host?: string | undefined;
  allowedHosts?: readonly string[] | undefined;
  maxConnections?: number | undefined;
  /** Leaves `/metrics` to a server of its own; see `createMetricsServer`. */
  hasOwnMetrics?: boolean | undefined;
  /** Answers `/api/v1/catalogs`: status of every catalog, given what URLs begin with. */
  statuses?: ((root: string) => JsonValue[]) | undefined;
  /** Limits of GraphQL queries, where others than the default ones are wanted. */
  queryLimits?: Partial<QueryLimits> | undefined;
  logger?: Logger | undefined;
}

interface CatalogServers {
  api: Server;
  /** Answers `/metrics` of the same requests, and nothing else. */
  metrics: Server;
}

/**
 * Makes the server of the HTTP catalog API; the caller listens. Closed with `closeHttpServer`. Throws OpmateError
 * INVALID for a certificate that cannot be used, and USAGE for an external URL that is none.
 */
export function createCatalogServer(options: CatalogServerOptions): Server {
  return createCatalogServers(options).api;
}

/** The same, with the server of the metrics, which nobody has to listen to. */
export function createCatalogServers(options: CatalogServerOptions): CatalogServers {
  const { catalogs, certificate, host, allowedHosts = [], maxConnections, logger = silentLogger } = options;
  const externalUrl = options.externalUrl === undefined ? undefined : checkExternalUrl(options.externalUrl);
  const externalHost = externalUrl === undefined ? undefined : new URL(externalUrl).hostname;
  const requests = new CatalogRequests({
    catalogs,
    logger,
    externalUrl,
    secure: certificate !== undefined,
    hasOwnMetrics: options.hasOwnMetrics === true,
    statuses: options.statuses,
    queryLimits: options.queryLimits,
  });
  const hosts = new HostRule({
    names: [host, externalHost, ...allowedHosts],
    everywhere: allowedHosts.length > 0,
  });
  const shared = { hosts, refuse: refuseCatalogRequest, maxConnections, logger };
  return {
    api: createHttpServer({
      ...shared,
      certificate,
      handle: (request, response) => requests.handle(request, response),
    }),
    metrics: createHttpServer({
      ...shared,
      handle: (request, response) => sendMetrics(request, response, () => requests.metricsText()),
    }),
  };
}

/** The URL without a final slash. */
function checkExternalUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && url.username === '' && url.search === '' && url.hash === '';
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new OpmateError('USAGE', `external URL: ${JSON.stringify(text)} is not an http or https URL`, {
      hint: 'use a URL with scheme, host and port, e.g. https://catalogs.example',
    });
  }
  return url.href.replace(/\/+$/, '');
}
