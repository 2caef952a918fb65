import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { OpmateError, fileError, messageOf, redact } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { HostRule } from '../serve/server/host-rule.js';
import { createHttpServer } from '../serve/server/http-server.js';
import { type CatalogAnswer, type ErrorAnswer, type StateAnswer, runHeader } from './answers.js';
import type { CatalogView } from './catalog-view.js';
import type { CurrentView } from './current-view.js';

/** A connection on which nothing moves for this long is closed. */
const idleMs = 60_000;
/** Characters of a name or search in a request. */
const maxParameter = 1_000;

/** Nothing may run or load but the page's own files; nobody may frame it. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
/** Icons come from catalogs: also one that is opened directly runs and loads nothing. */
const iconPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/** The files of the page, and what they are. */
const pageFiles = new Map([
  ['/', { file: 'index.html', type: 'text/html; charset=utf-8' }],
  ['/page.js', { file: 'page.js', type: 'text/javascript; charset=utf-8' }],
  ['/page.css', { file: 'page.css', type: 'text/css; charset=utf-8' }],
]);

interface ViewServerOptions {
  /** What answers; while it is being read, requests wait for it. */
  view: CurrentView;
  /** The name or address to which the server will listen: what a request may call it, in addition to addresses. */
  host: string;
  logger?: Logger | undefined;
  /** Where the page's files are; where they are built by default. */
  pageDirectory?: string | undefined;
}

/**
 * Makes the server of the page; the caller listens. It answers GET and HEAD only, and only under an address,
 * `localhost` or `host`, so that no web page can reach it under a name of its own (DNS rebinding). Throws OpmateError
 * IO where the page's files are not there.
 */
export async function createViewServer(options: ViewServerOptions): Promise<Server> {
  const { view, host, logger = silentLogger, pageDirectory } = options;
  const requests = new ViewRequests(await readPage(pageDirectory), view, logger);
  return createHttpServer({
    handle: (request, response) => requests.handle(request, response),
    hosts: new HostRule({ names: [host], everywhere: true }),
    refuse: ({ status, message, hint }, { method }, response) =>
      send(response, json({ error: message, hint }, status), method),
    idleMs,
    keepAliveMs: idleMs,
    logger,
  });
}

interface PageFile {
  type: string;
  content: Buffer;
  etag: string;
}

async function readPage(
  directory: string = fileURLToPath(new URL('./page/', import.meta.url)),
): Promise<Map<string, PageFile>> {
  const files = new Map<string, PageFile>();
  for (const [path, { file, type }] of pageFiles) {
    const name = `${directory.replace(/\/$/, '')}/${file}`;
    const content = await readFile(name).catch((error: unknown) => {
      throw fileError(`read ${name}`, error, { hint: 'install opmate again, or build it: npm run build' });
    });
    const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
    files.set(path, { type, content, etag });
  }
  return files;
}

/** What a request is answered with. */
interface Answer {
  status: number;
  type: string;
  content: Buffer;
  headers?: Record<string, string>;
}

class ViewRequests {
  readonly #page: ReadonlyMap<string, PageFile>;
  readonly #view: CurrentView;
  readonly #logger: Logger;

  constructor(page: ReadonlyMap<string, PageFile>, view: CurrentView, logger: Logger) {
    this.#page = page;
    this.#view = view;
    this.#logger = logger;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    let answer: Answer;
    try {
      answer = await this.#answer(request, method, url);
    } catch (error) {
      answer = this.#refuse(error, method, url);
    }
    send(response, answer, method);
  }

