/** Git over HTTP, as `git http-backend` serves it, with a password if wanted; and repositories for it. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { type IncomingMessage, type RequestListener, type ServerResponse, createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { directoryWith } from './temporary.js';

export interface GitRepository {
  directory: string;
  /** `file://…` */
  url: string;
  git(...args: string[]): string;
  /** Commits files as they are then; returns the commit. */
  commit(files?: Readonly<Record<string, string>>): Promise<string>;
}

/** Makes a repository with one commit of these files, on the branch main. */
export async function gitRepository(files: Record<string, string>): Promise<GitRepository> {
  const directory = path.join(await directoryWith(), 'repo.git');
  await mkdir(directory);
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
      cwd: directory,
      env: { PATH: process.env['PATH'], HOME: directory, GIT_CONFIG_NOSYSTEM: '1' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  git('init', '-q', '-b', 'main');
  const commit = async (more: Readonly<Record<string, string>> = {}): Promise<string> => {
    for (const [name, text] of Object.entries(more)) {
      await mkdir(path.dirname(path.join(directory, name)), { recursive: true });
      await writeFile(path.join(directory, name), text);
    }
    git('add', '-A');
    git('commit', '-qm', 'files', '--allow-empty');
    return git('rev-parse', 'HEAD');
  };
  await commit(files);
  return { directory, url: `file://${directory}`, git, commit };
}

export interface GitServer {
  /** `http://127.0.0.1:PORT` */
  origin: string;
  /** Path and whether an Authorization header came, of each request. */
  requests: { path: string; authorization: string | undefined }[];
  close(): Promise<void>;
}

export interface GitServerOptions {
  /** Directory of the repositories. */
  root: string;
  /** `USER:PASSWORD` */
  credentials?: string;
  tls?: { cert: string; key: string };
  /** Answers in the place of git where it returns true. */
  instead?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

/** Serves the repositories below a directory. */
export async function startGitServer(options: GitServerOptions): Promise<GitServer> {
  const { root, credentials, tls, instead } = options;
  const requests: GitServer['requests'] = [];
  const listener: RequestListener = (request, response) => {
    const url = new URL(request.url ?? '/', 'http://x');
    const { authorization } = request.headers;
    requests.push({ path: url.pathname, authorization });
    if (instead?.(request, response) === true) return;
    const wanted = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`;
    if (wanted !== undefined && authorization !== wanted) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('who are you?');
      return;
    }
    serve(root, url, request, response);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function serve(root: string, url: URL, request: IncomingMessage, response: ServerResponse): void {
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      REQUEST_METHOD: request.method,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    },
  });
  request.pipe(child.stdin).on('error', () => undefined);
  let head = Buffer.alloc(0);
  let isBody = false;
  child.stdout.on('data', (chunk: Buffer) => {
    if (isBody) return void response.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    isBody = true;
    for (const line of head.toString('latin1', 0, end).split('\r\n')) {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(line) ?? [];
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.write(head.subarray(end + 4));
  });
  child.on('close', () => response.end());
}
