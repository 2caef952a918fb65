import { OpmateError } from '../../core/errors.js';
import type { ServedCatalog } from '../catalogs/stored-content.js';
import type { CatalogQuery, QueryLimits } from '../graphql/catalog-query.js';
import { Refusal } from '../server/refusal.js';
import type { BodySender } from './body-sender.js';
import { type EntityTags, getTags, respondToConditions } from './entity-tags.js';
import { type Exchange, checkParameters, jsonType, retryLater } from './exchange.js';
import { readPostedQuery, readQueryParameters } from './graphql-request.js';

/** Maximum GraphQL queries being executed or sent. */
const maxQueries = 200;
/** Maximum unsent bytes of results; beyond it, queries are refused. */
const maxUnsentBytes = 256 * 1024 * 1024;
/** Part of the tags of results; changes with their format. */
const resultVersion = 'graphql 1';

/** Handles GraphQL queries. */
export class QueryRequests {
  readonly #limits: Partial<QueryLimits>;
  readonly #bodies: BodySender;
  #queries = 0;
  #unsentBytes = 0;

  constructor(limits: Partial<QueryLimits>, bodies: BodySender) {
    this.#limits = limits;
    this.#bodies = bodies;
  }

  /** Executes a query and sends its result; `find` returns the current catalog. */
  async handle(exchange: Exchange, find: () => ServedCatalog): Promise<void> {
    if (this.#queries >= maxQueries || this.#unsentBytes > maxUnsentBytes) {
      throw new Refusal(503, '503 Service Unavailable: too many queries', retryLater);
    }
    this.#queries++;
    try {
      if (exchange.method === 'POST') {
        return await this.#sendResult(exchange, find, await readPostedQuery(exchange.request));
      }
      checkParameters(exchange.query, ['query', 'variables', 'operationName']);
      const query = readQueryParameters(exchange.query);
      const texts = [resultVersion, query.query, JSON.stringify(query.variables), query.operationName ?? ''];
      const { content, changedAt } = find();
      const tags = getTags(content.hash, texts);
      const lastModified = changedAt ?? content.storedAt;
      const coding = this.#bodies.selectCoding(exchange, Infinity);
      if (respondToConditions(exchange, tags, coding, lastModified)) return;
      await this.#sendResult(exchange, find, query, { tags, lastModified });
    } finally {
      this.#queries--;
    }
  }

  async #sendResult(
    exchange: Exchange,
    find: () => ServedCatalog,
    query: CatalogQuery,
    validators?: { tags: EntityTags; lastModified: Date },
  ): Promise<void> {
    const { response, method } = exchange;
    const { defaultQueryLimits, queryCatalog } = await import('../graphql/catalog-query.js');
    const { content } = find();
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const limits = { ...defaultQueryLimits, ...this.#limits };
    const { body, isStable } = await queryCatalog(content, query, limits, gone.signal).catch(throwQueryError);
    const size = body.reduce((sum, { length }) => sum + length, 0);
    const coding = this.#bodies.selectCoding(exchange, size);
    response.setHeader('Vary', 'Accept-Encoding');
    response.setHeader('Content-Type', jsonType);
    if (validators !== undefined && isStable) {
      const { tags, lastModified } = validators;
      response.setHeader('Last-Modified', lastModified.toUTCString());
      response.setHeader('ETag', tags(coding));
    }
    if (coding === undefined) response.setHeader('Content-Length', size);
    else response.setHeader('Content-Encoding', coding);
    if (method === 'HEAD') return void response.end();
    this.#unsentBytes += size;
    try {
      await this.#bodies.stream(exchange, body, coding);
    } finally {
      this.#unsentBytes -= size;
    }
  }
}

/** Queries of a catalog without a GraphQL schema fail, as in catalogd, with its problem. */
function throwQueryError(error: unknown): never {
  if (!(error instanceof OpmateError) || !['INVALID', 'LIMIT'].includes(error.code)) throw error;
  throw new Refusal(500, `500 Internal Server Error: ${error.message}`);
}
