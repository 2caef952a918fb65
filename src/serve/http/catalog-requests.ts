import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { computeDigest } from '../../core/digest.js';
import { OpmateError, getMessage, redact } from '../../core/errors.js';
import type { JsonValue } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import type { CatalogSet, ServedCatalog } from '../catalogs/stored-content.js';
import type { MetasQuery, Section } from '../catalogs/content-index.js';
import { catalogNameFault } from './catalog-names.js';
import { CompressedReplies, maxKeptReplyBytes } from './compressed-replies.js';
import { type Representation, evaluateConditions, selectRange } from './conditions.js';
import { BufferPool, readCompressed, readSections, getTotal } from './content-stream.js';
import {
  type Coding,
  availableCodings,
  compressPieces,
  createCompressor,
  createSender,
  minCompressedBytes,
  negotiateCoding,
} from './encoding.js';
import type { CatalogQuery, QueryLimits } from '../graphql/catalog-query.js';
import type { RequestRefusal } from '../server/http-server.js';
import { readPostedQuery, readQueryParameters } from './graphql-request.js';
import { RequestMetrics, metricsType } from './metrics.js';
import { Refusal } from '../server/refusal.js';
import { wrapBlobs } from './wrapped-blobs.js';

/** Bodies up to this size are read in one piece and sent in one. */
const smallBytes = 64 * 1024;
/** Compressed forms of catalogs from this size on are kept in files, smaller ones and those of queries in memory. */
const minFileBytes = 256 * 1024;
/** Responses that are compressed at once, at a quarter of a megabyte each; those beyond it are sent as they are. */
const maxCompressors = 200;
/** Characters of a path that a log line has. */
const maxLoggedPath = 300;

/** GraphQL queries at once, those included whose results are being sent. */
const maxQueries = 200;
/** Bytes of results that clients have not taken yet; beyond it queries have to wait. */
const maxUnsentBytes = 256 * 1024 * 1024;
/** Part of the tags of results; changes with how values are written. */
const resultVersion = 'graphql 1';

const contentType = 'application/jsonl';
const jsonType = 'application/json';

interface CatalogRequestsOptions {
  catalogs: CatalogSet;
  logger: Logger;
  /** Without a final slash. */
  externalUrl: string | undefined;
  secure: boolean;
  /** `/metrics` is answered elsewhere. */
  hasOwnMetrics: boolean;
  /** Status of every catalog, those without content included; `root` is what URLs begin with. */
  statuses?: ((root: string) => JsonValue[]) | undefined;
  queryLimits?: Partial<QueryLimits> | undefined;
}

interface SentPieces {
  key: readonly string[];
  /** Bytes of all pieces, or about so many. */
  size: number;
  coding: Coding | undefined;
  readPieces: () => AsyncGenerator<Buffer, void, undefined>;
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  method: string;
  path: string;
  query: URLSearchParams;
  id: string;
  /** Bytes of the body that were sent. */
  bytes: number;
}

const retryLater = { 'Retry-After': '1' };

const routeNotFound = () => new Refusal(404, '404 page not found');
const catalogNotFound = () => new Refusal(404, '404 Not Found');
const badRequest = () => new Refusal(400, '400 Bad Request');

/** Answers the requests of the HTTP catalog API. */
export class CatalogRequests {
  readonly #catalogs: CatalogSet;
  readonly #logger: Logger;
  readonly #externalUrl: string | undefined;
  readonly #secure: boolean;
  readonly #hasOwnMetrics: boolean;
  readonly #statuses: CatalogRequestsOptions['statuses'];
  readonly #queryLimits: Partial<QueryLimits>;
  readonly #metrics = new RequestMetrics();
  readonly #pool = new BufferPool();
  readonly #replies = new CompressedReplies();
  /** What this process puts before the numbers of its requests. */
  readonly #idPrefix = randomBytes(4).toString('hex');
  #requests = 0;
  #queries = 0;
  #unsentBytes = 0;
  #compressors = 0;

  constructor(options: CatalogRequestsOptions) {
    const { catalogs, logger, externalUrl, secure, hasOwnMetrics, statuses, queryLimits = {} } = options;
    this.#catalogs = catalogs;
    this.#logger = logger;
    this.#externalUrl = externalUrl;
    this.#secure = secure;
    this.#hasOwnMetrics = hasOwnMetrics;
    this.#statuses = statuses;
    this.#queryLimits = queryLimits;
  }

