import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { formatWithHint } from '../core/diagnostic.js';
import { OpmateError, getMessage, redact } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { HostRule, isCrossSite } from '../serve/server/host-rule.js';
import { createHttpServer } from '../serve/server/http-server.js';
import { readBody } from '../serve/server/request-body.js';
import {
  type CatalogOverview,
  type SelectionBytes,
  type SelectionImages,
  type SelectionSummary,
  type WrittenFile,
  type ErrorResponse,
  type ViewState,
  runHeader,
  tokenHeader,
} from './answers.js';
import type { CatalogView } from './catalog-view.js';
import type { CurrentView } from './current-view.js';
import { readPageFiles } from './page-files.js';

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

/** Bytes of a selection. */
const maxSelectionBytes = 1024 * 1024;

/** Plans selections of a catalog and writes them to a file, for a page that is opened with a token. */
export interface EditActions {
  token: string;
  /** File that is written, as the user named it. */
  file: string;
  /** Image that may be the catalog's; empty for a catalog that is not an image. */
  catalog: string;
  /** Each takes the JSON of a request, and throws OpmateError. */
  plan(view: CatalogView, request: unknown): Promise<SelectionSummary>;
  listImages(view: CatalogView, request: unknown): Promise<SelectionImages>;
  measure(view: CatalogView, request: unknown): Promise<SelectionBytes>;
  write(view: CatalogView, request: unknown): Promise<WrittenFile>;
}

interface ViewServerOptions {
  /** What answers; while it is being read, requests wait for it. */
  view: CurrentView;
  /** The name or address to which the server will listen: what a request may call it, in addition to addresses. */
  host: string;
  logger?: Logger | undefined;
  /** Lets the page select and write. */
  edit?: EditActions | undefined;
}

/**
 * Makes the server of the page; the caller listens. It answers GET and HEAD only, and only under an address,
 * `localhost` or `host`, so that no web page can reach it under a name of its own (DNS rebinding). With `edit` it also
 * answers POST requests of its own page that have the token. Throws OpmateError IO where the page's files are not there.
 */
export async function createViewServer(options: ViewServerOptions): Promise<Server> {
  const { view, host, logger = silentLogger, edit } = options;
  const requests = new ViewRequests(await readPage(), view, logger, edit);
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

async function readPage(): Promise<Map<string, PageFile>> {
  const contents = await readPageFiles([...pageFiles.values()].map(({ file }) => file));
  return new Map(
    [...pageFiles].map(([path, { file, type }]) => {
      const content = contents.get(file) ?? Buffer.alloc(0);
      const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
      return [path, { type, content, etag }];
    }),
  );
}

/** What a request is answered with. */
interface Reply {
  status: number;
  type: string;
  content: Buffer;
  headers?: Record<string, string>;
}

class ViewRequests {
  readonly #page: ReadonlyMap<string, PageFile>;
  readonly #view: CurrentView;
  readonly #logger: Logger;
  readonly #edit: EditActions | undefined;

  constructor(
    page: ReadonlyMap<string, PageFile>,
    view: CurrentView,
    logger: Logger,
    edit: EditActions | undefined,
  ) {
    this.#edit = edit;
    this.#page = page;
    this.#view = view;
    this.#logger = logger;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    let reply: Reply;
    try {
      reply = await this.#answer(request, method, url);
    } catch (error) {
      reply = this.#refuse(error, method, url);
    }
    send(response, reply, method);
  }

  /** What only the page itself may ask: with its token, from its own origin, as JSON. */
  async #answerEdit(request: IncomingMessage, url: string, edit: EditActions): Promise<Reply> {
    const { headers } = request;
    const token = headers[tokenHeader.toLowerCase()];
    if (isCrossSite(request) || typeof token !== 'string' || !isSameSecret(token, edit.token)) {
      return json({ error: 'not allowed', hint: 'open the URL that opmate view --edit printed' }, 403);
    }
    if (headers['content-type']?.split(';')[0]?.trim() !== 'application/json') {
      return json({ error: 'expected application/json' }, 415);
    }
    const body = await readBody(
      request,
      maxSelectionBytes,
      () => new OpmateError('USAGE', 'the request is too large, or broke off'),
    );
    const value = parseSelection(body);
    return this.#view.use(false, async (view) => {
      switch (url) {
        case '/api/edit/plan':
          return json(await edit.plan(view, value));
        case '/api/edit/images':
          return json(await edit.listImages(view, value));
        case '/api/edit/bytes':
          return json(await edit.measure(view, value));
        case '/api/edit/write':
          return json(await edit.write(view, value));
      }
      return json({ error: 'nothing is served under this path' }, 404);
    });
  }

  #refuse(error: unknown, method: string, url: string): Reply {
    const known = error instanceof OpmateError ? error : undefined;
    const { diagnostics = [] } = known ?? {};
    // The page shows each problem on a line of its own.
    const message = diagnostics.length > 1 ? diagnostics.map(formatWithHint).join('\n') : getMessage(error);
    const text = redact(message);
    const status = getStatus(known);
    if (status === 500) this.#logger.log('error', `${method} ${url.slice(0, 300)}: ${text}`);
    const reply: ErrorResponse = { error: text, ...(known?.hint !== undefined && { hint: known.hint }) };
    return json(reply, status);
  }

  async #answer(request: IncomingMessage, method: string, url: string): Promise<Reply> {
    if (method === 'POST' && this.#edit !== undefined && url.startsWith('/api/edit/')) {
      return this.#answerEdit(request, url, this.#edit);
    }
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
      const state: ViewState = { run, readAt, isChecking: view.isChecking };
      const etag = `"${run}${state.isChecking ? '-checking' : ''}"`;
      const isKnown = request.headers['if-none-match'] === etag;
      const reply = isKnown
        ? { ...json({}), status: 304 }
        : await answerAbout(view, state, path, query, this.#edit);
      const known = reply.status < 400 ? { ETag: etag, [runHeader]: run } : { [runHeader]: run };
      return { ...reply, headers: { ...reply.headers, ...known } };
    });
  }
}

