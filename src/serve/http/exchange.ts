/** One request and its response, and how short answers to it are sent. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal } from '../server/refusal.js';

/** Characters of a path that a log line has. */
const maxLoggedPath = 300;

export const jsonType = 'application/json';

/** Headers of a refusal that will not last. */
export const retryLater = { 'Retry-After': '1' };

/** A request under way. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  method: string;
  path: string;
  query: URLSearchParams;
  id: string;
  /** Bytes of the body that were sent. */
  bytes: number;
}

/** Begins the exchange of a request that gets `id` where its client has given it none. */
export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  createId: () => string,
): Exchange {
  // A proxy may ask for the whole URL.
  const url = (request.url ?? '/').replace(/^https?:\/\/[^/?]*/i, '');
  const mark = url.indexOf('?');
  return {
    request,
    response,
    method: request.method ?? 'GET',
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
    id: requestId(request) ?? createId(),
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

/** Refuses methods other than GET and HEAD. */
export function allowReading({ method }: Exchange): void {
  if (method !== 'GET' && method !== 'HEAD') throw new Refusal(405, 'Method Not Allowed');
}

/** Answers with one line of text. */
export function sendText(exchange: Exchange, status: number, text: string): void {
  exchange.response.setHeader('X-Content-Type-Options', 'nosniff');
  sendBuffer(exchange, status, 'text/plain; charset=utf-8', Buffer.from(`${text}\n`));
}

/** Answers with a whole body. */
export function sendBuffer(exchange: Exchange, status: number, type: string, body: Buffer): void {
  const { request, response, method } = exchange;
  response.statusCode = status;
  response.setHeader('Content-Type', type);
  response.setHeader('Content-Length', body.length);
  // A body that nobody reads is in the way of the next request.
  if (hasBody(request) && !request.readableEnded) response.setHeader('Connection', 'close');
  if (method === 'HEAD') return void response.end();
  exchange.bytes = body.length;
  response.end(body);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The id that a client or proxy has given a request, if it is harmless. */
function requestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && /^[\w.:-]{1,64}$/.test(id) ? id : undefined;
}

/** A path for a log line: without values that were asked for. */
export function shownPath({ path }: Exchange): string {
  return path.length <= maxLoggedPath ? path : `${path.slice(0, maxLoggedPath)}…`;
}
