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
  /** Prefix of URLs in responses, such as `https://catalogs.example`; default the address of the socket. */
  externalUrl?: string | undefined;
  certificate?: ServerCertificate | undefined;
  /** Listening host, and further host names of requests; see HostRule. */
  host?: string | undefined;
  allowedHosts?: readonly string[] | undefined;
  maxConnections?: number | undefined;
  /** Leaves `/metrics` to the separate metrics server. */
  hasOwnMetrics?: boolean | undefined;
  /** Returns the statuses for `/api/v1/catalogs`; `root` is the prefix of URLs. */
  statuses?: ((root: string) => JsonValue[]) | undefined;
  /** Limits of GraphQL queries that differ from the defaults. */
  queryLimits?: Partial<QueryLimits> | undefined;
  logger?: Logger | undefined;
}

interface CatalogServers {
  api: Server;
  /** Serves `/metrics` of the API server only. */
  metrics: Server;
}

/**
 * Creates the server of the HTTP catalog API; the caller listens, and closes it with `closeHttpServer`. Throws OpmateError
 * INVALID for an unusable certificate, USAGE for an invalid external URL.
 */
export function createCatalogServer(options: CatalogServerOptions): Server {
  return createCatalogServers(options).api;
}

/** Creates the servers of the API and of its metrics; see `createCatalogServer`. */
export function createCatalogServers(options: CatalogServerOptions): CatalogServers {
  const { catalogs, certificate, host, allowedHosts = [], maxConnections, logger = silentLogger } = options;
  const externalUrl = options.externalUrl === undefined ? undefined : parseExternalUrl(options.externalUrl);
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
      handle: (request, response) => sendMetrics(request, response, () => requests.formatMetrics()),
    }),
  };
}

/** Parses an external URL, without trailing slash. */
function parseExternalUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && url.username === '' && url.search === '' && url.hash === '';
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new OpmateError('USAGE', `external URL: ${JSON.stringify(text)} is not an http or https URL`, {
      hint: 'use a URL with scheme, host and port, e.g. https://catalogs.example',
    });
  }
  return url.href.replace(/\/+$/, '');
}