  /** What has been counted, as Prometheus text. */
  metricsText(): string {
    return this.#metrics.format(this.#catalogs);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    this.#metrics.begin();
    const { method = 'GET' } = request;
    // A proxy may ask for the whole URL.
    const url = (request.url ?? '/').replace(/^https?:\/\/[^/?]*/i, '');
    const mark = url.indexOf('?');
    const exchange: Exchange = {
      request,
      response,
      method,
      path: mark < 0 ? url : url.slice(0, mark),
      query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
      id: requestId(request) ?? `${this.#idPrefix}-${++this.#requests}`,
      bytes: 0,
    };
    response.setHeader('X-Request-Id', exchange.id);
    response.once('close', () => {
      const seconds = (performance.now() - started) / 1000;
      this.#metrics.end(response.statusCode, seconds, exchange.bytes);
      // Not being ready yet is an answer like others, and asked for every second.
      const isFault = response.statusCode >= 500 && response.statusCode !== 503;
      this.#log(exchange, isFault ? 'error' : 'debug', seconds);
    });
    await this.#answer(exchange).catch((error: unknown) => {
      if (!response.destroyed) {
        this.#logger.log('error', `${method} ${shownPath(exchange)}: ${redact(getMessage(error))}`, {
          request: exchange.id,
        });
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
    this.#logger.log(level, `${method} ${shownPath(exchange)}`, {
      request: id,
      status: response.statusCode,
      bytes,
      ms: Math.round(seconds * 10_000) / 10,
      ...(response.writableFinished ? {} : { aborted: true }),
    });
  }

  async #answer(exchange: Exchange): Promise<void> {
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
          return await this.#sendAll(exchange, checkedName(name));
        case 'api/v1/metas':
          allowReading(exchange);
          return await this.#sendMetas(exchange, checkedName(name));
        case 'api/v1/graphql':
          if (exchange.method !== 'POST') allowReading(exchange);
          return await this.#sendQuery(exchange, checkedName(name));
      }
    }
    if (first === 'api' && tail === 'v1/catalogs' && this.#statuses !== undefined) {
      allowReading(exchange);
      const root = this.#externalUrl ?? socketUrl(exchange.request, this.#secure);
      const body = Buffer.from(`${JSON.stringify({ items: this.#statuses(root) }, null, 2)}\n`);
      return sendBuffer(exchange, 200, jsonType, body);
    }
    if (first === 'api' && tail === 'v1/metas') {
      allowReading(exchange);
      return await this.#sendFromAll(exchange);
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
        if (this.#hasOwnMetrics) break;
        allowReading(exchange);
        return sendBuffer(exchange, 200, metricsType, Buffer.from(this.metricsText()));
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
    await this.#sendContent(exchange, served, sections, getTags(served.content.hash));
  }

  async #sendMetas(exchange: Exchange, name: string): Promise<void> {
    const query = metasQuery(exchange.query, []);
    const served = this.#find(name);
    const wanted = [query.schema, query.package, query.name];
    const tags = getTags(served.content.hash, wanted);
    await this.#sendContent(exchange, served, served.content.find(query), tags, wanted);
  }

  async #sendQuery(exchange: Exchange, name: string): Promise<void> {
    if (this.#queries >= maxQueries || this.#unsentBytes > maxUnsentBytes) throw tooManyQueries();
    this.#queries++;
    try {
      if (exchange.method === 'POST') {
        return await this.#sendResult(exchange, name, await readPostedQuery(exchange.request));
      }
      checkParameters(exchange.query, ['query', 'variables', 'operationName']);
      const wanted = readQueryParameters(exchange.query);
      const texts = [
        resultVersion,
        wanted.query,
        JSON.stringify(wanted.variables),
        wanted.operationName ?? '',
      ];
      const { content, changedAt } = this.#find(name);
      const tags = getTags(content.hash, texts);
      const lastModified = changedAt ?? content.storedAt;
      const coding = this.#codingFor(exchange, Infinity);
      if (isSettled(exchange, { ...getRepresentation(tags, coding), lastModified })) return;
      await this.#sendResult(exchange, name, wanted, { tags, lastModified });
    } finally {
      this.#queries--;
    }
  }

  async #sendResult(
    exchange: Exchange,
    name: string,
    wanted: CatalogQuery,
    validators?: { tags: Tags; lastModified: Date },
  ): Promise<void> {
    const { response, method } = exchange;
    const { defaultQueryLimits, queryCatalog } = await import('../graphql/catalog-query.js');
    const { content } = this.#find(name);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const limits = { ...defaultQueryLimits, ...this.#queryLimits };
    const { body, isStable } = await queryCatalog(content, wanted, limits, gone.signal).catch(
      throwQueryError,
    );
    const size = body.reduce((sum, { length }) => sum + length, 0);
    const coding = this.#codingFor(exchange, size);
    response.setHeader('Vary', 'Accept-Encoding');
    response.setHeader('Content-Type', jsonType);
    if (validators !== undefined && isStable) {
      const { tags, lastModified } = validators;
      response.setHeader('Last-Modified', lastModified.toUTCString());
      response.setHeader('ETag', coding === undefined ? tags.identity : tags.coded(coding));
    }
    if (coding === undefined) response.setHeader('Content-Length', size);
    else response.setHeader('Content-Encoding', coding);
    if (method === 'HEAD') return void response.end();
    this.#unsentBytes += size;
    try {
      await this.#stream(exchange, iteratePieces(body), coding);
    } finally {
      this.#unsentBytes -= size;
    }
  }

  async #sendContent(
    exchange: Exchange,
    served: ServedCatalog,
    sections: readonly Section[],
    tags: Tags,
    query?: readonly string[],
  ): Promise<void> {
    const { request, response, method } = exchange;
    const { content } = served;
    const hasRanges = query === undefined;
    const lastModified = served.changedAt ?? content.storedAt;
    const size = getTotal(sections);
    response.setHeader('Vary', 'Accept-Encoding');
    response.setHeader('Last-Modified', lastModified.toUTCString());
    const range = hasRanges
      ? selectRange(request.headers, size, { etag: tags.identity, otherEtags: [], lastModified })
      : undefined;
    const coding = range === undefined ? this.#codingFor(exchange, size) : undefined;
    if (isSettled(exchange, { ...getRepresentation(tags, coding), lastModified })) return;
    if (range === 'unsatisfiable') {
      response.removeHeader('Last-Modified');
      response.setHeader('Content-Range', `bytes */${size}`);
      return sendText(exchange, 416, '416 Requested Range Not Satisfiable');
    }
    response.setHeader('Content-Type', contentType);
    response.setHeader('ETag', coding === undefined ? tags.identity : tags.coded(coding));
    if (hasRanges && coding === undefined) response.setHeader('Accept-Ranges', 'bytes');
    let sent = sections;
    let length = size;
    if (range !== undefined) {
      length = range.end - range.start + 1;
      sent = [{ offset: range.start, length }];
      response.statusCode = 206;
      response.setHeader('Content-Range', `bytes ${range.start}-${range.end}/${size}`);
    }
    if (coding === undefined) response.setHeader('Content-Length', length);
    else response.setHeader('Content-Encoding', coding);
    if (method === 'HEAD' || length === 0) return void response.end();
    const reader = content.openReader();
    try {
      if (coding === undefined && length <= smallBytes) {
        const body = Buffer.allocUnsafe(length);
        let filled = 0;
        for (const section of sent) {
          await reader.read(body.subarray(filled, filled + section.length), section.offset);
          filled += section.length;
        }
        exchange.bytes = length;
        return void response.end(body);
      }
      const isInFile = coding !== undefined && hasRanges && size >= minFileBytes;
      if (!isInFile) {
        return await this.#sendPieces(exchange, {
          key: [content.hash, ...(query ?? [])],
          size: length,
          coding,
          readPieces: () => readSections(reader, sent, this.#pool),
        });
      }
      const form = await content.compressed(coding, () => createCompressor(coding));
      if (form === undefined) {
        return await this.#stream(exchange, readSections(reader, sent, this.#pool), coding);
      }
      if (form.size !== undefined) response.setHeader('Content-Length', form.size);
      await this.#stream(exchange, readCompressed(form, this.#pool), undefined);
    } finally {
      reader.close();
    }
  }

  #codingFor({ method, request }: Exchange, size: number): Coding | undefined {
    if (method === 'HEAD' || size < minCompressedBytes || this.#compressors >= maxCompressors)
      return undefined;
    const header = request.headers['accept-encoding'];
    return negotiateCoding(Array.isArray(header) ? header.join(',') : header);
  }

  /** Sends what `readPieces` reads, which is the same for the same key: compressed where a coding is given, and kept so. */
  async #sendPieces(exchange: Exchange, { key, size, coding, readPieces }: SentPieces): Promise<void> {
    const { response } = exchange;
    const kept =
      coding === undefined || size > maxKeptReplyBytes
        ? undefined
        : await this.#replies.lease(JSON.stringify([...key, coding]), coding, readPieces);
    if (kept === undefined) return await this.#stream(exchange, readPieces(), coding);
    if (response.destroyed) return kept.release();
    response.once('close', () => kept.release());
    response.setHeader('Content-Length', kept.body.length);
    exchange.bytes = kept.body.length;
    response.end(kept.body);
  }

  /** Sends pieces, compressed where a coding is given. A piece is done with before the next one is asked for. */
  async #stream(
    exchange: Exchange,
    pieces: AsyncGenerator<Buffer, void, undefined>,
    coding: Coding | undefined,
  ): Promise<void> {
    const { response } = exchange;
    const send = createSender(response);
    const sendAll = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of chunks) {
        if (!(await send(chunk))) return;
        exchange.bytes += chunk.length;
      }
      response.end();
    };
    if (coding === undefined) return await sendAll(pieces);
    this.#compressors++;
    try {
      await sendAll(compressPieces(pieces, coding));
    } finally {
      this.#compressors--;
    }
  }

  /**
   * What all catalogs have of a query, told apart: each line is an object with the blob as it is in `blob`, its
   * catalog in `catalog`, and `CATALOG/PACKAGE` in `package` where it belongs to one. Catalogs of a higher priority
   * come first, then in the order of their names.
   */
  async #sendFromAll(exchange: Exchange): Promise<void> {
    const { response, method } = exchange;
    const query = metasQuery(exchange.query, ['catalog', 'selector']);
    if (!this.#catalogs.isReady()) {
      throw new Refusal(503, '503 Service Unavailable: catalogs are not loaded yet', retryLater);
    }
    const selected = this.#select(exchange.query, query);
    const key = selected.map(({ name, content, priority }) => [name, content.hash, priority]);
    const digest = computeDigest(JSON.stringify(key));
    const wanted = [
      query.schema,
      query.package,
      query.name,
      exchange.query.get('catalog') ?? '',
      exchange.query.get('selector') ?? '',
    ];
    const tags = getTags(digest, wanted);
    const packageQuery = { ...query, package: withoutCatalog(query.package) };
    let size = 0;
    for (const { content } of selected) size += getTotal(content.find(packageQuery));
    response.setHeader('Vary', 'Accept-Encoding');
    const coding = this.#codingFor(exchange, size);
    if (isSettled(exchange, getRepresentation(tags, coding))) return;
    response.setHeader('Content-Type', contentType);
    response.setHeader('ETag', coding === undefined ? tags.identity : tags.coded(coding));
    if (coding !== undefined) response.setHeader('Content-Encoding', coding);
    if (method === 'HEAD') return void response.end();
    const open = selected.map((served) => ({ served, reader: served.content.openReader() }));
    try {
      const readPieces = () => wrapBlobs(open, packageQuery);
      await this.#sendPieces(exchange, { key: ['of all', digest, ...wanted], size, coding, readPieces });
    } finally {
      for (const { reader } of open) reader.close();
    }
  }

  #select(parameters: URLSearchParams, query: MetasQuery): ServedCatalog[] {
    const wanted = parameters.get('catalog') ?? '';
    const slash = query.package.indexOf('/');
    const qualifier = slash < 0 ? '' : query.package.slice(0, slash);
    const labels = parseSelector(parameters.get('selector') ?? '');
    return this.#catalogs
      .list()
      .filter(({ name }) => (wanted === '' || name === wanted) && (qualifier === '' || name === qualifier))
      .filter((served) =>
        labels.every(([key, value]) => Object.hasOwn(served.labels, key) && served.labels[key] === value),
      )
      .sort((a, b) => b.priority - a.priority || compareBytes(a.name, b.name));
  }

  #sendListing(exchange: Exchange): void {
    const root = this.#externalUrl ?? socketUrl(exchange.request, this.#secure);
    const catalogs = this.#catalogs.list().map(({ name, content, labels, priority, changedAt }) => {
      const base = `${root}/catalogs/${name}`;
      return {
        name,
        priority,
        labels,
        hash: content.hash,
        size: content.size,
        count: content.count,
        packages: content.packages.length,
        changedAt: (changedAt ?? content.storedAt).toISOString(),
        urls: { base, all: `${base}/api/v1/all`, metas: `${base}/api/v1/metas` },
      };
    });
    sendBuffer(exchange, 200, jsonType, Buffer.from(`${JSON.stringify({ catalogs }, null, 2)}\n`));
  }
}

