import { OpmateError } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { HostRule } from '../server/host-rule.js';
import { type ServerCertificate, createHttpServer } from '../server/http-server.js';
import {
  type CatalogRequestsOptions,
  createCatalogHandlers,
  refuseCatalogRequest,
} from './catalog-requests.js';

export interface CatalogServerOptions extends Omit<CatalogRequestsOptions, 'logger'> {
  certificate?: ServerCertificate | undefined;
  /** Listening host, and further host names of requests; see HostRule. */
  host?: string | undefined;
  allowedHosts?: readonly string[] | undefined;
  maxConnections?: number | undefined;
  logger?: Logger | undefined;
}

/**
 * Creates the server of the HTTP catalog API, and one of its metrics only; the caller listens, and closes them with
 * `closeHttpServer`. Throws OpmateError INVALID for an unusable certificate, USAGE for an invalid external URL.
 */
export function createCatalogServers(options: CatalogServerOptions) {
  const { certificate, host, allowedHosts = [], maxConnections, logger = silentLogger } = options;
  const externalUrl = options.externalUrl === undefined ? undefined : parseExternalUrl(options.externalUrl);
  const externalHost = externalUrl === undefined ? undefined : new URL(externalUrl).hostname;
  const { handle, handleMetrics } = createCatalogHandlers({ ...options, externalUrl, logger });
  const hosts = new HostRule({
    names: [host, externalHost, ...allowedHosts],
    everywhere: allowedHosts.length > 0,
  });
  const shared = { hosts, refuse: refuseCatalogRequest, maxConnections, logger };
  return {
    api: createHttpServer({ ...shared, certificate, handle }),
    metrics: createHttpServer({ ...shared, handle: handleMetrics }),
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
