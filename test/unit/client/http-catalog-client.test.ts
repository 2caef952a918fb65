import { readFile, readdir, writeFile } from 'node:fs/promises';
import { type IncomingMessage, type RequestListener, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CatalogBlob } from '../../../src/client/catalog-blobs.js';
import { CatalogClient } from '../../../src/client/catalog-client.js';
import type { HttpClientOptions } from '../../../src/client/http-catalog-client.js';
import { OpmateError } from '../../../src/core/errors.js';
import { widgetCatalog } from '../../e2e/catalogs.js';
import { largeCatalog, serve } from '../../e2e/served-catalogs.js';
import { createAuthority } from '../../support/certificates.js';
import { directoryWith } from '../../support/temporary.js';

const widget = {
  'a.json': widgetCatalog,
  'b.json':
    '{"schema":"olm.deprecations","package":"widget","entries":[' +
    '{"reference":{"schema":"olm.package"},"message":"gone soon"},' +
    '{"reference":{"schema":"olm.channel","name":"beta"},"message":"use stable"}]}' +
    '{"schema":"example.com/notes","package":"widget","big":12345678901234567890}',
};

const quick = { maxAttempts: 2, retryDelayMs: 1, idleTimeoutMs: 10_000 };

function clientOf(url: string, options: HttpClientOptions = {}) {
  const client = CatalogClient.http(url, { ...quick, ...options });
  onTestFinished(() => client.close());
  return client;
}

async function widgets(options: HttpClientOptions = {}) {
  const served = await serve({ widgets: widget });
  return { served, client: clientOf(`${served.url}/catalogs/widgets`, options) };
}

/** A server that answers as a test wants; `seen` are the requests. */
async function fakeServer(answer: RequestListener, options: HttpClientOptions = {}) {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { seen, url, client: clientOf(`${url}/catalogs/fake`, options) };
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const failure = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OpmateError)) throw new Error(`no OpmateError: ${String(error)}`);
  expect(error.message).not.toContain('\n');
  return `${error.code}: ${error.message}`;
};

const named = ({ kind, name }: CatalogBlob): string => `${kind} ${name}`;

