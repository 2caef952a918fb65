import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getMessage, redact } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { JsonValue } from '../../document/json.js';
import type { CatalogSet, ServedCatalog } from '../catalogs/stored-content.js';
import type { QueryLimits } from '../graphql/catalog-query.js';
import type { RequestRefusal } from '../server/http-server.js';
import { Refusal } from '../server/refusal.js';
import { sendFromAll } from './all-catalogs.js';
import { BodySender } from './body-sender.js';
import { sendContent } from './catalog-content.js';
import { findCatalogNameFault } from './catalog-names.js';
import { getTags } from './entity-tags.js';
import {
  type Exchange,
  allowReading,
  jsonType,
  openExchange,
  retryLater,
  sendBuffer,
  sendText,
  toLoggedPath,
} from './exchange.js';
import { readMetasQuery } from './metas-query.js';
import { RequestMetrics, metricsType } from './metrics.js';
import { QueryRequests } from './query-requests.js';

interface CatalogRequestsOptions {
  catalogs: CatalogSet;
  logger: Logger;
  /** Without trailing slash. */
  externalUrl: string | undefined;
  secure: boolean;
  /** Another server handles `/metrics`. */
  hasOwnMetrics: boolean;
  /** Returns the status of every catalog, also without content; `root` is the prefix of URLs. */
  statuses?: ((root: string) => JsonValue[]) | undefined;
  queryLimits?: Partial<QueryLimits> | undefined;
}

const routeNotFound = () => new Refusal(404, '404 page not found');
const catalogNotFound = () => new Refusal(404, '404 Not Found');
const badRequest = () => new Refusal(400, '400 Bad Request');

/** Handles the requests of the HTTP catalog API. */
export class CatalogRequests {
  readonly #options: CatalogRequestsOptions;
  readonly #catalogs: CatalogSet;
  readonly #queries: QueryRequests;
  readonly #metrics = new RequestMetrics();
  readonly #bodies = new BodySender();
  /** Prefix of request ids, unique per process. */
  readonly #idPrefix = randomBytes(4).toString('hex');
  #requests = 0;

  constructor(options: CatalogRequestsOptions) {
    this.#options = options;
    this.#catalogs = options.catalogs;
    this.#queries = new QueryRequests(options.queryLimits ?? {}, this.#bodies);
  }

