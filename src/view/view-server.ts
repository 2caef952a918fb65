import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { formatWithHint } from '../core/diagnostic.js';
import { OpmateError, getMessage, redactUrls } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { createHostRule, isCrossSite } from '../serve/server/host-rule.js';
import { createHttpServer } from '../serve/server/http-server.js';
import { readBody } from '../serve/server/request-body.js';
import { splitUrl } from '../serve/server/request-url.js';
import {
  type CatalogOverview,
  type ClusterOverview,
  type ErrorResponse,
  type MirrorOverview,
  type ViewState,
  runHeader,
  tokenHeader,
} from './responses.js';
import type { CatalogView } from './catalog-view.js';
import type { CurrentView } from './current-view.js';
import { readPageFiles } from './page-files.js';

/** Timeout of idle connections. */
const idleMs = 60_000;
/** Maximum characters of a request parameter. */
const maxParameter = 1_000;

/** Content Security Policy: only files of the page, no frames. */
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
/** Content Security Policy of icons, which come from catalogs: no scripts, no requests. */
const iconPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

const pageFiles = [
  { path: '/', file: 'index.html', type: 'text/html; charset=utf-8' },
  { path: '/page.js', file: 'page.js', type: 'text/javascript; charset=utf-8' },
  { path: '/page.css', file: 'page.css', type: 'text/css; charset=utf-8' },
];

/** Maximum bytes of a selection. */
const maxSelectionBytes = 1024 * 1024;

/** Actions of a page that is opened with a token: plan selections of a catalog and write them to a file. */
export interface EditActions {
  token: string;
  /** Destination, as the user wrote it. */
  file: string;
  /** Image of the catalog; empty for a catalog that is not an image. */
  catalog: string;
  /** By the last part of the path; they take the parsed body of a request, and throw OpmateError. */
  actions: Record<string, (view: CatalogView, request: unknown) => Promise<object>>;
}

interface ViewServerOptions {
  /** Undefined for a page without a catalog. */
  view: CurrentView | undefined;
  /** Name or address to listen on; requests may use it as Host, in addition to addresses and `localhost`. */
  host: string;
  logger?: Logger | undefined;
  /** Enables selections. */
  edit?: EditActions | undefined;
  /** Cluster that the page shows too. */
  cluster?: ClusterOverview | undefined;
  /** Reads the mirror that the page shows. Throws OpmateError. */
  readMirror?: (() => Promise<MirrorOverview>) | undefined;
  /** Rewords errors, which name options and verbs of the library (default: as they are). */
  reword?: ((text: string) => string) | undefined;
}

/**
 * Creates the server of the page; the caller listens. Accepts GET and HEAD, only for addresses, `localhost` or `host`
 * (DNS rebinding); with `edit`, also POST requests from its own page with the token. Throws OpmateError IO if the files
 * of the page are missing.
 */
export async function createViewServer(options: ViewServerOptions): Promise<Server> {
  const { view, host, logger = silentLogger, edit, cluster, readMirror } = options;
  const { reword = (text) => text } = options;
  const page = await readPage();
  const route = async (request: IncomingMessage, method: string, url: string): Promise<Reply> => {
    if (method === 'POST' && edit !== undefined && view !== undefined && url.startsWith('/api/edit/')) {
      return routeEdit(request, url, edit, view);
    }
    if (method !== 'GET' && method !== 'HEAD') {
      return { ...json({ error: 'method not allowed' }, 405), headers: { Allow: 'GET, HEAD' } };
    }
    const { path, query } = splitUrl(url);
    const file = page.get(path);
    if (file !== undefined) {
      const isKnown = request.headers['if-none-match'] === file.headers.ETag;
      return isKnown ? { ...file, status: 304 } : file;
    }
    if (path === '/api/cluster' && cluster !== undefined) return json(cluster);
    if (path === '/api/mirror' && readMirror !== undefined) return json(await readMirror());
    if (view === undefined) return json({ error: 'path not found' }, 404);
    const isReload = path === '/api/catalog' || path === '/api/state';
    return view.use(isReload, async (catalogView, { run, readAt }) => {
      const state: ViewState = { run, readAt, isChecking: catalogView.isChecking() };
      const etag = `"${run}${state.isChecking ? '-checking' : ''}"`;
      const isKnown = request.headers['if-none-match'] === etag;
      const reply = isKnown
        ? { ...json({}), status: 304 }
        : await routeView(catalogView, state, path, query, { edit, cluster });
      const known = reply.status < 400 ? { ETag: etag, [runHeader]: run } : { [runHeader]: run };
      return { ...reply, headers: { ...reply.headers, ...known } };
    });
  };
  return createHttpServer({
    async handle(request, response) {
      const { method = 'GET', url = '/' } = request;
      const reply = await route(request, method, url).catch((error: unknown) => {
        const errorReply = toErrorReply(error, reword);
        if (errorReply.status === 500) {
          logger.log('error', `${method} ${url.slice(0, 300)}: ${redactUrls(getMessage(error))}`);
        }
        return errorReply;
      });
      send(response, reply, method);
    },
    allowsHost: createHostRule({ names: [host], everywhere: true }),
    refuse: ({ status, message, hint }, { method }, response) =>
      send(response, json({ error: message, hint }, status), method),
    idleMs,
    logger,
  });
}

