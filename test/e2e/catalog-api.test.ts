import { createHook } from 'node:async_hooks';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { Agent as HttpAgent, get as httpGet } from 'node:http';
import { Agent, get as secureGet } from 'node:https';
import { type Socket, connect } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DirectoryCatalog } from '../../src/catalog/catalog.js';
import type { Section } from '../../src/serve/catalogs/content-index.js';
import { pruneContents, openContent, storeContent } from '../../src/serve/catalogs/content-store.js';
import { type ContentReader, StoredContent } from '../../src/serve/catalogs/stored-content.js';
import { createCatalogServers } from '../../src/serve/http/catalog-server.js';
import { createSelfSignedCertificate } from '../../src/serve/http/self-signed.js';
import { closeHttpServer, replaceCertificate } from '../../src/serve/server/http-server.js';
import { openSqliteCatalog } from '../../src/sqlite/read/catalog.js';
import { projectRoot } from '../support/command-line.js';
import { indexFile } from '../support/index-file.js';
import { streamContent } from '../support/stream-content.js';
import { directoryWith } from '../support/temporary.js';
import { catalogOf, widgetCatalog } from './catalogs.js';
import {
  type Served,
  contentOf,
  exchangeRaw,
  largeCatalog,
  lastModified,
  serve,
  storedAt,
} from './served-catalogs.js';

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0;
const hasCurl = has('curl');
const hasTools = hasCurl && has('jq');
const gzip = { 'Accept-Encoding': 'gzip' };

const jsonl = (...blobs: object[]): string => blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
const small = {
  'catalog.json': jsonl(
    { schema: 'olm.package', name: 'foo', defaultChannel: 'stable' },
    { schema: 'olm.channel', package: 'foo', name: 'stable', entries: [{ name: 'foo.v1' }] },
    { schema: 'olm.bundle', package: 'foo', name: 'foo.v1', image: 'quay.io/x/foo:v1' },
    { schema: 'olm.bundle', package: 'bar', name: 'foo.v1', image: 'quay.io/x/bar:v1' },
    { schema: 'only' },
  ),
};
const smallLines = [
  '{"defaultChannel":"stable","name":"foo","schema":"olm.package"}\n',
  '{"entries":[{"name":"foo.v1"}],"name":"stable","package":"foo","schema":"olm.channel"}\n',
  '{"image":"quay.io/x/foo:v1","name":"foo.v1","package":"foo","schema":"olm.bundle"}\n',
  '{"image":"quay.io/x/bar:v1","name":"foo.v1","package":"bar","schema":"olm.bundle"}\n',
  '{"schema":"only"}\n',
];

/** What a shell prints, `$URL` being where the catalogs are. The server is in this process, so nothing may block. */
async function shell(served: Served, script: string): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-ec', script], {
    env: { ...process.env, URL: served.url },
    cwd: await directoryWith(),
  });
  return stdout;
}