  /** Formats the metrics as Prometheus text. */
  formatMetrics(): string {
    return this.#metrics.format(this.#catalogs);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    this.#metrics.begin();
    const exchange = openExchange(request, response, () => `${this.#idPrefix}-${++this.#requests}`);
    response.setHeader('X-Request-Id', exchange.id);
    response.once('close', () => {
      const seconds = (performance.now() - started) / 1000;
      this.#metrics.end(response.statusCode, seconds, exchange.bytes);
      // 503 while not ready is normal, and probed every second.
      const isFault = response.statusCode >= 500 && response.statusCode !== 503;
      this.#log(exchange, isFault ? 'error' : 'debug', seconds);
    });
    await this.#respond(exchange).catch((error: unknown) => {
      if (!response.destroyed) {
        this.#options.logger.log(
          'error',
          `${exchange.method} ${toLoggedPath(exchange)}: ${redact(getMessage(error))}`,
          {
            request: exchange.id,
          },
        );
      }
      if (response.headersSent) response.destroy();
      else {
        for (const name of response.getHeaderNames()) {
          if (name !== 'x-request-id') response.removeHeader(name);
        }
        sendText(exchange, 500, '500 Internal Server Error');
      }
    });
  }

  #log(exchange: Exchange, level: 'error' | 'debug', seconds: number): void {
    const { method, response, id, bytes } = exchange;
    this.#options.logger.log(level, `${method} ${toLoggedPath(exchange)}`, {
      request: id,
      status: response.statusCode,
      bytes,
      ms: Math.round(seconds * 10_000) / 10,
      ...(response.writableFinished ? {} : { aborted: true }),
    });
  }

  async #respond(exchange: Exchange): Promise<void> {
    try {
      await this.#route(exchange);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      for (const [name, value] of Object.entries(error.headers)) exchange.response.setHeader(name, value);
      sendText(exchange, error.status, error.message);
    }
  }

  async #route(exchange: Exchange): Promise<void> {
    const [, first, ...rest] = exchange.path.split('/');
    const tail = rest.join('/');
    if (first === 'catalogs' && rest.length === 0) {
      allowReading(exchange);
      return this.#sendListing(exchange);
    }
    if (first === 'catalogs' && rest.length > 1 && rest[0] !== '') {
      const [name = '', ...route] = rest;
      switch (route.join('/')) {
        case 'api/v1/all':
        case 'all.json':
          allowReading(exchange);
          return await this.#sendAll(exchange, parseName(name));
        case 'api/v1/metas':
          allowReading(exchange);
          return await this.#sendMetas(exchange, parseName(name));
        case 'api/v1/graphql': {
          if (exchange.method !== 'POST') allowReading(exchange);
          const catalog = parseName(name);
          return await this.#queries.handle(exchange, () => this.#find(catalog));
        }
      }
    }
    if (first === 'api' && tail === 'v1/catalogs' && this.#options.statuses !== undefined) {
      allowReading(exchange);
      return sendJson(exchange, { items: this.#options.statuses(this.#getRoot(exchange)) });
    }
    if (first === 'api' && tail === 'v1/metas') {
      allowReading(exchange);
      return await sendFromAll(exchange, this.#catalogs, this.#bodies);
    }
    if (rest.length > 0) throw routeNotFound();
    switch (first ?? '') {
      case 'healthz':
        allowReading(exchange);
        return sendText(exchange, 200, 'ok');
      case 'readyz': {
        allowReading(exchange);
        const ready = this.#catalogs.isReady();
        return sendText(exchange, ready ? 200 : 503, ready ? 'ok' : 'not ready: catalogs are being read');
      }
      case 'metrics': {
        if (this.#options.hasOwnMetrics) break;
        allowReading(exchange);
        return sendBuffer(exchange, 200, metricsType, Buffer.from(this.formatMetrics()));
      }
    }
    throw routeNotFound();
  }

  #find(name: string): ServedCatalog {
    const served = this.#catalogs.find(name);
    if (served !== undefined) return served;
    if (!this.#catalogs.isExpected(name)) throw catalogNotFound();
    throw new Refusal(503, '503 Service Unavailable: the catalog is not loaded yet', retryLater);
  }

  async #sendAll(exchange: Exchange, name: string): Promise<void> {
    const served = this.#find(name);
    const sections = served.content.find({ schema: '', package: '', name: '' });
    await sendContent(exchange, { served, sections, tags: getTags(served.content.hash) }, this.#bodies);
  }

  async #sendMetas(exchange: Exchange, name: string): Promise<void> {
    const criteria = readMetasQuery(exchange.query);
    const served = this.#find(name);
    const query = [criteria.schema, criteria.package, criteria.name];
    const tags = getTags(served.content.hash, query);
    const sections = served.content.find(criteria);
    await sendContent(exchange, { served, sections, tags, query }, this.#bodies);
  }

  /** Returns the prefix of URLs in a response. */
  #getRoot({ request }: Exchange): string {
    return this.#options.externalUrl ?? getSocketUrl(request, this.#options.secure);
  }

  #sendListing(exchange: Exchange): void {
    const root = this.#getRoot(exchange);
    const catalogs = this.#catalogs.list().map(({ name, content, labels, priority, changedAt }) => {
      const base = `${root}/catalogs/${name}`;
      const api = `${base}/api/v1`;
      return {
        name,
        priority,
        labels,
        hash: content.hash,
        size: content.size,
        count: content.count,
        packages: content.packages.length,
        changedAt: (changedAt ?? content.storedAt).toISOString(),
        urls: { base, all: `${api}/all`, metas: `${api}/metas`, graphql: `${api}/graphql` },
      };
    });
    sendJson(exchange, { catalogs });
  }
}

/** Responds to a request that the server refuses. */
export function refuseCatalogRequest(
  { status, message, hint }: RequestRefusal,
  { method }: IncomingMessage,
  response: ServerResponse,
): void {
  const body = Buffer.from(`${message}; ${hint}\n`);
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': body.length,
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(method === 'HEAD' ? undefined : body);
}

function parseName(segment: string): string {
  let name: string;
  try {
    name = decodeURIComponent(segment);
  } catch {
    throw badRequest();
  }
  const fault = findCatalogNameFault(name);
  if (fault !== undefined) throw new Refusal(400, `invalid catalog name: ${fault}`);
  return name;
}

function sendJson(exchange: Exchange, value: object): void {
  sendBuffer(exchange, 200, jsonType, Buffer.from(`${JSON.stringify(value, null, 2)}\n`));
}

function getSocketUrl({ socket }: IncomingMessage, secure: boolean): string {
  const address = (socket.localAddress ?? '127.0.0.1').replace(/^::ffff:(?=[\d.]+$)/, '');
  const host = address.includes(':') ? `[${address}]` : address;
  return `${secure ? 'https' : 'http'}://${host}:${socket.localPort ?? ''}`;
}
