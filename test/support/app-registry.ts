/** An app registry (CNR) over real HTTP, that serves what it is given and can be made to misbehave. */
import { createHash } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { rawTar } from './tar.js';

export interface ServedRequest {
  /** Path and query. */
  url: string;
  authorization: string | undefined;
}

/** Answers in the place of the registry; false leaves the answer to it. */
export type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface AppRegistry {
  /** `http://127.0.0.1:PORT/cnr` */
  endpoint: string;
  origin: string;
  requests: ServedRequest[];
  /** Releases of a package of a namespace, each an archive; the default one is the last. */
  serve(namespace: string, name: string, releases: Record<string, Buffer>): void;
  /** Requests without this `Authorization` are refused. */
  token: string | undefined;
  misbehave: Misbehaviour | undefined;
  close(): Promise<void>;
}

/** A package as app registries keep it: a compressed archive. */
export function packageArchive(files: Record<string, string>): Buffer {
  return gzipSync(rawTar(Object.entries(files).map(([name, content]) => ({ name, content }))));
}

export const hexOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

export async function startAppRegistry(): Promise<AppRegistry> {
  const packages = new Map<string, Record<string, Buffer>>();
  const server = createServer((request, response) => {
    registry.requests.push({ url: request.url ?? '', authorization: request.headers.authorization });
    if (registry.misbehave?.(request, response) === true) return;
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const fail = (status: number, message: string): void =>
      answer(status, { error: { code: 'error', message } });
    if (registry.token !== undefined && request.headers.authorization !== registry.token) {
      fail(401, `Unauthorized: ${request.headers.authorization}`);
      return;
    }
    const url = new URL(request.url ?? '', 'http://server');
    const [, path] = /^\/cnr\/api\/v1\/packages(.*)$/.exec(url.pathname) ?? [];
    if (path === undefined) return fail(404, 'no such path');
    if (path === '') {
      const namespace = url.searchParams.get('namespace');
      const names = [...packages.keys()].filter((name) => name.startsWith(`${namespace}/`));
      return answer(
        200,
        names.map((name) => ({ name, namespace, releases: Object.keys(packages.get(name) ?? {}).reverse() })),
      );
    }
    const [namespace, name, release = '', algorithm, hex] = path.slice(1).split('/').map(decodeURIComponent);
    const releases = packages.get(`${namespace}/${name}`);
    if (releases === undefined) return fail(404, 'package not found');
    if (release === 'blobs') {
      const blob = Object.values(releases).find((bytes) => algorithm === 'sha256' && hexOf(bytes) === hex);
      if (blob === undefined) return fail(404, 'blob not found');
      response.writeHead(200, { 'content-type': 'application/octet-stream' });
      response.end(blob);
      return;
    }
    const bytes = releases[release];
    if (bytes === undefined || algorithm !== undefined) return fail(404, 'release not found');
    const content = {
      digest: hexOf(bytes),
      mediaType: 'application/vnd.cnr.package.helm.v0.tar+gzip',
      size: bytes.length,
      urls: [],
    };
    answer(200, [{ content, package: `${namespace}/${name}`, release }]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registry: AppRegistry = {
    endpoint: `${origin}/cnr`,
    origin,
    requests: [],
    serve: (namespace, name, releases) => void packages.set(`${namespace}/${name}`, releases),
    token: undefined,
    misbehave: undefined,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return registry;
}
