import { OpmateError } from '../../core/errors.js';
import type { ServedCatalog } from '../catalogs/stored-content.js';
import type { CatalogQuery, QueryLimits } from '../graphql/catalog-query.js';
import { Refusal } from '../server/refusal.js';
import type { BodySender } from './body-sender.js';
import { type EntityTags, getTags, isSettled } from './entity-tags.js';
import { type Exchange, checkParameters, jsonType, retryLater } from './exchange.js';
import { readPostedQuery, readQueryParameters } from './graphql-request.js';

/** GraphQL queries at once, those included whose results are being sent. */
const maxQueries = 200;
/** Bytes of results that clients have not taken yet; beyond it queries have to wait. */
const maxUnsentBytes = 256 * 1024 * 1024;
/** Part of the tags of results; changes with how values are written. */
const resultVersion = 'graphql 1';

/** Answers GraphQL queries. */
export class QueryRequests {
  readonly #limits: Partial<QueryLimits>;
  readonly #bodies: BodySender;
  #queries = 0;
  #unsentBytes = 0;

  constructor(limits: Partial<QueryLimits>, bodies: BodySender) {
    this.#limits = limits;
    this.#bodies = bodies;
  }

  /** Answers a query; `find` returns the catalog of the moment. */
  async answer(exchange: Exchange, find: () => ServedCatalog): Promise<void> {
    if (this.#queries >= maxQueries || this.#unsentBytes > maxUnsentBytes) throw tooManyQueries();
    this.#queries++;
    try {
      if (exchange.method === 'POST') {
        return await this.#sendResult(exchange, find, await readPostedQuery(exchange.request));
      }
      checkParameters(exchange.query, ['query', 'variables', 'operationName']);
      const wanted = readQueryParameters(exchange.query);
      const texts = [
        resultVersion,
        wanted.query,
        JSON.stringify(wanted.variables),
        wanted.operationName ?? '',
      ];
      const { content, changedAt } = find();
      const tags = getTags(content.hash, texts);
      const lastModified = changedAt ?? content.storedAt;
      const coding = this.#bodies.codingFor(exchange, Infinity);
      if (isSettled(exchange, tags, coding, lastModified)) return;
      await this.#sendResult(exchange, find, wanted, { tags, lastModified });
    } finally {
      this.#queries--;
    }
  }

  async #sendResult(
    exchange: Exchange,
    find: () => ServedCatalog,
    wanted: CatalogQuery,
    validators?: { tags: EntityTags; lastModified: Date },
  ): Promise<void> {
    const { response, method } = exchange;
    const { defaultQueryLimits, queryCatalog } = await import('../graphql/catalog-query.js');
    const { content } = find();
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const limits = { ...defaultQueryLimits, ...this.#limits };
    const { body, isStable } = await queryCatalog(content, wanted, limits, gone.signal).catch(
      throwQueryError,
    );
    const size = body.reduce((sum, { length }) => sum + length, 0);
    const coding = this.#bodies.codingFor(exchange, size);
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
      await this.#bodies.stream(exchange, iteratePieces(body), coding);
    } finally {
      this.#unsentBytes -= size;
    }
  }
}

function tooManyQueries(): Refusal {
  return new Refusal(503, '503 Service Unavailable: too many queries', retryLater);
}

/** A catalog that has no GraphQL schema fails its queries, as in catalogd; what is wrong with it is said. */
function throwQueryError(error: unknown): never {
  if (!(error instanceof OpmateError) || !['INVALID', 'LIMIT'].includes(error.code)) throw error;
  throw new Refusal(500, `500 Internal Server Error: ${error.message}`);
}

async function* iteratePieces(body: readonly Buffer[]): AsyncGenerator<Buffer, void, undefined> {
  yield* body;
}