function sha256(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function etagOf(content: StoredContent): string {
  return `"sha256-${content.hash.slice('sha256:'.length)}"`;
}

const unknownParameter = (name: string): string =>
  `400 Bad Request: unknown query parameter "${name}", expected schema, package, name\n`;

describe('the HTTP catalog API', () => {
  it('serves a whole catalog', async () => {
    const served = await serve({ cat: small });
    const content = served.set.find('cat')?.content as StoredContent;
    const { status, headers, text: body } = await served.get('/catalogs/cat/api/v1/all');
    expect({ status, body }).toEqual({ status: 200, body: smallLines.join('') });
    expect(headers).toMatchObject({
      'content-type': 'application/jsonl',
      'content-length': String(body.length),
      'last-modified': lastModified,
      'accept-ranges': 'bytes',
      vary: 'Accept-Encoding',
      etag: `"sha256-${sha256(body)}"`,
    });
    expect(headers.etag).toBe(etagOf(content));
    expect(headers['cache-control']).toBeUndefined();
  });

  it.each<[string, number[]]>([
    ['', [0, 1, 2, 3, 4]],
    ['?', [0, 1, 2, 3, 4]],
    ['?schema=&package=&name=', [0, 1, 2, 3, 4]],
    ['?schema=olm.package', [0]],
    ['?schema=olm.bundle', [2, 3]],
    ['?package=foo', [1, 2]],
    ['?schema=olm.package&name=foo', [0]],
    ['?schema=olm.package&package=foo', []],
    ['?name=foo.v1', [2, 3]],
    ['?name=foo.v1&package=bar', [3]],
    ['?schema=olm.bundle&package=foo&name=foo.v1', [2]],
    ['?schema=olm.bundle&schema=olm.package', [2, 3]],
    ['?schema=olm%2Ebundle', [2, 3]],
    ['?schema=nothing', []],
    ['?schema=olm.bundle&package=foo&name=', [2]],
    ['?name=__proto__', []],
  ])('finds of metas%s', async (query, lines) => {
    const served = await serve({ cat: small });
    const { status, text: body, headers } = await served.get(`/catalogs/cat/api/v1/metas${query}`);
    const expected = lines.map((line) => smallLines[line]).join('');
    expect({ status, body }).toEqual({ status: 200, body: expected });
    expect(headers['content-type']).toBe('application/jsonl');
    expect(headers['accept-ranges']).toBeUndefined();
    const head = await served.get(`/catalogs/cat/api/v1/metas${query}`, {}, 'HEAD');
    expect(head).toMatchObject({ status: 200, text: '' });
    for (const name of ['etag', 'content-length', 'content-type', 'last-modified', 'vary'] as const) {
      expect(head.headers[name]).toBe(headers[name]);
    }
  });

  it.each<[string, string, number, string]>([
    ['GET', '/', 404, '404 page not found\n'],
    ['GET', '/catalogs/', 404, '404 page not found\n'],
    ['GET', '/catalogs/cat', 404, '404 page not found\n'],
    ['GET', '/catalogs/cat/', 404, '404 page not found\n'],
    ['GET', '/catalogs/cat.jsonl', 404, '404 page not found\n'],
    ['GET', '/catalogs/cat/api/v1', 404, '404 page not found\n'],
    ['GET', '/catalogs/cat/api/v1/all/', 404, '404 page not found\n'],
    ['GET', '/catalogs/cat/api/v1/graphql', 400, 'Query cannot be empty\n'],
    ['GET', '/catalogs//api/v1/all', 404, '404 page not found\n'],
    ['GET', '/catalogs/../api/v1/all', 400, ''],
    ['GET', '/catalogs/cat/../cat/api/v1/all', 404, '404 page not found\n'],
    ['POST', '/nothing', 404, '404 page not found\n'],
    ['GET', '/catalogs/other/api/v1/all', 404, '404 Not Found\n'],
    ['GET', '/catalogs/other/api/v1/metas?schema=a', 404, '404 Not Found\n'],
    ['GET', '/catalogs/other/all.json', 404, '404 Not Found\n'],
    ['POST', '/catalogs/cat/api/v1/all', 405, 'Method Not Allowed\n'],
    ['PUT', '/catalogs/other/api/v1/metas', 405, 'Method Not Allowed\n'],
    ['DELETE', '/catalogs/cat/all.json', 405, 'Method Not Allowed\n'],
    ['OPTIONS', '/catalogs', 405, 'Method Not Allowed\n'],
    ['PATCH', '/healthz', 405, 'Method Not Allowed\n'],
    ['GET', '/catalogs/Cat/api/v1/all', 400, ''],
    ['GET', '/catalogs/-cat/all.json', 400, ''],
    ['GET', '/catalogs/c%2Fat/api/v1/all', 400, ''],
    ['GET', '/catalogs/%2e%2e/api/v1/all', 400, ''],
    ['GET', '/catalogs/..%2f..%2fetc/api/v1/all', 400, ''],
    ['GET', '/catalogs/%00/api/v1/all', 400, ''],
    ['GET', '/catalogs/%zz/api/v1/all', 400, '400 Bad Request\n'],
    ['GET', `/catalogs/${'a'.repeat(254)}/api/v1/all`, 400, ''],
    ['GET', '/catalogs/cat/api/v1/metas?nome=a', 400, unknownParameter('nome')],
    ['GET', '/catalogs/cat/api/v1/metas?schema=a&x', 400, unknownParameter('x')],
    ['GET', '/catalogs/cat/api/v1/metas?Schema=a', 400, unknownParameter('Schema')],
    ['GET', '/catalogs/other/api/v1/metas?x=a', 400, unknownParameter('x')],
  ])('answers %s %s with %i', async (method, url, status, body) => {
    const served = await serve({ cat: small });
    const answer = await served.get(url, {}, method);
    expect(answer.status).toBe(status);
    if (body === '') expect(answer.text).toMatch(/^invalid catalog name: must be .*\n$/);
    else expect(answer.text).toBe(body);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });
    expect(answer.headers.allow).toBeUndefined();
    expect(answer.headers.etag).toBeUndefined();
    if (method !== 'GET') return;
    const head = await served.get(url, {}, 'HEAD');
    expect(head).toMatchObject({ status, text: '' });
  });

  it('serves the same content under the path of early catalogd', async () => {
    const served = await serve({ cat: small });
    const [now, before] = await Promise.all([
      served.get('/catalogs/cat/api/v1/all'),
      served.get('/catalogs/cat/all.json'),
    ]);
    expect(before.text).toBe(now.text);
    expect(before.headers.etag).toBe(now.headers.etag);
  });

  it('accepts the absolute URL of a proxy request, and an unexpected body', async () => {
    const served = await serve({ cat: small });
    const whole = await served.get('http://catalogs.example/catalogs/cat/api/v1/metas?schema=only');
    expect(whole.text).toBe(smallLines[4]);
    const request = `GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`;
    const answer = await exchangeRaw(served.port, request);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*ok\n$/);
  });

  it.each([
    [
      'a URL that is too long',
      `GET /catalogs/cat/api/v1/metas?name=${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    ],
    ['headers that are too long', `GET / HTTP/1.1\r\nHost: localhost\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`],
  ])('refuses %s', async (_what, request) => {
    const served = await serve({ cat: small });
    expect(await exchangeRaw(served.port, request)).toMatch(/^HTTP\/1\.1 431 /);
    expect(await exchangeRaw(served.port, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    expect((await served.get('/healthz')).status).toBe(200);
  });

  it('supports conditional requests of both kinds for all and metas', async () => {
    const served = await serve({ cat: small });
    for (const url of ['/catalogs/cat/api/v1/all', '/catalogs/cat/api/v1/metas?schema=olm.bundle']) {
      const { headers } = await served.get(url);
      const etag = headers.etag as string;
      const status = async (conditions: Record<string, string>, method = 'GET') => {
        const answer = await served.get(url, conditions, method);
        if (answer.status !== 200) {
          expect(answer.text).toBe('');
          for (const name of ['content-type', 'content-encoding'] as const)
            expect(answer.headers[name]).toBeUndefined();
        }
        return answer.status;
      };
      for (const method of ['GET', 'HEAD']) {
        expect(await status({ 'If-None-Match': etag }, method)).toBe(304);
        expect(await status({ 'If-None-Match': `"x", W/${etag}` }, method)).toBe(304);
        expect(await status({ 'If-None-Match': '*' }, method)).toBe(304);
        expect(await status({ 'If-None-Match': '"x"' }, method)).toBe(200);
        expect(await status({ 'If-Modified-Since': lastModified }, method)).toBe(304);
        expect(await status({ 'If-Modified-Since': 'Wednesday, 04-Mar-26 05:06:08 GMT' }, method)).toBe(304);
        expect(await status({ 'If-Modified-Since': 'Wed Mar  4 05:06:06 2026' }, method)).toBe(200);
        expect(await status({ 'If-Modified-Since': 'soon' }, method)).toBe(200);
        expect(await status({ 'If-None-Match': '"x"', 'If-Modified-Since': lastModified }, method)).toBe(200);
        expect(await status({ 'If-Match': '"x"' }, method)).toBe(412);
        expect(await status({ 'If-Match': etag }, method)).toBe(200);
        expect(await status({ 'If-Unmodified-Since': 'Tue, 03 Mar 2026 00:00:00 GMT' }, method)).toBe(412);
        expect(await status({ 'If-Unmodified-Since': lastModified }, method)).toBe(200);
      }
    }
    const different = await Promise.all(
      ['all', 'metas?schema=olm.bundle', 'metas?name=olm.bundle'].map((url) =>
        served.get(`/catalogs/cat/api/v1/${url}`),
      ),
    );
    expect(new Set(different.map(({ headers }) => headers.etag)).size).toBe(3);
  });

  it('serves ranges of all, and the whole where duplicate property', async () => {
    const served = await serve({ cat: small });
    const whole = smallLines.join('');
    const etag = (await served.get('/catalogs/cat/api/v1/all')).headers.etag as string;
    const range = (value: string, more: Record<string, string> = {}, url = 'all', method = 'GET') =>
      served.get(`/catalogs/cat/api/v1/${url}`, { Range: value, ...more }, method);
    expect(await range('bytes=5-9')).toMatchObject({
      status: 206,
      text: whole.slice(5, 10),
      headers: { 'content-range': `bytes 5-9/${whole.length}`, 'content-length': '5', etag },
    });
    expect(await range('bytes=-6')).toMatchObject({ status: 206, text: whole.slice(-6) });
    expect(await range('bytes=60-')).toMatchObject({ status: 206, text: whole.slice(60) });
    expect(await range(`bytes=${whole.length}-`)).toMatchObject({
      status: 416,
      headers: { 'content-range': `bytes */${whole.length}` },
    });
    expect(await range('bytes=0-1,4-5')).toMatchObject({ status: 200, text: whole });
    expect(await range('bytes=0-1', { 'If-Range': etag })).toMatchObject({ status: 206 });
    expect(await range('bytes=0-1', { 'If-Range': '"x"' })).toMatchObject({ status: 200, text: whole });
    expect(await range('bytes=0-1', { 'If-Range': lastModified })).toMatchObject({ status: 206 });
    expect(await range('bytes=0-1', { 'If-None-Match': etag })).toMatchObject({ status: 304 });
    expect(await range('bytes=0-1', {}, 'metas')).toMatchObject({ status: 200, text: whole });
    expect(await range('bytes=0-1', {}, 'all', 'HEAD')).toMatchObject({ status: 206, text: '' });
  });

  it('compresses responses that are worth it, with a different ETag, but no ranges', async () => {
    const served = await serve({ large: largeCatalog(3_000_000), cat: small });
    const url = '/catalogs/large/api/v1/all';
    const plain = await served.get(url);
    const compressed = await served.get(url, gzip);
    expect(gunzipSync(compressed.body).equals(plain.body)).toBe(true);
    expect(compressed.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-type': 'application/jsonl',
      vary: 'Accept-Encoding',
      etag: (plain.headers.etag as string).replace(/"$/, '-gzip"'),
    });
    for (const name of ['accept-ranges', 'content-length'] as const) {
      expect(compressed.headers[name]).toBeUndefined();
    }
    for (const tag of [compressed.headers.etag, plain.headers.etag] as string[]) {
      expect(await served.get(url, { ...gzip, 'If-None-Match': tag })).toMatchObject({
        status: 304,
        headers: { etag: tag },
      });
      expect(await served.get(url, { 'If-None-Match': tag })).toMatchObject({
        status: 304,
        headers: { etag: tag },
      });
    }
    const untouched = [
      await served.get(url, { ...gzip, Range: 'bytes=0-5000' }),
      await served.get(url, gzip, 'HEAD'),
      await served.get(url, { 'Accept-Encoding': 'gzip;q=0.1, identity' }),
      await served.get(url, { 'Accept-Encoding': 'br' }),
      await served.get('/catalogs/cat/api/v1/all', gzip),
    ];
    for (const { headers } of untouched) expect(headers['content-encoding']).toBeUndefined();
    expect(untouched[0]?.status).toBe(206);
    const metas = await served.get('/catalogs/large/api/v1/metas?package=p3', gzip);
    expect(metas.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(metas.body).toString()).toBe(
      (await served.get('/catalogs/large/api/v1/metas?package=p3')).text,
    );
  });

  it('compresses a catalog once for all readers, and again if it cannot be stored', async () => {
    const directory = path.join(await directoryWith(), 'contents');
    const served = await serve({});
    const content = await served.put('cat', await contentOf(largeCatalog(8_000_000), { directory }));
    const plain = await readAll(content);
    const url = '/catalogs/cat/api/v1/all';
    let compressors = 0;
    const counter = createHook({
      init(_id, type) {
        if (type === 'ZLIB') compressors++;
      },
    }).enable();
    onTestFinished(() => void counter.disable());
    const sockets = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const socket = connect(served.port, '127.0.0.1');
        onTestFinished(() => void socket.destroy());
        socket.write(`GET ${url} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n`);
        await once(socket, 'readable');
        return socket;
      }),
    );
    counter.disable();
    expect(compressors).toBe(1);
    for (const socket of sockets) socket.destroy();
    // The size is known once a reader has had everything.
    await served.get(url, gzip);
    const { headers, body } = await served.get(url, gzip);
    expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(body.length) });
    expect(gunzipSync(body).equals(plain)).toBe(true);
    expect(await readdir(directory)).toEqual([content.hash.replace('sha256:', '')]);

    const lost = await served.put('lost', await contentOf(largeCatalog(3_000_000, 'b'), { directory }));
    await rm(directory, { recursive: true });
    const again = await served.get('/catalogs/lost/api/v1/all', gzip);
    expect(again.headers).toMatchObject({ 'content-encoding': 'gzip' });
    expect(again.headers).not.toHaveProperty('content-length');
    expect(gunzipSync(again.body).equals(await readAll(lost))).toBe(true);
  });

  it('compresses the result of a query once for all clients', async () => {
    const served = await serve({});
    const content = await contentOf(largeCatalog(1_400_000));
    const own = content.openReader();
    const { offset, length } = content.find({ schema: '', package: 'p1', name: '' })[0] as Section;
    const reads: number[] = [];
    await served.put(
      'cat',
      readingWith(content, (target, position) => {
        reads.push(position);
        return own.read(target, position);
      }),
    );
    const get = () => served.get('/catalogs/cat/api/v1/metas?package=p1', gzip);
    const replies = [...(await Promise.all(Array.from({ length: 20 }, get))), await get()];
    for (const { headers, body } of replies) {
      expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(body.length) });
      expect(gunzipSync(body)).toHaveLength(length);
    }
    expect(reads.filter((position) => position === offset)).toHaveLength(1);
    expect(gunzipSync((await served.get('/api/v1/metas?package=p1', gzip)).body).toString()).toContain(
      '"catalog":"cat"',
    );
    own.close();
  });

  it('sends responses uncompressed while two hundred others are compressed', async () => {
    const served = await serve({});
    const content = await contentOf(largeCatalog(1_400_000));
    const own = content.openReader();
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let held = 0;
    await served.put(
      'cat',
      readingWith(content, async (target, position) => {
        if (position === 0 && ++held > 0) await released;
        await own.read(target, position);
      }),
    );
    const waiting = Array.from({ length: 200 }, () => served.get('/catalogs/cat/api/v1/all', gzip));
    while (held < 200) await new Promise((resolve) => setImmediate(resolve));
    const beyond = await served.get('/catalogs/cat/api/v1/metas?package=p3', gzip);
    expect(beyond.status).toBe(200);
    expect(beyond.headers['content-encoding']).toBeUndefined();
    release();
    for (const { headers } of await Promise.all(waiting)) expect(headers['content-encoding']).toBe('gzip');
    const after = await served.get('/catalogs/cat/api/v1/metas?package=p3', gzip);
    expect(after.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(after.body).equals(beyond.body)).toBe(true);
    own.close();
  });

  it('serves liveness, readiness and metrics', async () => {
    const served = await serve({});
    expect(await served.get('/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
    expect(await served.get('/readyz')).toMatchObject({ status: 200, text: 'ok\n' });
    await served.put('cat', small);
    await served.get('/catalogs/cat/api/v1/all');
    await served.get('/catalogs/none/api/v1/all');
    const { headers, text: metrics } = await served.get('/metrics');
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    const lines = metrics.split('\n');
    expect(lines).toContain('opmate_http_requests_total{code="200"} 3');
    expect(lines).toContain('catalogd_http_request_duration_seconds_count{code="404"} 1');
    expect(lines).toContain(`opmate_catalog_bytes{catalog="cat"} ${smallLines.join('').length}`);
    expect(lines).toContain(
      `opmate_catalog_last_unpack_timestamp_seconds{catalog="cat"} ${storedAt.getTime() / 1000}`,
    );
    await served.set.close();
    expect(await served.get('/readyz')).toMatchObject({ status: 503 });
    // Probes of a server that is starting are no errors.
    expect(served.logged.filter((line) => !line.startsWith('debug: '))).toEqual([]);
  });

  it('logs one line per request with its ID, without contents', async () => {
    const served = await serve({ cat: small });
    const url = '/catalogs/cat/api/v1/metas?name=secret-name';
    const { headers } = await served.get(url, { 'X-Request-Id': 'from-a.proxy:1' });
    expect(headers['x-request-id']).toBe('from-a.proxy:1');
    const own = (await served.get(url, { 'X-Request-Id': 'a b' })).headers['x-request-id'] as string;
    expect(own).toMatch(/^[0-9a-f]{8}-\d+$/);
    expect(served.logged).toHaveLength(2);
    for (const [i, id] of ['from-a.proxy:1', own].entries()) {
      expect(served.logged[i]).toMatch(/^debug: GET \/catalogs\/cat\/api\/v1\/metas \{/);
      const fields = /\{.*\}$/.exec(served.logged[i] as string)?.[0] as string;
      expect(JSON.parse(fields)).toEqual({
        request: id,
        status: 200,
        bytes: 0,
        ms: expect.any(Number) as number,
      });
    }
  });

  it('responds with 500 without a reason, logs it, and continues', async () => {
    const served = await serve({ cat: small });
    const content = served.set.find('cat')?.content as StoredContent;
    await served.put(
      'broken',
      readingWith(content, () => Promise.reject(new Error('disk is gone'))),
    );
    const answer = await served.get('/catalogs/broken/api/v1/all');
    expect(answer).toMatchObject({ status: 500, text: '500 Internal Server Error\n' });
    expect(answer.headers.etag).toBeUndefined();
    expect(served.logged[0]).toContain('disk is gone');
    expect((await served.get('/catalogs/cat/api/v1/all')).status).toBe(200);
  });

  it('aborts a response that cannot be read to its end', async () => {
    const served = await serve({ cat: largeCatalog(4_000_000) });
    const content = served.set.find('cat')?.content as StoredContent;
    const whole = content.openReader();
    let reads = 0;
    const read = (target: Buffer, position: number) =>
      ++reads > 2 ? Promise.reject(new Error('disk is gone')) : whole.read(target, position);
    await served.put('broken', readingWith(content, read));
    for (const headers of [{}, gzip]) {
      reads = 0;
      await expect(served.get('/catalogs/broken/api/v1/all', headers)).rejects.toThrow(
        /aborted|hang up|reset/,
      );
    }
    whole.close();
    expect((await served.get('/catalogs/cat/api/v1/all')).body).toHaveLength(content.size);
  });
});

describe('the HTTP catalog API under load', () => {
  it('handles stalled readers and disconnecting clients', async () => {
    const served = await serve({ cat: largeCatalog(8_000_000) });
    const content = served.set.find('cat')?.content as StoredContent;
    const before = process.memoryUsage().arrayBuffers;
    const sockets: Socket[] = [];
    for (let i = 0; i < 120; i++) {
      const socket = connect(served.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.pause();
      socket.write(
        `GET /catalogs/cat/api/v1/${i % 4 === 0 ? 'metas?package=p1' : 'all'} HTTP/1.1\r\nHost: localhost\r\n` +
          `${i % 10 === 0 ? 'Accept-Encoding: gzip\r\n' : ''}\r\n`,
      );
      sockets.push(socket);
    }
    // They have all got as far as they will when one that came after them has everything.
    const { body } = await served.get('/catalogs/cat/api/v1/all');
    expect(body).toHaveLength(content.size);
    expect(process.memoryUsage().arrayBuffers - before - body.length).toBeLessThan(100_000_000);
    for (const socket of sockets) socket.destroy();
    await Promise.all(sockets.filter((socket) => !socket.closed).map((socket) => once(socket, 'close')));
    // Closing waits for readers, so that none was forgotten.
    await served.set.remove('cat');
    expect((await served.get('/catalogs/cat/api/v1/all')).status).toBe(404);
  });

  it('completes running requests when it closes, and accepts no new ones', async () => {
    const served = await serve({ cat: largeCatalog(8_000_000) });
    const { size } = served.set.find('cat')?.content as StoredContent;
    const agent = new HttpAgent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const request = httpGet(`${served.url}/catalogs/cat/api/v1/all`, { agent });
    const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage];
    const closing = closeHttpServer(served.server, 60_000);
    await expect(served.get('/healthz')).rejects.toThrow('ECONNREFUSED');
    expect((await text(response)).length).toBe(size);
    await closing;
  });

  it('aborts requests that exceed the grace period', async () => {
    const served = await serve({ cat: largeCatalog(8_000_000) });
    const socket = connect(served.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET /catalogs/cat/api/v1/all HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'readable');
    await closeHttpServer(served.server, 10);
    await served.set.close();
    await expect.poll(() => served.logged.at(-1)).toContain('"aborted":true');
    socket.destroy();
  });
});

describe('the HTTP catalog API over TLS', () => {
  it('uses a new certificate for new connections, and keeps the old one if it is invalid', async () => {
    const first = await createSelfSignedCertificate(['127.0.0.1'], new Date());
    const second = await createSelfSignedCertificate(['127.0.0.1'], new Date());
    const served = await serve({ cat: small }, { certificate: first });
    const url = `https://127.0.0.1:${served.port}/catalogs`;
    const fetchWith = (ca: string) =>
      new Promise<string>((resolve, reject) => {
        const agent = new Agent({ ca });
        const sent = secureGet(url, { agent }, (response) => {
          expect((response.socket as TLSSocket).getProtocol()).toMatch(/^TLSv1\.[23]$/);
          text(response).then(resolve, reject);
        });
        sent.on('error', reject);
      });
    const listing = JSON.parse(await fetchWith(first.cert)) as { catalogs: { urls: { base: string } }[] };
    expect(listing.catalogs[0]?.urls.base).toBe(`${url}/cat`);
    expect(() => replaceCertificate(served.server, { cert: first.cert, key: second.key })).toThrow(
      'do not match',
    );
    expect(() => replaceCertificate(served.server, { cert: 'x', key: 'y' })).toThrow(
      'TLS certificate and key: invalid',
    );
    await fetchWith(first.cert);
    replaceCertificate(served.server, second);
    await fetchWith(second.cert);
    await expect(fetchWith(first.cert)).rejects.toThrow(/certificate/);
  });

  it('refuses an invalid certificate or URL', async () => {
    const catalogs = (await serve({})).set;
    const { cert } = await createSelfSignedCertificate(['a'], new Date());
    const { key } = await createSelfSignedCertificate(['a'], new Date());
    expect(() => createCatalogServers({ catalogs, certificate: { cert, key } })).toThrow('do not match');
    for (const externalUrl of [
      '',
      'catalogs.example',
      'ftp://x',
      'https://user:secret@x',
      'https://x/?a',
      'https://x/#a',
    ]) {
      expect(() => createCatalogServers({ catalogs, externalUrl })).toThrow('is not an http or https URL');
    }
  });
});

