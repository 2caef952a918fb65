import { type Server, createServer } from 'node:http';
import { Server as SecureServer, createServer as createSecureServer } from 'node:https';
import { createSecureContext } from 'node:tls';
import { OpmateError, systemCode } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { CatalogSet } from '../catalogs/stored-content.js';
import { CatalogRequests } from './catalog-requests.js';

/** A client has this long to send its request. (Source: catalogd.) */
const requestMs = 5_000;
/** A connection on which nothing moves for this long is closed; one between two requests earlier. */
const idleMs = 5 * 60 * 1000;
const keepAliveMs = 60_000;
/** Request line and headers together. */
const maxHeaderBytes = 16 * 1024;
/** How long requests that are under way may take when the server closes. (Source: catalogd.) */
const defaultGraceMs = 30_000;

/** Certificate and key as PEM; replaced by `reload` of whoever watches the files. */
export interface ServerCertificate {
  cert: string;
  key: string;
}

export interface CatalogServerOptions {
  catalogs: CatalogSet;
  /** What URLs that are shown begin with, e.g. `https://catalogs.example`; that of the socket where left out. */
  externalUrl?: string | undefined;
  certificate?: ServerCertificate | undefined;
  logger?: Logger | undefined;
}

/**
 * Makes the server of the HTTP catalog API; the caller listens. Closed with `closeCatalogServer`. Throws OpmateError
 * INVALID for a certificate that cannot be used, and USAGE for an external URL that is none.
 */
export function createCatalogServer(options: CatalogServerOptions): Server {
  const { catalogs, externalUrl, certificate, logger = silentLogger } = options;
  const requests = new CatalogRequests({
    catalogs,
    logger,
    externalUrl: externalUrl === undefined ? undefined : checkExternalUrl(externalUrl),
    secure: certificate !== undefined,
  });
  const limits = {
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    // How exactly these times are kept.
    connectionsCheckingInterval: 1_000,
    maxHeaderSize: maxHeaderBytes,
    noDelay: true,
  };
  let server: Server;
  if (certificate === undefined) server = createServer(limits);
  else {
    checkCertificate(certificate);
    server = createSecureServer({
      ...limits,
      ...certificate,
      minVersion: 'TLSv1.2',
      handshakeTimeout: requestMs,
      ALPNProtocols: ['http/1.1'],
    });
  }
  server.setTimeout(idleMs);
  server.on('request', (request, response) => {
    // A server that has been closed answers what is under way, and nothing after it.
    if (!server.listening) response.setHeader('Connection', 'close');
    response.once('close', () => {
      if (!server.listening) server.closeIdleConnections();
    });
    requests.handle(request, response);
  });
  return server;
}

/**
 * Serves new connections with another certificate; those that are open keep theirs. Throws OpmateError INVALID when
 * the certificate cannot be used, and goes on with the one before.
 */
export function replaceCertificate(server: Server, certificate: ServerCertificate): void {
  checkCertificate(certificate);
  if (!(server instanceof SecureServer)) {
    throw new OpmateError('INTERNAL', 'a server without TLS has no certificate to replace');
  }
  server.setSecureContext({ ...certificate, minVersion: 'TLSv1.2' });
}

/** Stops listening, lets requests that are under way finish, and cuts off those that take longer than the grace. */
export async function closeCatalogServer(server: Server, graceMs: number = defaultGraceMs): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timer);
}

function checkCertificate({ cert, key }: ServerCertificate): void {
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const mismatch = systemCode(cause) === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH';
    throw new OpmateError(
      'INVALID',
      `TLS certificate and key: ${mismatch ? 'do not belong together' : 'cannot be read'}`,
      { hint: 'both are PEM files, and the key is the one that the certificate was made with', cause },
    );
  }
}

/** The URL without a final slash. */
function checkExternalUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && url.username === '' && url.search === '' && url.hash === '';
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new OpmateError('USAGE', `external URL: ${JSON.stringify(text)} is not an http or https URL`, {
      hint: 'give scheme, host and port, e.g. https://catalogs.example',
    });
  }
  return url.href.replace(/\/+$/, '');
}
