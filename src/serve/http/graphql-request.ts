import type { IncomingMessage } from 'node:http';
import { foldFieldName } from '../../document/go-json-fold.js';
import { isJsonObject } from '../../document/json.js';
import type { CatalogQuery } from '../graphql/catalog-query.js';
import { readBody } from '../server/request-body.js';
import { Refusal } from '../server/refusal.js';

const maxBodyBytes = 1024 * 1024;
const maxQueryBytes = 100_000;

const invalidBody = () => new Refusal(400, 'Invalid request body');

/** Reads the query of a POST request. Throws Refusal; limits, statuses and texts are those of catalogd. */
export async function readPostedQuery(request: IncomingMessage): Promise<CatalogQuery> {
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
export function readQueryParameters(parameters: URLSearchParams): CatalogQuery {
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