  #refuse(error: unknown, method: string, url: string): Answer {
    const known = error instanceof OpmateError ? error : undefined;
    const text = redact(messageOf(error));
    const status = known?.code === 'NOT_FOUND' ? 404 : known?.code === 'USAGE' ? 400 : 500;
    if (status === 500) this.#logger.log('error', `${method} ${url.slice(0, 300)}: ${text}`);
    const answer: ErrorAnswer = { error: text, ...(known?.hint !== undefined && { hint: known.hint }) };
    return json(answer, status);
  }

  async #answer(request: IncomingMessage, method: string, url: string): Promise<Answer> {
    if (method !== 'GET' && method !== 'HEAD') {
      return { ...json({ error: 'only GET and HEAD' }, 405), headers: { Allow: 'GET, HEAD' } };
    }
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const file = this.#page.get(path);
    if (file !== undefined) {
      const isKnown = request.headers['if-none-match'] === file.etag;
      return { status: isKnown ? 304 : 200, ...file, headers: { ETag: file.etag } };
    }
    const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
    const isReload = path === '/api/catalog' || path === '/api/state';
    return this.#view.use(isReload, async (view, { run, readAt }) => {
      const state: StateAnswer = { run, readAt, isChecking: view.isChecking };
      const etag = `"${run}${state.isChecking ? '-checking' : ''}"`;
      const isKnown = request.headers['if-none-match'] === etag;
      const answer = isKnown ? { ...json({}), status: 304 } : await answerAbout(view, state, path, query);
      const known = answer.status < 400 ? { ETag: etag, [runHeader]: run } : { [runHeader]: run };
      return { ...answer, headers: { ...answer.headers, ...known } };
    });
  }
}

async function answerAbout(
  view: CatalogView,
  state: StateAnswer,
  path: string,
  query: URLSearchParams,
): Promise<Answer> {
  const of = (name: string): string => parameter(query, name);
  const all = (name: string): string[] => [of(name), ...query.getAll(name).slice(1)];
  switch (path) {
    case '/api/state':
      return json(state);
    case '/api/catalog': {
      const catalog: CatalogAnswer = { ...view.overview(), ...state };
      return json(catalog);
    }
    case '/api/search':
      return json(view.search(of('q')));
    case '/api/package':
      return json(await view.package(of('package')));
    case '/api/channel':
      return json(await view.channel(of('package'), all('channel'), of('compare') === 'yes'));
    case '/api/path':
      return json(view.path(of('package'), all('channel'), of('from'), of('to')));
    case '/api/index':
      return json(view.searchIndex());
    case '/graph.svg': {
      const parts: string[] = [];
      for await (const part of view.channelSvg(of('package'), of('channel'))) parts.push(part);
      const headers = { 'Content-Security-Policy': iconPolicy };
      return { status: 200, type: 'image/svg+xml', content: Buffer.from(parts.join('')), headers };
    }
    case '/api/bundle':
      return json(await view.bundle(of('package'), of('bundle')));
    case '/api/problems':
      return json(await view.problems(positionOf(of('from')), of('package'), of('severity'), of('check')));
    case '/api/compare':
      return json(view.compare());
    case '/api/compare/package':
      return json(view.comparePackage(of('package')));
    case '/icon': {
      const { mediaType, content } = await view.icon(of('package'));
      const isOfThisView = query.get('run') === state.run;
      const headers = {
        'Content-Security-Policy': iconPolicy,
        'Cache-Control': isOfThisView ? 'private, max-age=86400, immutable' : 'no-cache',
      };
      return { status: 200, type: mediaType, content, headers };
    }
  }
  return json({ error: 'nothing is served under this path' }, 404);
}

function send(
  response: ServerResponse,
  { status, type, content, headers = {} }: Answer,
  method: string | undefined,
): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': content.length,
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': pagePolicy,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    ...headers,
  });
  response.end(method === 'HEAD' || status === 304 ? undefined : content);
}

function json(value: object, status = 200): Answer {
  return { status, type: 'application/json; charset=utf-8', content: Buffer.from(JSON.stringify(value)) };
}

function parameter(query: URLSearchParams, name: string): string {
  const value = query.get(name) ?? '';
  if (value.length <= maxParameter) return value;
  throw new OpmateError('USAGE', `${name}: longer than ${maxParameter} characters`);
}

function positionOf(text: string): number {
  if (/^\d{0,9}$/.test(text)) return Number(text);
  throw new OpmateError('USAGE', 'from: not a position');
}