/** What users asked of catalogd, by the numbers that the list of their requests has. */
describe.skipIf(!hasTools)('the examples of the first README of catalogd', () => {
  it('R1: lists the packages of a catalog', async () => {
    const served = await serve({
      cat: { 'a.json': widgetCatalog, 'b.json': catalogOf('gadget', [{ name: 'gadget.v1' }]) },
    });
    const script = `curl -sf $URL/catalogs/cat/all.json | jq -s '.[] | select(.schema == "olm.package") | .name'`;
    expect(await shell(served, script)).toBe('"widget"\n"gadget"\n');
  });

  it('R2: lists the channels of a package', async () => {
    const served = await serve({
      cat: { 'a.json': widgetCatalog, 'b.json': catalogOf('gadget', [{ name: 'gadget.v1' }]) },
    });
    const filter = `select(.schema == "olm.channel") | select(.package == "gadget") | .name`;
    expect(await shell(served, `curl -sf $URL/catalogs/cat/all.json | jq -r '${filter}'`)).toBe('stable\n');
    const metas = `curl -sf "$URL/catalogs/cat/api/v1/metas?schema=olm.channel&package=gadget" | jq -r .name`;
    expect(await shell(served, metas)).toBe('stable\n');
  });

  it('R3: lists the bundles of a package', async () => {
    const entries = [{ name: 'gadget.v1' }, { name: 'gadget.v2', replaces: 'gadget.v1' }];
    const served = await serve({ cat: { 'a.json': widgetCatalog, 'b.json': catalogOf('gadget', entries) } });
    const filter = `select(.schema == "olm.bundle") | select(.package == "gadget") | .name`;
    expect(await shell(served, `curl -sf $URL/catalogs/cat/api/v1/all | jq -r '${filter}'`)).toBe(
      'gadget.v1\ngadget.v2\n',
    );
  });

  it('R4: serves the same contents from any source', async () => {
    const served = await serve({ directory: { 'a.json': catalogOf('gadget', [{ name: 'gadget.v1' }]) } });
    const database = await openSqliteCatalog(await indexFile(), {
      temporaryDirectory: await directoryWith(),
      now: () => storedAt,
    });
    onTestFinished(() => database.close());
    await served.put('database', await storeContent(database, { now: () => storedAt }));
    const packages = `for name in directory database; do
      curl -sf "$URL/catalogs/$name/api/v1/metas?schema=olm.package" | jq -r .name; done`;
    expect(await shell(served, packages)).toBe('gadget\nwidget\n');
  });
});

