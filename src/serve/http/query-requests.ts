import type { IncomingMessage } from 'node:http';
import { OpmateError } from '../../core/errors.js';
import { foldFieldName } from '../../document/go-json-fold.js';
import { isJsonObject } from '../../document/json.js';
import type { ServedCatalog } from '../catalogs/catalog-set.js';
import type { CatalogQuery, QueryLimits } from '../graphql/catalog-query.js';
import { Refusal } from '../server/refusal.js';
import { readBody } from '../server/request-body.js';
import type { BodySender } from './body-sender.js';
import { type EntityTags, getTags, respondToConditions } from './conditions.js';
import { type Exchange, checkParameters, jsonType, retryLater } from './exchange.js';

const maxBodyBytes = 1024 * 1024;
const maxQueryBytes = 100_000;
/** Maximum GraphQL queries being executed or sent. */
const maxQueries = 200;
/** Maximum unsent bytes of results; beyond it, queries are refused. */
const maxUnsentBytes = 256 * 1024 * 1024;
/** Part of the tags of results; changes with their format. */
const resultVersion = 'graphql 1';

const invalidBody = () => new Refusal(400, 'Invalid request body');

/** Executes GraphQL queries and sends their results, within limits of all requests together. */
export class QueryHandler {
  readonly #limits: Partial<QueryLimits>;
  readonly #bodies: BodySender;
  #queries = 0;
  #unsentBytes = 0;

  constructor(limits: Partial<QueryLimits>, bodies: BodySender) {
    this.#limits = limits;
    this.#bodies = bodies;
  }

  /** Answers a request; `find` returns the current catalog. */
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
    const { queryCatalog } = await import('../graphql/catalog-query.js');
    const { content } = find();
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const { body, isStable } = await queryCatalog(content, query, this.#limits, gone.signal).catch(
      throwQueryError,
    );
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

/** Reads the query of a POST request. Throws Refusal; limits, statuses and texts are those of catalogd. */
async function readPostedQuery(request: IncomingMessage): Promise<CatalogQuery> {
  const body = await readBody(request, maxBodyBytes, invalidBody);
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    throw invalidBody();
  }
  if (value === null) throw new Refusal(400, 'Query cannot be empty');
  if (!isJsonObject(value)) throw invalidBody();
  let query: unknown;
  for (const key of Object.keys(value)) {
    if (foldFieldName(key) === 'query' && value[key] !== null) query = value[key];
  }
  if (query !== undefined && typeof query !== 'string') throw invalidBody();
  const { variables, operationName } = value;
  return checkQuery({
    query: query ?? '',
    variables: isJsonObject(variables) ? variables : undefined,
    operationName: typeof operationName === 'string' && operationName !== '' ? operationName : undefined,
  });
}

/** Reads the query of a GET request. Throws Refusal. */
function readQueryParameters(parameters: URLSearchParams): CatalogQuery {
  const text = parameters.get('variables') ?? '';
  let variables: unknown;
  try {
    variables = text === '' ? undefined : JSON.parse(text);
  } catch {
    variables = text;
  }
  if (variables !== undefined && variables !== null && !isJsonObject(variables)) {
    throw new Refusal(400, '400 Bad Request: variables: expected a JSON object');
  }
  return checkQuery({
    query: parameters.get('query') ?? '',
    variables: variables ?? undefined,
    operationName: parameters.get('operationName') || undefined,
  });
}

function checkQuery(query: CatalogQuery): CatalogQuery {
  if (query.query === '') throw new Refusal(400, 'Query cannot be empty');
  if (Buffer.byteLength(query.query) > maxQueryBytes) throw new Refusal(400, 'Query too large');
  return query;
}
