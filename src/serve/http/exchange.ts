import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MetasQuery } from '../catalogs/content-index.js';
import { Refusal } from '../server/refusal.js';
import { splitUrl } from '../server/request-url.js';

/** Maximum length of a path in a log line. */
const maxLoggedPath = 300;

export const jsonType = 'application/json';

/** Headers of a temporary refusal. */
export const retryLater = { 'Retry-After': '1' };

/** A request and its response. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  method: string;
  path: string;
  query: URLSearchParams;
  id: string;
  /** Sent bytes of the body. */
  bytes: number;
}

/** Opens the exchange of a request; `createId` makes its id unless the client has sent one. */
export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  createId = () => '',
): Exchange {
  // Proxies may send absolute URLs.
  const url = (request.url ?? '/').replace(/^https?:\/\/[^/?]*/i, '');
  return {
    request,
    response,
    method: request.method ?? 'GET',
    ...splitUrl(url),
    id: findRequestId(request) ?? createId(),
    bytes: 0,
  };
}

/** Refuses parameters other than the known ones. */
export function checkParameters(parameters: URLSearchParams, known: readonly string[]): void {
  for (const key of parameters.keys()) {
    if (known.includes(key)) continue;
    const shown = JSON.stringify(key.length > 80 ? `${key.slice(0, 80)}…` : key);
    throw new Refusal(400, `400 Bad Request: unknown query parameter ${shown}, expected ${known.join(', ')}`);
  }
}

/** Reads a `metas` query, the first value of each key. Throws Refusal for keys other than these and `others`. */
export function readMetasQuery(parameters: URLSearchParams, others: readonly string[] = []): MetasQuery {
  checkParameters(parameters, ['schema', 'package', 'name', ...others]);
  return {
    schema: parameters.get('schema') ?? '',
    package: parameters.get('package') ?? '',
    name: parameters.get('name') ?? '',
  };
}

/** Refuses methods other than GET and HEAD. */
export function allowReading({ method }: Exchange): void {
  if (method !== 'GET' && method !== 'HEAD') throw new Refusal(405, 'Method Not Allowed');
}

/** Responds with one line of text. */
export function sendText(exchange: Exchange, status: number, text: string): void {
  exchange.response.setHeader('X-Content-Type-Options', 'nosniff');
  sendBuffer(exchange, status, 'text/plain; charset=utf-8', Buffer.from(`${text}\n`));
}

/** Responds with a body. */
export function sendBuffer(exchange: Exchange, status: number, type: string, body: Buffer): void {
  const { request, response, method } = exchange;
  response.statusCode = status;
  response.setHeader('Content-Type', type);
  response.setHeader('Content-Length', body.length);
  // An unread body would block the next request.
  if (hasBody(request) && !request.readableEnded) response.setHeader('Connection', 'close');
  if (method === 'HEAD') return void response.end();
  exchange.bytes = body.length;
  response.end(body);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Returns a harmless request id of a client or proxy. */
function findRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && /^[\w.:-]{1,64}$/.test(id) ? id : undefined;
}

/** Returns the path for a log line, without query parameters. */
export function toLoggedPath({ path }: Exchange): string {
  return path.length <= maxLoggedPath ? path : `${path.slice(0, maxLoggedPath)}…`;
}