describe('client/http-catalog-client', () => {
  it('streams typed blobs in the order of the catalog, and other blobs unchanged', async () => {
    const { client } = await widgets();
    const blobs = await collect(client.all());
    expect(blobs.map(named)).toEqual([
      'package widget',
      'channel stable',
      'channel beta',
      ...['1.0.0', '1.1.0', '1.2.0', '1.3.0'].map((version) => `bundle widget.v${version}`),
      'deprecations ',
      'other ',
    ]);
    const [head] = blobs;
    expect(head?.kind === 'package' && head.blob.defaultChannel).toBe('stable');
    expect(blobs.at(-1)?.value['big']).toBe(12345678901234567890n);
  });

  it('sends schema, package and name as the query', async () => {
    const { client } = await widgets();
    const name = 'widget.v1.1.0';
    const [bundle, ...more] = await collect(client.metas({ schema: 'olm.bundle', package: 'widget', name }));
    expect(more).toEqual([]);
    expect(bundle?.kind === 'bundle' && bundle.blob.image).toBe('quay.io/example/widget-bundle:v1.1.0');
    expect(await collect(client.metas({ package: 'none' }))).toEqual([]);
    expect((await collect(client.metas({}))).length).toBe(9);
  });

  it('lists packages, channels, entries and bundles', async () => {
    const { client } = await widgets();
    expect(await client.listPackages()).toEqual(['widget']);
    expect(await client.getPackage('widget')).toEqual({
      name: 'widget',
      defaultChannel: 'stable',
      deprecation: 'gone soon',
      channels: [
        { name: 'beta', head: 'widget.v1.3.0', deprecation: 'use stable' },
        { name: 'stable', head: 'widget.v1.3.0' },
      ],
    });
    const entries = await client.listEntries('widget');
    expect(entries.map(({ channel, name, replaces }) => `${channel} ${name} ${replaces}`)).toEqual(
      ['beta', 'stable'].flatMap((channel) => [
        `${channel} widget.v1.0.0 `,
        `${channel} widget.v1.1.0 widget.v1.0.0`,
        `${channel} widget.v1.2.0 widget.v1.1.0`,
        `${channel} widget.v1.3.0 widget.v1.2.0`,
      ]),
    );
    const key = { package: 'widget', name: 'widget.v1.0.0' };
    expect((await client.getBundle(key)).image).toBe('quay.io/example/widget-bundle:v1.0.0');
    expect((await collect(client.bundles())).length).toBe(4);
  });

  it('names missing packages and bundles', async () => {
    const { served, client } = await widgets();
    const url = `${served.url}/catalogs/widgets`;
    expect(await failure(client.getPackage('x'))).toBe(`NOT_FOUND: ${url}: package "x" not found`);
    expect(await failure(client.listEntries('x'))).toBe(`NOT_FOUND: ${url}: package "x" not found`);
    expect(await failure(client.getBundle({ package: 'widget', name: 'x' }))).toBe(
      `NOT_FOUND: ${url}: package "widget", bundle "x" not found`,
    );
    const other = clientOf(`${served.url}/catalogs/other`);
    expect(await failure(other.listPackages())).toBe(
      `NOT_FOUND: ${served.url}/catalogs/other/api/v1/metas: not found`,
    );
  });

  it('lists the catalogs of a server and queries one', async () => {
    const { served } = await widgets();
    const server = clientOf(`${served.url}/`);
    const [listed, ...more] = await server.catalogs();
    expect(more).toEqual([]);
    expect(listed).toMatchObject({ name: 'widgets', count: 9, packages: 1, labels: {} });
    expect(await clientOf(listed?.urls.base ?? '').listPackages()).toEqual(['widget']);
    expect(await failure(server.listPackages())).toBe(
      `USAGE: ${served.url}: expected the URL of a catalog, got that of a server`,
    );
  });

  it.each([
    'nonsense',
    'ftp://host/catalogs/a',
    'http://user:secret@host/catalogs/a',
    'http://host/catalogs/a?x',
  ])('refuses the URL %s', (url) => {
    expect(() => CatalogClient.http(url)).toThrow(/is not the http or https URL of a catalog/);
    expect(() => CatalogClient.http(url)).not.toThrow(/secret/);
  });

  it('reports whether a catalog has changed', async () => {
    const { served, client } = await widgets();
    expect(await client.refresh()).toEqual({ changed: true });
    expect(await client.refresh()).toEqual({ changed: false });
    await served.put('widgets', { 'a.json': '{"schema":"olm.package","name":"gadget"}' });
    expect(await client.refresh()).toEqual({ changed: true });
    expect(await client.refresh()).toEqual({ changed: false });
    expect(await client.listPackages()).toEqual(['gadget']);
  });

  it('leaves a stream early and sends further requests', async () => {
    const served = await serve({ big: largeCatalog(20_000_000) });
    const client = clientOf(`${served.url}/catalogs/big`);
    for await (const { name } of client.all()) if (name === 'b3') break;
    expect((await collect(client.metas({ name: 'b7' }))).map(named)).toEqual(['bundle b7']);
  });

  it('stops when its signal is aborted', async () => {
    const served = await serve({ big: largeCatalog(20_000_000) });
    const client = clientOf(`${served.url}/catalogs/big`);
    const cancel = new AbortController();
    const reading = (async () => {
      for await (const { name } of client.all({ signal: cancel.signal })) if (name === 'b3') cancel.abort();
    })();
    expect(await failure(reading)).toMatch(/^CANCELLED: /);
    expect(await failure(client.listPackages({ signal: cancel.signal }))).toMatch(/^CANCELLED: /);
  });

  it('trusts the certificate authority of the option, and names the option without it', async () => {
    const authority = createAuthority();
    const served = await serve({ widgets: widget }, { certificate: authority.issue() });
    const url = `https://127.0.0.1:${served.port}/catalogs/widgets`;
    expect(await clientOf(url, { ca: authority.cert }).listPackages()).toEqual(['widget']);
    const error = await clientOf(url)
      .listPackages()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'NETWORK',
      hint: 'set the option ca to its certificate authority',
    });
    expect(() => CatalogClient.http(url, { ca: 'none' })).toThrow('option ca: invalid certificate');
  });
});

it('refuses a redirect to a private address without naming options of a session', async () => {
  const { client } = await fakeServer((_request, response) => {
    response.writeHead(302, { location: 'http://10.0.0.1/' }).end();
  });
  const error = await client.listPackages().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'UNSAFE', hint: undefined });
});

it('names the scheme of a URL for a server that speaks plain HTTP, and no option of a session', async () => {
  const served = await serve({ widgets: widget });
  const client = clientOf(`https://127.0.0.1:${served.port}/catalogs/widgets`);
  const error = await client.listPackages().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: 'NETWORK',
    problem: 'speaks plain HTTP, not HTTPS',
    hint: 'use an http:// URL',
  });
});