describe('requests of users of catalogd', () => {
  it('3: replaces a changed catalog atomically', async () => {
    const served = await serve({
      cat: { 'a.json': jsonl({ schema: 'x', name: 'old' }, { schema: 'x', name: 'both' }) },
    });
    await served.put('cat', { 'a.json': jsonl({ schema: 'x', name: 'both' }, { schema: 'x', name: 'new' }) });
    expect((await served.get('/catalogs/cat/api/v1/all')).text).toBe(
      '{"name":"both","schema":"x"}\n{"name":"new","schema":"x"}\n',
    );
    expect((await served.get('/catalogs/cat/api/v1/metas?name=old')).text).toBe('');
  });

  it('4: accepts property values of any type, and storing again changes nothing', async () => {
    const values = ['text', 5, 12345678901234567890n, true, null, ['a', 1], { b: 1, a: { d: [], c: '' } }];
    const shown = values.map((value) => (typeof value === 'bigint' ? String(value) : JSON.stringify(value)));
    const blob = `{"schema":"olm.bundle","properties":[${shown.map((value) => `{"value":${value},"type":"t"}`).join()}]}`;
    const directory = await directoryWith();
    const first = await contentOf({ 'a.json': blob }, { directory });
    const again = await contentOf({ 'a.json': blob }, { directory });
    expect(again.hash).toBe(first.hash);
    const served = await serve({});
    await served.put('cat', again);
    shown[6] = '{"a":{"c":"","d":[]},"b":1}';
    expect((await served.get('/catalogs/cat/api/v1/all')).text).toBe(
      `{"properties":[${shown.map((value) => `{"type":"t","value":${value}}`).join()}],"schema":"olm.bundle"}\n`,
    );
  });

  it('6, 32: distinguishes a package in two catalogs', async () => {
    const served = await serve({ b: {}, a: {} });
    const bundle = (image: string) => ({
      'c.json': jsonl(
        { schema: 'olm.package', name: 'p' },
        { schema: 'olm.bundle', package: 'p', name: 'p.v1', image },
      ),
    });
    await served.put('a', bundle('quay.io/a/p:v1'), { labels: { team: 'x', tier: 'gold' } });
    await served.put('b', bundle('quay.io/b/p:v1'), { labels: { team: 'x' }, priority: 5 });
    expect((await served.get('/catalogs/a/api/v1/metas?package=p')).text).toContain('quay.io/a/p:v1');
    expect((await served.get('/catalogs/b/api/v1/metas?package=p')).text).toContain('quay.io/b/p:v1');
    const line = (catalog: string) =>
      `{"blob":{"image":"quay.io/${catalog}/p:v1","name":"p.v1","package":"p","schema":"olm.bundle"},"catalog":"${catalog}","package":"${catalog}/p"}\n`;
    const across = async (query: string) =>
      (await served.get(`/api/v1/metas?schema=olm.bundle&${query}`)).text;
    expect(await across('')).toBe(line('b') + line('a'));
    expect(await across('package=p&name=p.v1')).toBe(line('b') + line('a'));
    expect(await across('package=a/p')).toBe(line('a'));
    expect(await across('package=c/p')).toBe('');
    expect(await across('catalog=b')).toBe(line('b'));
    expect(await across('selector=team=x')).toBe(line('b') + line('a'));
    expect(await across('selector=team=x,tier=gold')).toBe(line('a'));
    expect(await across('selector=__proto__=x')).toBe('');
    expect((await served.get('/api/v1/metas?schema=olm.package&catalog=a')).text).toBe(
      '{"blob":{"name":"p","schema":"olm.package"},"catalog":"a","package":"a/p"}\n',
    );
    expect(await served.get('/api/v1/metas?selector=x')).toMatchObject({ status: 400 });
    expect(await served.get('/api/v1/metas?x=y')).toMatchObject({ status: 400 });
    expect(await served.get('/api/v1/metas', {}, 'POST')).toMatchObject({ status: 405 });
    const { headers } = await served.get('/api/v1/metas');
    expect((await served.get('/api/v1/metas', { 'If-None-Match': headers.etag })).status).toBe(304);
    await served.put('a', bundle('quay.io/changed:v1'));
    expect((await served.get('/api/v1/metas', { 'If-None-Match': headers.etag })).status).toBe(200);
  });

  it('7: preserves absent, empty and null related images', async () => {
    const blobs = [undefined, [], [{}], null].map((relatedImages, i) => ({
      name: `b${i}`,
      relatedImages,
      schema: 'olm.bundle',
    }));
    const served = await serve({ cat: { 'a.json': jsonl(...blobs) } });
    expect((await served.get('/catalogs/cat/api/v1/all')).text).toBe(jsonl(...blobs));
  });

  it.skipIf(!hasTools)('8: serves content URLs that curl reads inside and outside', async () => {
    const served = await serve({ cat: small });
    const script = 'curl -sf $(curl -sf $URL/catalogs | jq -r ".catalogs[0].urls.all") | wc -l';
    expect((await shell(served, script)).trim()).toBe('5');
    const outside = await serve({ cat: small }, { externalUrl: 'https://catalogs.example/olm/' });
    const { catalogs } = JSON.parse((await outside.get('/catalogs')).text) as {
      catalogs: { urls: unknown }[];
    };
    expect(catalogs[0]?.urls).toEqual({
      base: 'https://catalogs.example/olm/catalogs/cat',
      all: 'https://catalogs.example/olm/catalogs/cat/api/v1/all',
      metas: 'https://catalogs.example/olm/catalogs/cat/api/v1/metas',
      graphql: 'https://catalogs.example/olm/catalogs/cat/api/v1/graphql',
    });
  });

  it('12: deletes the stored content of a removed catalog', async () => {
    const directory = await directoryWith();
    const served = await serve({});
    const content = await contentOf(small, { directory });
    await served.put('cat', content);
    await served.set.remove('cat');
    expect(await served.get('/catalogs/cat/api/v1/all')).toMatchObject({
      status: 404,
      text: '404 Not Found\n',
    });
    const later = new Date(Date.now() + 2 * 60 * 60 * 1000);
    await pruneContents(directory, new Set(), later);
    expect(await readdir(directory)).toEqual([]);
  });

  it('14: isolates catalogs from failures of others', async () => {
    const served = await serve({ one: small, two: { 'a.json': jsonl({ schema: 'x' }) }, three: {} });
    const names = async () =>
      (JSON.parse((await served.get('/catalogs')).text) as { catalogs: { name: string }[] }).catalogs.map(
        ({ name }) => name,
      );
    expect(await names()).toEqual(['one', 'three', 'two']);
    await served.put('two', small);
    await served.put('two', { 'a.json': jsonl({ schema: 'y' }) });
    expect(await names()).toEqual(['one', 'three', 'two']);
    await served.set.remove('one');
    expect(await names()).toEqual(['three', 'two']);
    expect((await served.get('/catalogs/two/api/v1/all')).text).toBe('{"schema":"y"}\n');
    expect(await served.get('/catalogs/three/api/v1/all')).toMatchObject({ status: 200, text: '' });
    await served.put('one', small);
    expect(await names()).toEqual(['one', 'three', 'two']);
  });

  it.skipIf(!hasCurl)(
    '16, 24: memory does not grow with a catalog, neither storing nor sending it',
    async () => {
      const root = await directoryWith({
        'catalog/a.json': largeCatalog(8_000_000)['catalog.json'] as string,
      });
      for (const name of ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) {
        await writeFile(
          path.join(root, 'catalog', `${name}.json`),
          largeCatalog(8_000_000, name)['catalog.json'] as string,
        );
      }
      const before = process.memoryUsage().arrayBuffers;
      let most = 0;
      const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().arrayBuffers)), 5);
      const directory = path.join(root, 'cache');
      const content = await storeContent(new DirectoryCatalog(path.join(root, 'catalog')), {
        directory,
        now: () => storedAt,
      });
      const served = await serve({});
      await served.put('cat', content);
      const sum = await shell(served, 'curl -sf $URL/catalogs/cat/api/v1/all | sha256sum');
      clearInterval(timer);
      expect(`sha256:${sum.slice(0, 64)}`).toBe(content.hash);
      expect(content.size).toBeGreaterThan(80_000_000);
      expect(most - before).toBeLessThan(40_000_000);
    },
  );

  it('20: identifies equal content from any source', async () => {
    const json = await contentOf({ 'x.json': jsonl({ schema: 'a', v: '<é>' }, { schema: 'b' }) });
    const yaml = await contentOf({ 'a/1.yaml': 'v: "<\\u00e9>"\nschema: a\n', 'b/1.yml': '{schema: b}\n' });
    expect(yaml.hash).toBe(json.hash);
  });

  it('22: returns unknown schemas unchanged', async () => {
    const lines = [
      '{"any":{"thing":[1,{"":""}]},"schema":"custom.example/v1"}\n',
      '{"name":"n","nested":{"schema":7},"package":"p","schema":"olm.unheard-of"}\n',
      '{"data":"<script>&amp;</script> \u00e9 \\u0007","schema":"x"}\n',
    ];
    const served = await serve({ cat: { 'a.json': lines.join('') } });
    expect((await served.get('/catalogs/cat/api/v1/all')).text).toBe(lines.join(''));
    expect((await served.get('/catalogs/cat/api/v1/metas?schema=olm.unheard-of')).text).toBe(lines[1]);
  });

  it('23: serves one all.json per catalog', async () => {
    const served = await serve({ cat: small });
    const answer = await served.get('/catalogs/cat/all.json', { Range: 'bytes=0-0' });
    expect(answer).toMatchObject({ status: 206, text: '{' });
    expect((await served.get('/catalogs/cat/')).status).toBe(404);
  });

  it.skipIf(!hasCurl)('26: lets a client check cheaply for changes', async () => {
    const served = await serve({ cat: small });
    const url = '$URL/catalogs/cat/api/v1/all';
    const code = `-sf -o body -w '%{http_code} %{size_download}\\n'`;
    const twice = `curl ${code} --etag-save tag ${url}; curl ${code} --etag-save tag --etag-compare tag ${url}`;
    const { length } = smallLines.join('');
    expect(await shell(served, twice)).toBe(`200 ${length}\n304 0\n`);
    expect(await shell(served, `curl ${code} -R ${url}; curl ${code} -z body ${url}`)).toBe(
      `200 ${length}\n304 0\n`,
    );
    const { catalogs } = JSON.parse((await served.get('/catalogs')).text) as { catalogs: object[] };
    expect(catalogs).toEqual([
      expect.objectContaining({
        hash: `sha256:${sha256(smallLines.join(''))}`,
        changedAt: storedAt.toISOString(),
      }),
    ]);
    // What was stored earlier comes back: for whoever only knows dates, too.
    const changedAt = new Date('2026-04-01T00:00:00Z');
    await served.put('cat', { 'a.json': jsonl({ schema: 'earlier' }) }, { changedAt });
    const since = { 'If-Modified-Since': lastModified };
    expect((await served.get('/catalogs/cat/api/v1/all', since)).status).toBe(200);
  });

  it.skipIf(!hasCurl)(
    '26: a download that was cut off goes on where it stopped, unless the catalog has changed',
    async () => {
      const served = await serve({ cat: largeCatalog(2_000_000) });
      const before = (await served.get('/catalogs/cat/api/v1/all')).body;
      const resume =
        'curl -sf -r 0-99999 -o part $URL/catalogs/cat/all.json; curl -sf -C - -o part $URL/catalogs/cat/all.json';
      expect((await shell(served, `${resume}; sha256sum part`)).slice(0, 64)).toBe(sha256(before));
    },
  );

  it('36: serves one consistent state while a catalog is replaced', async () => {
    const states = await Promise.all(['a', 'b', 'c'].map((seed) => contentOf(largeCatalog(1_000_000, seed))));
    const directory = await directoryWith();
    const served = await serve({});
    let done = false;
    const store = async (seed: string) => contentOf(largeCatalog(1_000_000, seed), { directory });
    await served.put('cat', await store('a'));
    const known = new Set(states.map(etagOf));
    let answers = 0;
    const client = async (): Promise<void> => {
      while (!done) {
        const { status, body, headers } = await served.get('/catalogs/cat/api/v1/all');
        expect(status).toBe(200);
        expect(`"sha256-${sha256(body)}"`).toBe(headers.etag);
        expect(known.has(headers.etag as string)).toBe(true);
        answers++;
      }
    };
    const clients = [client(), client(), client(), client()];
    for (let i = 1; i < 12 || answers < 20; i++) {
      await served.put('cat', await store('abc'[i % 3] as string));
      // What is served does not depend on its directory any more.
      if (i % 5 === 0) await pruneContents(directory, new Set(), new Date(Date.now() + 1e9));
    }
    done = true;
    await Promise.all(clients);
  });

  it('36: keeps the complete old or new content if killed while storing', async () => {
    const root = await directoryWith();
    const directory = path.join(root, 'cache');
    const before = await contentOf(small, { directory });
    await mkdir(path.join(root, 'catalog'));
    await writeFile(path.join(root, 'catalog/a.json'), largeCatalog(6_000_000)['catalog.json'] as string);
    const expected = await contentOf(largeCatalog(6_000_000));
    const module = (name: string) => JSON.stringify(path.join(projectRoot, 'dist', name));
    const script = `
      const { DirectoryCatalog } = await import(${module('catalog/catalog.js')});
      const { storeContent } = await import(${module('serve/catalogs/content-store.js')});
      class KilledCatalog extends DirectoryCatalog {
        async *metas(options) {
          let read = 0;
          for await (const meta of super.metas(options)) {
            if (++read === Number(process.env.KILL_AT_BLOB)) process.kill(process.pid, 'SIGKILL');
            yield meta;
          }
        }
      }
      await storeContent(new KilledCatalog(${JSON.stringify(path.join(root, 'catalog'))}), {
        directory: ${JSON.stringify(directory)}, key: 'k', now: () => new Date() });`;
    const preload = pathToFileURL(path.join(projectRoot, 'test/support/kill-at.js')).href;
    /** Stores the catalog in another process; returns the signal that ended it. */
    const storeKilled = async (env: Record<string, string>): Promise<string | null> => {
      await writeFile(path.join(directory, 'armed'), '');
      const child = spawn(process.execPath, ['--import', preload, '--input-type=module', '-e', script], {
        stdio: 'inherit',
        env: { ...process.env, OPMATE_TEST_KILL_BELOW: directory, ...env },
      });
      const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
      await rm(path.join(directory, 'armed'));
      const found = await openContent(expected.hash, { directory });
      if (found !== undefined) expect(sha256(await readAll(found))).toBe(sha256(await readAll(expected)));
      await found?.close();
      const kept = await openContent(before.hash, { directory });
      expect(kept).toBeDefined();
      await kept?.close();
      return signal;
    };
    // More is written by then than is kept in memory; then at each call that changes the directory, until there are no more.
    expect(await storeKilled({ KILL_AT_BLOB: String(expected.count) })).toBe('SIGKILL');
    let at = 1;
    while ((await storeKilled({ OPMATE_TEST_KILL_AT: String(at) })) === 'SIGKILL') at++;
    expect(at).toBeGreaterThan(5);
    const old = new Date(Date.now() - 1e9);
    for (const name of await readdir(directory)) {
      if (!name.startsWith('.')) continue;
      const file = path.join(directory, name, 'catalog.jsonl');
      await utimes(file, old, old).catch(() => utimes(path.join(directory, name), old, old));
    }
    const after = await contentOf(largeCatalog(6_000_000), { directory, now: () => new Date() });
    expect(after.hash).toBe(expected.hash);
    const names = await readdir(directory);
    expect(names.filter((name) => name.startsWith('.'))).toEqual([]);
    expect(await readFile(path.join(directory, after.hash.slice(7), 'catalog.jsonl'))).toHaveLength(
      expected.size,
    );
  });

  const only = { schema: 's', more: { a: [1] } };
  it.each<[string, object, string[]]>([
    ['only a schema', only, ['schema=s']],
    ['schema and name', { ...only, name: 'n' }, ['schema=s', 'name=n', 'schema=s&name=n']],
    ['schema and package', { ...only, package: 'p' }, ['schema=s', 'package=p', 'schema=s&package=p']],
    [
      'schema, package and name',
      { ...only, package: 'p', name: 'n' },
      ['name=n', 'package=p', 'schema=s&package=p&name=n'],
    ],
  ])('37: blobs with %s are found, change, go and come', async (_what, blob, queries) => {
    const other = { schema: 'other', name: 'other', package: 'other' };
    const served = await serve({});
    const find = async (query: string) => {
      const { text: lines } = await served.get(`/catalogs/cat/api/v1/metas?${query}`);
      return lines
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as unknown);
    };
    const states = [
      [other, blob],
      [{ ...blob, more: 'changed' }, other],
      [other],
      [blob, other, { ...blob, more: 2 }],
    ];
    for (const state of states) {
      await served.put('cat', { 'a.json': jsonl(...state) });
      const expected = state.filter((each) => each !== other);
      for (const query of queries) expect(await find(query)).toEqual(expected);
      expect(await find('schema=other')).toEqual([other]);
      const absent = ['name=n', 'package=p'].filter((query) => !queries.includes(query));
      for (const query of absent) expect(await find(query)).toEqual([]);
    }
  });

  it('38: does not store unchanged content again', async () => {
    const directory = await directoryWith();
    const source = await directoryWith(small);
    const options = { directory, key: 'sha256:digest-of-the-image' };
    const first = await storeContent(new DirectoryCatalog(source), { ...options, now: () => storedAt });
    await writeFile(path.join(source, 'catalog.json'), 'not read: this is no catalog');
    const again = await storeContent(new DirectoryCatalog(source), { ...options, now: () => new Date() });
    expect(again).toMatchObject({ hash: first.hash, storedAt });
    const served = await serve({});
    await served.put('cat', first);
    const { headers } = await served.get('/catalogs/cat/api/v1/all');
    await served.put('cat', again);
    expect((await served.get('/catalogs/cat/api/v1/all', { 'If-None-Match': headers.etag })).status).toBe(
      304,
    );
    expect((await served.get('/catalogs/cat/api/v1/all')).headers['last-modified']).toBe(lastModified);
  });
});

/** Returns content whose bytes are read by another function. */
function readingWith(content: StoredContent, read: ContentReader['read']): StoredContent {
  const file = {
    read: async (target: Buffer, position: number) => {
      await read(target, position);
      return target.length;
    },
    close: () => Promise.resolve(),
  };
  return new StoredContent(file, content.index, { hash: content.hash, storedAt }, undefined);
}

async function readAll(content: StoredContent): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of streamContent(content)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