/** Answers a request that is refused before it is looked at. */
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

function withoutCatalog(text: string): string {
  return text.slice(text.indexOf('/') + 1);
}

/** `key=value,key=value`. */
function parseSelector(text: string): [string, string][] {
  if (text === '') return [];
  return text.split(',').map((part) => {
    const equals = part.indexOf('=');
    if (equals <= 0) throw new Refusal(400, '400 Bad Request: selector: expected KEY=VALUE,KEY=VALUE');
    return [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
  });
}

interface Tags {
  identity: string;
  coded(coding: Coding): string;
}

/** Strong tags: the hash of the content, what was asked of it, and the coding. */
function getTags(hash: string, query?: readonly string[]): Tags {
  const wanted = query === undefined || query.every((text) => text === '') ? '' : `-${shortDigest(query)}`;
  const tag = `sha256-${hash.slice(hash.indexOf(':') + 1)}${wanted}`;
  return { identity: `"${tag}"`, coded: (coding) => `"${tag}-${coding}"` };
}

function shortDigest(texts: readonly string[]): string {
  const digest = computeDigest(JSON.stringify(texts));
  return digest.slice(digest.indexOf(':') + 1).slice(0, 16);
}

function getRepresentation(tags: Tags, coding: Coding | undefined): Representation {
  const all = [tags.identity, ...availableCodings.map((each) => tags.coded(each))];
  const etag = coding === undefined ? tags.identity : tags.coded(coding);
  return { etag, otherEtags: all.filter((tag) => tag !== etag) };
}

/** Answers 304 or 412 where the conditions of a request ask for it. */
function isSettled({ request, response }: Exchange, representation: Representation): boolean {
  const verdict = evaluateConditions(request.headers, representation);
  if (verdict.kind === 'send') return false;
  if (verdict.kind === 'unchanged') {
    response.statusCode = 304;
    response.setHeader('ETag', verdict.etag);
  } else response.statusCode = 412;
  response.end();
  return true;
}

/** What `metas` is asked for: the first of each key. Throws a 400 for keys that it does not have. */
function metasQuery(parameters: URLSearchParams, others: readonly string[]): MetasQuery {
  checkParameters(parameters, ['schema', 'package', 'name', ...others]);
  return {
    schema: parameters.get('schema') ?? '',
    package: parameters.get('package') ?? '',
    name: parameters.get('name') ?? '',
  };
}

function checkParameters(parameters: URLSearchParams, known: readonly string[]): void {
  for (const key of parameters.keys()) {
    if (known.includes(key)) continue;
    const shown = JSON.stringify(key.length > 80 ? `${key.slice(0, 80)}…` : key);
    throw new Refusal(400, `400 Bad Request: unknown query parameter ${shown}, expected ${known.join(', ')}`);
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

function checkedName(segment: string): string {
  let name: string;
  try {
    name = decodeURIComponent(segment);
  } catch {
    throw badRequest();
  }
  const fault = catalogNameFault(name);
  if (fault !== undefined) throw new Refusal(400, `invalid catalog name: ${fault}`);
  return name;
}

function allowReading({ method }: Exchange): void {
  if (method !== 'GET' && method !== 'HEAD') throw new Refusal(405, 'Method Not Allowed');
}

function sendText(exchange: Exchange, status: number, text: string): void {
  exchange.response.setHeader('X-Content-Type-Options', 'nosniff');
  sendBuffer(exchange, status, 'text/plain; charset=utf-8', Buffer.from(`${text}\n`));
}

function sendBuffer(exchange: Exchange, status: number, type: string, body: Buffer): void {
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
function shownPath({ path }: Exchange): string {
  return path.length <= maxLoggedPath ? path : `${path.slice(0, maxLoggedPath)}…`;
}

function socketUrl({ socket }: IncomingMessage, secure: boolean): string {
  const address = (socket.localAddress ?? '127.0.0.1').replace(/^::ffff:(?=[\d.]+$)/, '');
  const host = address.includes(':') ? `[${address}]` : address;
  return `${secure ? 'https' : 'http'}://${host}:${socket.localPort ?? ''}`;
}