/** Compares texts in a time that does not depend on where they differ. */
function isSameSecret(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(first as Buffer, second as Buffer);
}

async function answerAbout(
  view: CatalogView,
  state: ViewState,
  path: string,
  query: URLSearchParams,
  edit: EditActions | undefined,
): Promise<Reply> {
  const of = (name: string): string => parameter(query, name);
  const all = (name: string): string[] => [of(name), ...query.getAll(name).slice(1)];
  switch (path) {
    case '/api/state':
      return json(state);
    case '/api/catalog': {
      const catalog: CatalogOverview = {
        ...view.overview(),
        ...state,
        ...(edit !== undefined && { edit: { file: edit.file, catalog: edit.catalog } }),
      };
      return json(catalog);
    }
    case '/api/search':
      return json(view.search(of('q')));
    case '/api/package':
      return json(await view.package(of('package')));
    case '/api/channel':
      return json(await view.graph(of('package')).channel(all('channel'), of('compare') === 'yes'));
    case '/api/path':
      return json(view.graph(of('package')).path(all('channel'), of('from'), of('to')));
    case '/api/index':
      return json(view.searchIndex());
    case '/api/bundle':
      return json(await view.bundle(of('package'), of('bundle')));
    case '/api/problems':
      return json(
        await view.problems({
          from: getPosition(of('from')),
          ...{ package: of('package'), severity: of('severity'), check: of('check') },
        }),
      );
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
  { status, type, content, headers = {} }: Reply,
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

function json(value: object, status = 200): Reply {
  return { status, type: 'application/json; charset=utf-8', content: Buffer.from(JSON.stringify(value)) };
}

function parameter(query: URLSearchParams, name: string): string {
  const value = query.get(name) ?? '';
  if (value.length <= maxParameter) return value;
  throw new OpmateError('USAGE', `${name}: longer than ${maxParameter} characters`);
}

/** A selection that cannot be made is no failure of the server. */
function getStatus(error: OpmateError | undefined): number {
  switch (error?.code) {
    case 'NOT_FOUND':
      return 404;
    case 'USAGE':
      return 400;
    case 'INVALID':
    case 'UNSUPPORTED':
      return 422;
    default:
      return 500;
  }
}

function parseSelection(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new OpmateError('USAGE', 'the request is not JSON');
  }
}

function getPosition(text: string): number {
  if (/^\d{0,9}$/.test(text)) return Number(text);
  throw new OpmateError('USAGE', 'from: not a position');
}