interface Reply {
  status: number;
  type: string;
  content: Buffer;
  headers?: Record<string, string>;
}

/** Reads the replies for the files of the page, by path. */
async function readPage(): Promise<Map<string, Reply & { headers: { ETag: string } }>> {
  const contents = readPageFiles(pageFiles.map(({ file }) => file));
  return new Map(
    pageFiles.map(({ path, file, type }) => {
      const content = contents.get(file) ?? Buffer.alloc(0);
      const ETag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
      return [path, { status: 200, type, content, headers: { ETag } }];
    }),
  );
}

/** Requires the token, the origin of the page, and JSON. */
async function routeEdit(
  request: IncomingMessage,
  url: string,
  edit: EditActions,
  view: CurrentView,
): Promise<Reply> {
  const { headers } = request;
  const token = headers[tokenHeader.toLowerCase()];
  if (isCrossSite(request) || typeof token !== 'string' || !isSameSecret(token, edit.token)) {
    return json({ error: 'not allowed', hint: 'open the URL with the key of the page' }, 403);
  }
  if (headers['content-type']?.split(';')[0]?.trim() !== 'application/json') {
    return json({ error: 'unsupported content type', hint: 'use application/json' }, 415);
  }
  const body = await readBody(
    request,
    maxSelectionBytes,
    () => new OpmateError('USAGE', `request body: truncated or larger than ${maxSelectionBytes} bytes`),
  );
  const value = parseJson(body);
  const name = url.slice('/api/edit/'.length);
  return view.use(false, async (catalogView) => {
    const act = Object.hasOwn(edit.actions, name) ? edit.actions[name] : undefined;
    return act === undefined ? json({ error: 'path not found' }, 404) : json(await act(catalogView, value));
  });
}

/** Compares texts in constant time. */
function isSameSecret(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(first as Buffer, second as Buffer);
}

async function routeView(
  view: CatalogView,
  state: ViewState,
  path: string,
  query: URLSearchParams,
  { edit, cluster }: Pick<ViewServerOptions, 'edit' | 'cluster'>,
): Promise<Reply> {
  const get = (name: string): string => getParameter(query, name);
  const channels = (): string[] => [get('channel'), ...query.getAll('channel').slice(1)];
  switch (path) {
    case '/api/state':
      return json(state);
    case '/api/catalog': {
      const catalog: CatalogOverview = {
        ...view.overview(),
        ...state,
        ...(cluster !== undefined && { hasCluster: true }),
        ...(edit !== undefined && { edit: { file: edit.file, catalog: edit.catalog } }),
      };
      return json(catalog);
    }
    case '/api/search':
      return json(view.search(get('q')));
    case '/api/package':
      return json(await view.package(get('package')));
    case '/api/channel':
      return json(await view.graph(get('package')).channel(channels(), get('compare') === 'yes'));
    case '/api/path':
      return json(view.graph(get('package')).path(channels(), get('from'), get('to')));
    case '/api/index':
      return json(view.searchIndex());
    case '/api/bundle':
      return json(await view.bundle(get('package'), get('bundle')));
    case '/api/problems':
      return json(
        await view.problems({
          from: parseIndex(get('from')),
          package: get('package'),
          severity: get('severity'),
          check: get('check'),
        }),
      );
    case '/api/compare':
      return json(view.compare());
    case '/api/compare/package':
      return json(view.comparePackage(get('package')));
    case '/icon': {
      const { mediaType, content } = await view.icon(get('package'));
      const isCurrent = query.get('run') === state.run;
      const headers = {
        'Content-Security-Policy': iconPolicy,
        'Cache-Control': isCurrent ? 'private, max-age=86400, immutable' : 'no-cache',
      };
      return { status: 200, type: mediaType, content, headers };
    }
  }
  return json({ error: 'path not found' }, 404);
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

function getParameter(query: URLSearchParams, name: string): string {
  const value = query.get(name) ?? '';
  if (value.length <= maxParameter) return value;
  throw new OpmateError('USAGE', `${name}: longer than ${maxParameter} characters`);
}

function toErrorReply(error: unknown, reword: (text: string) => string): Reply {
  const known = error instanceof OpmateError ? error : undefined;
  const { diagnostics = [] } = known ?? {};
  // The page shows one problem per line.
  const message = diagnostics.length > 1 ? diagnostics.map(formatWithHint).join('\n') : getMessage(error);
  const body: ErrorResponse = {
    error: reword(redactUrls(message)),
    ...(known?.hint !== undefined && { hint: reword(known.hint) }),
  };
  return json(body, statuses[known?.code ?? 'INTERNAL'] ?? 500);
}

const statuses: Partial<Record<OpmateError['code'], number>> = {
  NOT_FOUND: 404,
  USAGE: 400,
  INVALID: 422,
  UNSUPPORTED: 422,
};

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new OpmateError('USAGE', 'request body: invalid JSON');
  }
}

function parseIndex(text: string): number {
  if (/^\d{0,9}$/.test(text)) return Number(text);
  throw new OpmateError('USAGE', 'from: expected a non-negative integer');
}