describe('client/http-catalog-client with a cache directory', () => {
  it('fetches only changed content and keeps one copy', async () => {
    const directory = path.join(await directoryWith(), 'new/cache');
    const { served, client } = await widgets({ cacheDirectory: directory });
    const first = await client.refresh();
    expect(first).toEqual({ changed: true, hash: served.set.find('widgets')?.content.hash });
    const content = (await readdir(directory)).find((name) => name.endsWith('.jsonl'));
    expect(`sha256:${content}`).toBe(`${first.hash}.jsonl`);
    expect((await collect(client.all())).length).toBe(9);
    const later = clientOf(`${served.url}/catalogs/widgets`, { cacheDirectory: directory });
    expect(await later.refresh()).toEqual({ changed: false, hash: first.hash });
    await served.put('widgets', { 'a.json': '{"schema":"olm.package","name":"gadget"}' });
    expect((await collect(later.all())).map(named)).toEqual(['package gadget']);
    expect((await readdir(directory)).sort().map((name) => path.extname(name))).toHaveLength(2);
    expect((await client.refresh()).changed).toBe(false);
  });

  it('fetches damaged content again and ignores foreign records', async () => {
    const directory = await directoryWith();
    const { served, client } = await widgets({ cacheDirectory: directory });
    await client.refresh();
    const files = await readdir(directory);
    const content = path.join(directory, files.find((name) => name.endsWith('.jsonl')) as string);
    const record = path.join(directory, files.find((name) => name.endsWith('.json')) as string);
    const sound = await readFile(content, 'utf8');
    await writeFile(content, sound.replace('widget', 'wodget'));
    expect((await collect(client.all())).map(named)[0]).toBe('package widget');
    expect(await readFile(content, 'utf8')).toBe(sound);
    const fields = JSON.parse(await readFile(record, 'utf8')) as object;
    for (const wrong of [
      { hash: '../../etc/passwd' },
      { url: 'http://else' },
      { size: 'x' },
      { etag: 'a\nb: c' },
    ]) {
      await writeFile(record, JSON.stringify({ ...fields, ...wrong }));
      const later = clientOf(`${served.url}/catalogs/widgets`, { cacheDirectory: directory });
      expect((await collect(later.all())).length).toBe(9);
    }
    await writeFile(record, '{');
    expect((await collect(client.all())).length).toBe(9);
  });

  it('keeps its copy if a response is truncated or too large', async () => {
    const directory = await directoryWith();
    let isBroken = false;
    const line = '{"schema":"olm.package","name":"widget"}\n';
    const { client } = await fakeServer(
      (_request, response) => {
        if (!isBroken) return void response.setHeader('ETag', '"a"').end(line);
        response.write(line.repeat(10), () => response.destroy());
      },
      { cacheDirectory: directory, maxBytes: 5_000 },
    );
    await client.refresh();
    const before = (await readdir(directory)).sort();
    isBroken = true;
    expect(await failure(client.refresh())).toMatch(/^NETWORK: .*connection cut /);
    expect((await readdir(directory)).sort()).toEqual(before);
    const other = await fakeServer((_request, response) => void response.end(line.repeat(1000)), {
      cacheDirectory: directory,
      maxBytes: 5_000,
    });
    expect(await failure(other.client.refresh())).toMatch(/^LIMIT: .*larger than 5000 bytes/);
    expect((await readdir(directory)).sort()).toEqual(before);
  });

  it('reports a directory that is not writable', async () => {
    const directory = await directoryWith({ file: '' });
    const { client } = await widgets({ cacheDirectory: path.join(directory, 'file/below') });
    expect(await failure(client.refresh())).toContain(`${directory}/file/below: not a directory`);
  });
});

