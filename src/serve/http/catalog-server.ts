import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import { OpmateError, getMessage, redactUrls } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { JsonValue } from '../../document/json.js';
import type { MetasQuery } from '../catalogs/content-index.js';
import type { CatalogSet, ServedCatalog } from '../catalogs/catalog-set.js';
import type { QueryLimits } from '../graphql/catalog-query.js';
import { createHostRule } from '../server/host-rule.js';
import { type RequestRefusal, createHttpServer } from '../server/http-server.js';
import type { ServerCertificate } from '../server/tls.js';
import { Refusal } from '../server/refusal.js';
import { sendFromAll } from './all-catalogs.js';
import { BodySender } from './body-sender.js';
import { sendContent } from './catalog-content.js';
import { findCatalogNameFault } from './catalog-names.js';
import {
  type Exchange,
  allowReading,
  jsonType,
  openExchange,
  readMetasQuery,
  retryLater,
  sendBuffer,
  sendText,
  toLoggedPath,
} from './exchange.js';
import { Metrics, metricsType } from './metrics.js';
import { QueryHandler } from './query-requests.js';

export interface CatalogServerOptions {
  catalogs: CatalogSet;
  /** Prefix of URLs in responses, such as `https://catalogs.example`; default the address of the socket. */
  externalUrl?: string | undefined;
  certificate?: ServerCertificate | undefined;
  /** Listening host, and further host names of requests; see `createHostRule`. */
  host?: string | undefined;
  allowedHosts?: readonly string[] | undefined;
  maxConnections?: number | undefined;
  /** Leaves `/metrics` to the separate metrics server. */
  hasOwnMetrics?: boolean | undefined;
  /** Returns the status of every catalog for `/api/v1/catalogs`, also without content; `root` is the prefix of URLs. */
  statuses?: ((root: string) => JsonValue[]) | undefined;
  /** Limits of GraphQL queries that differ from the defaults. */
  queryLimits?: Partial<QueryLimits> | undefined;
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
  const handlers = new CatalogHandlers({ ...options, externalUrl, logger });
  const allowsHost = createHostRule({
    names: [host, externalHost, ...allowedHosts],
    everywhere: allowedHosts.length > 0,
  });
  const shared = { allowsHost, refuse: refuseRequest, maxConnections, logger };
  return {
    api: createHttpServer({
      ...shared,
      certificate,
      handle: (request, response) => handlers.handle(request, response),
    }),
    metrics: createHttpServer({
      ...shared,
      handle: (request, response) => handlers.handleMetrics(request, response),
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

const routeNotFound = () => new Refusal(404, '404 page not found');

/** Answers the requests of the API, and those for its metrics only. */
class CatalogHandlers {
  readonly #catalogs: CatalogSet;
  readonly #externalUrl: string | undefined;
  readonly #logger: Logger;
  readonly #metrics = new Metrics();
  readonly #bodies = new BodySender();
  /** Prefix of request ids, unique per process. */
  readonly #idPrefix = randomBytes(4).toString('hex');
  #requests = 0;
  readonly #routes: Map<string, (exchange: Exchange) => void | Promise<void>>;
  /** Routes below `/catalogs/NAME/`. */
  readonly #catalogRoutes: Map<string, (exchange: Exchange, name: string) => Promise<void>>;

  constructor({
    catalogs,
    externalUrl,
    hasOwnMetrics = false,
    statuses,
    queryLimits,
    logger,
  }: CatalogServerOptions & { logger: Logger }) {
    this.#catalogs = catalogs;
    this.#externalUrl = externalUrl;
    this.#logger = logger;
    this.#routes = new Map<string, (exchange: Exchange) => void | Promise<void>>([
      ['/catalogs', (exchange) => this.#sendListing(exchange)],
      ['/api/v1/metas', (exchange) => sendFromAll(exchange, catalogs, this.#bodies)],
      ['/healthz', (exchange) => sendText(exchange, 200, 'ok')],
      ['/readyz', (exchange) => this.#sendReadiness(exchange)],
    ]);
    if (!hasOwnMetrics) this.#routes.set('/metrics', (exchange) => this.#sendMetrics(exchange));
    if (statuses !== undefined) {
      const sendStatuses = (exchange: Exchange): void =>
        sendJson(exchange, { items: statuses(this.#getRoot(exchange)) });
      this.#routes.set('/api/v1/catalogs', sendStatuses);
    }
    const queries = new QueryHandler(queryLimits ?? {}, this.#bodies);
    this.#catalogRoutes = new Map<string, (exchange: Exchange, name: string) => Promise<void>>([
      ['api/v1/all', (exchange, name) => this.#sendBlobs(exchange, name)],
      ['all.json', (exchange, name) => this.#sendBlobs(exchange, name)],
      ['api/v1/metas', (exchange, name) => this.#sendBlobs(exchange, name, readMetasQuery(exchange.query))],
      ['api/v1/graphql', (exchange, name) => queries.handle(exchange, () => this.#find(name))],
    ]);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    this.#metrics.begin();
    const exchange = openExchange(request, response, () => `${this.#idPrefix}-${++this.#requests}`);
    const { method, id } = exchange;
    response.setHeader('X-Request-Id', id);
    response.once('close', () => {
      const seconds = (performance.now() - started) / 1000;
      const { bytes } = exchange;
      const status = response.statusCode;
      this.#metrics.end(status, seconds, bytes);
      // 503 while not ready is normal, and probed every second.
      this.#logger.log(
        status >= 500 && status !== 503 ? 'error' : 'debug',
        `${method} ${toLoggedPath(exchange)}`,
        {
          request: id,
          status,
          bytes,
          ms: Math.round(seconds * 10_000) / 10,
          ...(response.writableFinished ? {} : { aborted: true }),
        },
      );
    });
    try {
      await respondOrRefuse(exchange, (exchange) => this.#route(exchange));
    } catch (error) {
      if (!response.destroyed) {
        const message = `${method} ${toLoggedPath(exchange)}: ${redactUrls(getMessage(error))}`;
        this.#logger.log('error', message, { request: id });
      }
      if (response.headersSent) return void response.destroy();
      for (const name of response.getHeaderNames()) {
        if (name !== 'x-request-id') response.removeHeader(name);
      }
      sendText(exchange, 500, '500 Internal Server Error');
    }
  }

  async #route(exchange: Exchange): Promise<void> {
    const { path, method } = exchange;
    const [, name = '', route = ''] = /^\/catalogs\/([^/]+)\/(.+)$/.exec(path) ?? [];
    const respondFrom = this.#catalogRoutes.get(route);
    const respond = this.#routes.get(path);
    if (respondFrom === undefined && respond === undefined) throw routeNotFound();
    if (route !== 'api/v1/graphql' || method !== 'POST') allowReading(exchange);
    if (respondFrom !== undefined) return await respondFrom(exchange, parseName(name));
    await respond?.(exchange);
  }

  #sendReadiness(exchange: Exchange): void {
    const ready = this.#catalogs.isReady();
    sendText(exchange, ready ? 200 : 503, ready ? 'ok' : 'not ready: catalogs are being read');
  }

  #sendMetrics(exchange: Exchange): void {
    sendBuffer(exchange, 200, metricsType, Buffer.from(this.#metrics.format(this.#catalogs)));
  }

  #find(name: string): ServedCatalog {
    const served = this.#catalogs.find(name);
    if (served !== undefined) return served;
    if (!this.#catalogs.isExpected(name)) throw new Refusal(404, '404 Not Found');
    throw new Refusal(503, '503 Service Unavailable: the catalog is not loaded yet', retryLater);
  }

  async #sendBlobs(exchange: Exchange, name: string, query?: MetasQuery): Promise<void> {
    await sendContent(exchange, this.#find(name), query, this.#bodies);
  }

  /** Returns the prefix of URLs in a response. */
  #getRoot({ request }: Exchange): string {
    return this.#externalUrl ?? getSocketUrl(request);
  }

  #sendListing(exchange: Exchange): void {
    const root = this.#getRoot(exchange);
    const list = this.#catalogs.list().map(({ name, content, labels, priority, changedAt }) => {
      const { hash, size, count, packages, storedAt } = content;
      const base = `${root}/catalogs/${name}`;
      const api = `${base}/api/v1`;
      return {
        name,
        priority,
        labels,
        hash,
        size,
        count,
        packages: packages.length,
        changedAt: (changedAt ?? storedAt).toISOString(),
        urls: { base, all: `${api}/all`, metas: `${api}/metas`, graphql: `${api}/graphql` },
      };
    });
    sendJson(exchange, { catalogs: list });
  }

  async handleMetrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('X-Content-Type-Options', 'nosniff');
    await respondOrRefuse(openExchange(request, response), (exchange) => {
      if (exchange.path !== '/metrics') throw routeNotFound();
      allowReading(exchange);
      this.#sendMetrics(exchange);
    });
  }
}

/** Responds to a request, or with the refusal that `respond` throws. */
async function respondOrRefuse(
  exchange: Exchange,
  respond: (exchange: Exchange) => void | Promise<void>,
): Promise<void> {
  try {
    await respond(exchange);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    for (const [name, value] of Object.entries(error.headers)) exchange.response.setHeader(name, value);
    sendText(exchange, error.status, error.message);
  }
}

function refuseRequest(
  { status, message, hint }: RequestRefusal,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  sendText(openExchange(request, response), status, `${message}; ${hint}`);
}

function parseName(segment: string): string {
  let name: string;
  try {
    name = decodeURIComponent(segment);
  } catch {
    throw new Refusal(400, '400 Bad Request');
  }
  const fault = findCatalogNameFault(name);
  if (fault !== undefined) throw new Refusal(400, `invalid catalog name: ${fault}`);
  return name;
}

function sendJson(exchange: Exchange, value: object): void {
  sendBuffer(exchange, 200, jsonType, Buffer.from(`${JSON.stringify(value, null, 2)}\n`));
}

function getSocketUrl({ socket }: IncomingMessage): string {
  const address = (socket.localAddress ?? '127.0.0.1').replace(/^::ffff:(?=[\d.]+$)/, '');
  const host = address.includes(':') ? `[${address}]` : address;
  return `${socket instanceof TLSSocket ? 'https' : 'http'}://${host}:${socket.localPort ?? ''}`;
}