describe('client/http-catalog-client and servers that do not behave', () => {
  it.each([
    ['a broken line', '{"schema":"olm.package","name":"a"}\n{"schema":\n', /^SYNTAX: .*: line 2: /],
    ['no object', '[1]\n', /^INVALID: .*: line 1: expected an object, got a list/],
    ['no schema', '{"name":"x"}\n', /^INVALID: .*: line 1: .*is missing root schema field/],
    [
      'a wrong type of a name',
      '{"schema":"x","name":5}\n',
      /^INVALID: .*: line 1: expected value for key "name"/,
    ],
    [
      'a wrong type of a field',
      '\n{"schema":"olm.bundle","name":"a","image":5}\n',
      /^INVALID: .*: line 2: parse bundle: .*cannot unmarshal number/,
    ],
    ['a web page', '<html>\n', /^SYNTAX: .*: line 1: /],
    ['nesting without end', `${'['.repeat(100_000)}\n`, /^SYNTAX: .*: line 1: .*max depth/],
  ])('refuses %s', async (_what, body, message) => {
    const { client } = await fakeServer((_request, response) => void response.end(body));
    expect(await failure(collect(client.all()))).toMatch(message);
  });

  it('refuses an endless line and an endless response', async () => {
    const endless = (piece: string) => (_request: IncomingMessage, response: NodeJS.WritableStream) => {
      const more = (): void => {
        while (response.writable && response.write(piece));
      };
      response.on('drain', more);
      more();
    };
    const line = await fakeServer(endless('x'.repeat(10_000)), { maxBlobBytes: 1_000_000 });
    expect(await failure(collect(line.client.all()))).toMatch(
      /^LIMIT: .*a blob is larger than 1000000 bytes/,
    );
    const lines = await fakeServer(endless('{"schema":"x"}\n'.repeat(100)), { maxBytes: 1_000_000 });
    expect(await failure(collect(lines.client.all()))).toMatch(/^LIMIT: .*response larger than 1000000/);
    const listing = await fakeServer(endless(' '.repeat(100_000)));
    expect(await failure(listing.client.catalogs())).toMatch(/^LIMIT: .*catalogs is larger than/);
  });

  it('refuses an unrequested 304', async () => {
    const { client, url } = await fakeServer((_request, response) => void response.writeHead(304).end());
    const message = `REGISTRY: ${url}/catalogs/fake/api/v1/all: server returned 304 Not Modified to an unconditional request`;
    expect(await failure(collect(client.all()))).toBe(message);
    expect(await failure(client.refresh())).toBe(message);
  });

  it('refuses unrequested encodings and blobs', async () => {
    const coded = await fakeServer(
      (_request, response) => void response.setHeader('Content-Encoding', 'gzip').end('x'),
    );
    expect(await failure(coded.client.listPackages())).toMatch(
      /^INVALID: .*unexpected content encoding in the response/,
    );
    expect(coded.seen[0]?.headers['accept-encoding']).toBe('identity');
    const other = await fakeServer((_request, response) => void response.end('{"schema":"a","name":"b"}\n'));
    expect(await failure(other.client.listPackages())).toMatch(
      /^INVALID: .*unexpected blob in the response: "a" "" "b"/,
    );
  });

  it('retries temporary failures, up to the maximum', async () => {
    let left = 1;
    const flaky = await fakeServer((_request, response) => {
      if (left-- > 0) response.writeHead(503).end();
      else response.end('{"schema":"olm.package","name":"a"}\n');
    });
    expect(await flaky.client.listPackages()).toEqual(['a']);
    expect(flaky.seen).toHaveLength(2);
    const down = await fakeServer((_request, response) => void response.writeHead(500).end('{"errors":[]}'));
    expect(await failure(down.client.listPackages())).toBe(
      `REGISTRY: ${down.url}/catalogs/fake/api/v1/metas: server returned 500 Internal Server Error (after 2 attempts)`,
    );
    const denied = await fakeServer((_request, response) => void response.writeHead(403).end());
    expect(await failure(denied.client.listPackages())).toMatch(/^AUTH: .*server returned 403 Forbidden$/);
    expect(denied.seen).toHaveLength(1);
  });

  it('fails for a silent or unreachable server', async () => {
    const silent = await fakeServer(() => undefined, { idleTimeoutMs: 40 });
    expect(await failure(silent.client.listPackages())).toMatch(/^NETWORK: .*nothing received for 0.04 s/);
    const stalls = await fakeServer((_request, response) => void response.write('{"schema":"a"}\n'), {
      idleTimeoutMs: 40,
    });
    expect(await failure(collect(stalls.client.all()))).toMatch(/^NETWORK: .*nothing received for 0.04 s/);
    expect(await failure(clientOf('http://127.0.0.1:1/catalogs/a').listPackages())).toMatch(
      /^NETWORK: 127.0.0.1:1: connection refused/,
    );
  });

  it('reports a truncated response', async () => {
    const { client } = await fakeServer((_request, response) => {
      response.writeHead(200, { 'Content-Length': 1000 });
      response.write('{"schema":"a"}\n', () => response.destroy());
    });
    expect(await failure(collect(client.all()))).toMatch(/^NETWORK: .*connection cut /);
  });

  it.each([
    ['{"catalogs":5}', /INVALID: .*catalogs: expected a list/],
    ['{}', /INVALID: .*not a list of catalogs/],
    ['{"catalogs":[{"name":{}}]}', /INVALID: .*catalogs\[0\]\.name: expected a string/],
    ['{"catalogs":[{"size":1.5}]}', /INVALID: .*size: expected a 64-bit integer/],
    ['nothing', /SYNTAX: /],
  ])('refuses the listing %s', async (body, message) => {
    const { client } = await fakeServer((_request, response) => void response.end(body));
    expect(await failure(client.catalogs())).toMatch(message);
  });

  it('reports every content as changed if the server ignores conditional requests', async () => {
    const plain = await fakeServer((_request, response) => void response.end());
    expect(await plain.client.refresh()).toEqual({ changed: true });
    expect(await plain.client.refresh()).toEqual({ changed: true });
    const dated = await fakeServer((request, response) => {
      const date = 'Wed, 04 Mar 2026 05:06:07 GMT';
      const isKnown = request.headers['if-modified-since'] === date;
      response.writeHead(isKnown ? 304 : 200, { 'Last-Modified': date }).end();
    });
    expect(await dated.client.refresh()).toEqual({ changed: true });
    expect(await dated.client.refresh()).toEqual({ changed: false });
  });
});
