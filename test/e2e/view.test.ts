import { chmod, readFile, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { runInNewContext } from 'node:vm';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectBrowser, findViolations, hasBrowser, overflow, screens } from '../support/browser.js';
import { serveOperatorSet } from '../support/operator-set.js';
import { startFaultRegistry } from '../support/fault-registry.js';
import { busy } from '../support/waiting.js';
import { type CommandUnderWay, isExecutable, projectRoot, useSandbox } from '../support/command-line.js';
import type { ExportedPage } from '../../src/view/responses.js';
import { handleExportedRequest } from '../../src/view/exported-requests.js';

const withBrowser = describe.skipIf(!hasBrowser);
if (!hasBrowser) console.warn('view: no Chromium here, so its page is not tested');

const sandbox = useSandbox();

interface Overview {
  run: string;
  bundles: number;
  packages: { name: string; change?: string }[];
}

const scriptIcon = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="top.ran='icon'">
<script>top.ran = 'icon'; fetch('https://evil.test/icon')</script><rect width="9" height="9" fill="red"/></svg>`;
const image = '<img src=x onerror="window.ran=1">';
const hostile = `# ${image}

</script><script>window.ran = 1</script> **bold** and [a link](javascript:window.ran=1), [good](https://good.test/),
![picture](https://evil.test/picture.png)

- one ${image}
- two
`;

function bundle(packageName: string, version: string, more: object = {}): object {
  return {
    schema: 'olm.bundle',
    package: packageName,
    name: `${packageName}.v${version}`,
    image: `registry.test/${packageName}:v${version}`,
    properties: [
      { type: 'olm.package', value: { packageName, version } },
      {
        type: 'olm.csv.metadata',
        value: {
          displayName: packageName === 'widget' ? 'Widget Maker' : image,
          description: hostile,
          provider: { name: image },
          links: [{ name: image, url: 'javascript:window.ran=1' }],
          installModes: [{ type: 'AllNamespaces', supported: true }],
        },
      },
      { type: 'olm.gvk', value: { group: 'widgets.test', version: 'v1', kind: 'Widget' } },
    ],
    relatedImages: [{ name: 'operand', image: `registry.test/operand:v${version}` }],
    ...more,
  };
}

const widget = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable', description: 'Makes **widgets**.' },
  {
    schema: 'olm.channel',
    package: 'widget',
    name: 'stable',
    entries: [
      { name: 'widget.v1.0.0' },
      { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' },
      {
        name: 'widget.v1.2.0',
        replaces: 'widget.v1.0.0',
        skips: ['widget.v1.1.0'],
        skipRange: '>=1.0.0 <1.2.0',
      },
    ],
  },
  { schema: 'olm.channel', package: 'widget', name: 'old', entries: [{ name: 'widget.v1.0.0' }] },
  ...['1.0.0', '1.1.0', '1.2.0'].map((version) => bundle('widget', version)),
  {
    schema: 'olm.deprecations',
    package: 'widget',
    entries: [{ reference: { schema: 'olm.bundle', name: 'widget.v1.0.0' }, message: `loses data ${image}` }],
  },
];
const gadget = [
  {
    schema: 'olm.package',
    name: 'gadget',
    defaultChannel: 'beta',
    description: hostile,
    icon: { base64data: Buffer.from(scriptIcon).toString('base64'), mediatype: 'image/svg+xml' },
  },
  { schema: 'olm.channel', package: 'gadget', name: 'beta', entries: [{ name: 'gadget.v0.1.0' }] },
  bundle('gadget', '0.1.0'),
];
const broken = [
  ...widget,
  ...gadget,
  {
    schema: 'olm.channel',
    package: 'gadget',
    name: 'two-heads',
    entries: [{ name: 'gadget.v0.1.0' }, { name: `gadget.${image}` }],
  },
];

function rankOf(severity: string): number {
  return ['error', 'warning', 'notice'].indexOf(severity);
}

function text(blobs: readonly object[]): string {
  return blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
}

/** A package with a channel where each version replaces the one before. */
function chainOf(name: string, versions: readonly string[]): object[] {
  const entries = versions.map((version, at) => ({
    name: `${name}.v${version}`,
    ...(at > 0 && { replaces: `${name}.v${versions[at - 1]}` }),
  }));
  return [
    { schema: 'olm.package', name, defaultChannel: 'stable' },
    { schema: 'olm.channel', package: name, name: 'stable', entries },
    ...versions.map((version) => bundle(name, version)),
  ];
}

async function view(
  ...all: (string | Record<string, string>)[]
): Promise<{ url: string; command: CommandUnderWay }> {
  const args = all.filter((arg) => typeof arg === 'string');
  const env = all.find((arg) => typeof arg !== 'string');
  const command = sandbox.serve(['view', ...args], { timeoutMs: 120_000, ...(env !== undefined && { env }) });
  return { url: await command.firstLine(), command };
}

/** The status and headers of an answer, for a `Host` of any kind. */
function ask(
  url: string,
  {
    host,
    method = 'GET',
    path = '',
    ifNoneMatch,
    headers: more,
    content,
  }: {
    host?: string;
    method?: string;
    path?: string;
    ifNoneMatch?: string;
    headers?: Record<string, string>;
    content?: string;
  },
): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...more,
      ...(host !== undefined && { host }),
      ...(ifNoneMatch !== undefined && { 'If-None-Match': ifNoneMatch }),
    };
    const sent = request(new URL(path, url), { method, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(parts).toString(),
        }),
      );
    });
    sent.on('error', reject).end(content);
  });
}

/** Presses a button that saves a file, and returns what it saves. */
async function save(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByText(button, { exact: true }).first().click(),
  ]);
  return readText(await download.createReadStream());
}

/** Serves the files of a directory below a path, as any web server does. */
async function serveStatically(directory: string, below: string): Promise<{ url: string; close(): void }> {
  const types: Record<string, string> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };
  const server = createServer((asked, response) => {
    const name =
      decodeURIComponent((asked.url ?? '').replace(/\?.*/s, '')).slice(below.length) || 'index.html';
    readFile(path.join(directory, path.normalize(`/${name}`))).then(
      (content) => {
        response.setHeader('Content-Type', types[name.replace(/.*\./s, '')] ?? 'application/octet-stream');
        response.end(content);
      },
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${below}`, close: () => void server.close() };
}

beforeAll(async () => {
  await sandbox.write({
    'catalog/catalog.json': text([...widget, ...gadget]),
    'older/catalog.json': text([
      ...widget
        .slice(0, -1)
        .filter((blob) => !('name' in blob) || blob.name !== 'widget.v1.2.0')
        .map((blob) =>
          'entries' in blob && Array.isArray(blob.entries)
            ? {
                ...blob,
                entries: blob.entries.filter(({ name }: { name: string }) => !name.endsWith('1.2.0')),
              }
            : blob,
        ),
      { schema: 'olm.package', name: 'doohickey', defaultChannel: 'a' },
    ]),
    'broken/catalog.json': text(broken),
  });
});

describe('opmate view', () => {
  it.each([[['view', 'plain']], [['serve', 'plain', '--port', '0', '--ui', '0']]])(
    'names commands in hints of findings: %j',
    async (args) => {
      const plain = [
        { schema: 'olm.package', name: 'plain', defaultChannel: 'stable' },
        { schema: 'olm.channel', package: 'plain', name: 'stable', entries: [{ name: 'plain.v1.0.0' }] },
        {
          ...bundle('plain', '1.0.0'),
          properties: [{ type: 'olm.package', value: { packageName: 'plain', version: '1.0.0' } }],
        },
      ];
      await sandbox.write({ 'plain/catalog.json': text(plain) });
      const command = sandbox.serve(args, { timeoutMs: 120_000 });
      const url = await command.firstLine();
      const readHints = async () => {
        const { problems } = JSON.parse((await ask(url, { path: 'api/problems' })).body) as {
          problems: { check: string; hint: string }[];
        };
        return problems.filter(({ check }) => check === 'csv-metadata').map(({ hint }) => hint);
      };
      await expect
        .poll(readHints, busy)
        .toEqual(['render it again with opmate render: consoles cannot show it']);
      await command.stop();
    },
  );

  it('prints the URL, accepts GET for addresses and localhost only, and stops on a signal', async () => {
    const command = sandbox.start(['view', 'catalog']);
    const url = await command.firstLine();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    const page = await ask(url, {});
    expect(page.status).toBe(200);
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(page.headers['x-content-type-options']).toBe('nosniff');
    expect(page.headers['referrer-policy']).toBe('no-referrer');
    expect((await ask(url, { host: 'localhost:1' })).status).toBe(200);
    expect((await ask(url, { host: '[::1]:80' })).status).toBe(200);
    for (const host of ['evil.test', 'evil.test:80', '127.0.0.1.evil.test', 'localhost.evil.test', 'a b']) {
      const answer = await ask(url, { host, path: 'api/catalog' });
      expect([host, answer.status]).toEqual([host, 421]);
      expect(answer.body).not.toContain('widget');
    }
    expect((await ask(url, { method: 'POST', path: 'api/catalog' })).status).toBe(405);
    expect(await ask(url, { method: 'HEAD', path: 'api/catalog' })).toMatchObject({ status: 200, body: '' });
    expect((await ask(url, { path: '../../package.json' })).status).toBe(404);
    const missing = await ask(url, { path: 'api/package?package=nothing' });
    expect([missing.status, JSON.parse(missing.body)]).toEqual([
      404,
      { error: 'package "nothing" not found', hint: 'use a known package: "gadget", "widget"' },
    ]);
    const icon = await ask(url, { path: 'icon?package=gadget' });
    expect(icon.headers['content-type']).toBe('image/svg+xml');
    expect(icon.headers['content-security-policy']).toContain('sandbox');
    const { code, stdout } = await command.stop('SIGTERM');
    expect([code, stdout]).toEqual([0, `${url}\n`]);
  });

  it('reports a catalog that cannot be opened', async () => {
    const missing = await sandbox.run(['view', './nothing-there']);
    expect([missing.code, missing.stdout]).toEqual([1, '']);
    expect(missing.stderr).toContain('./nothing-there');
    const port = await sandbox.run(['view', 'catalog', '--port', 'x']);
    expect([port.code, port.stderr]).toEqual([
      2,
      expect.stringContaining('--port "x": expected an integer from 0 to 65535'),
    ]);
  });

  it('reloads files after an edit, also of the compared catalog', async () => {
    await sandbox.write({ 'edited/a.json': text(gadget), 'base/a.json': text(gadget) });
    const { url, command } = await view('edited', '--compare', 'base');
    const read = async (path: string): Promise<{ status: number; headers: object; value: Overview }> => {
      const { status, headers, body } = await ask(url, { path });
      return { status, headers, value: JSON.parse(body) as Overview };
    };
    const first = await read('api/catalog');
    expect(first.value).toMatchObject({ bundles: 1, packages: [{ name: 'gadget' }] });
    expect(first.headers).toMatchObject({ 'opmate-run': first.value.run });
    expect((await read('api/catalog')).value.run).toBe(first.value.run);
    // What the browser keeps needs no second answer, for any question about the same state.
    await expect.poll(async () => (await read('api/state')).value).toMatchObject({ isChecking: false });
    const { etag } = (await ask(url, { path: 'api/state' })).headers;
    for (const one of ['api/state', 'api/catalog', 'api/package?package=gadget']) {
      const answer = await ask(url, { path: one, ifNoneMatch: String(etag) });
      expect([one, answer.status, answer.body]).toEqual([one, 304, '']);
    }

    // The blobs of the package move within the file, and there is another file.
    await sandbox.write({ 'edited/a.json': `\n\n${text(gadget)}`, 'edited/b.json': text(widget) });
    const second = await read('api/catalog');
    expect(second.value).toMatchObject({ bundles: 4, packages: [{ name: 'gadget' }, { name: 'widget' }] });
    expect(second.value.packages.map(({ change }) => change)).toEqual([undefined, 'added']);
    expect(second.value.run).not.toBe(first.value.run);
    expect((await read('api/bundle?package=gadget&bundle=gadget.v0.1.0')).status).toBe(200);

    await sandbox.write({ 'base/b.json': text(widget) });
    const third = await read('api/catalog');
    expect(third.value.packages.map(({ change }) => change)).toEqual([undefined, undefined]);

    const directory = path.join(sandbox.work, 'edited');
    await rename(directory, `${directory}-away`);
    const gone = await read('api/catalog');
    expect(gone).toMatchObject({
      status: 404,
      value: { error: expect.stringContaining('edited') as string },
    });
    await rename(`${directory}-away`, directory);
    expect((await read('api/catalog')).value.bundles).toBe(4);
    expect((await command.stop()).code).toBe(0);
  });

  it('opens the default browser', async () => {
    await sandbox.write({ 'bin/xdg-open': '#!/bin/sh\nprintf %s "$1" > opened\n' });
    await chmod(path.join(sandbox.work, 'bin/xdg-open'), 0o755);
    const environment = { PATH: `${path.join(sandbox.work, 'bin')}:${process.env['PATH'] ?? ''}` };
    const command = sandbox.start(['view', 'catalog', '--open'], { timeoutMs: 120_000, env: environment });
    const url = await command.firstLine();
    const opened = path.join(sandbox.work, 'opened');
    await expect.poll(() => readFile(opened, 'utf8').catch(() => '')).toBe(url);
    expect((await command.stop()).code).toBe(0);
  });

  it('names the file of a selection by what is written by default', async () => {
    const { url, command } = await view('catalog', '--edit');
    const { origin, searchParams } = new URL(url);
    const headers = {
      'Opmate-Token': searchParams.get('token') ?? '',
      'Content-Type': 'application/json',
    };
    const content = JSON.stringify({
      kind: 'filter',
      catalog: '',
      picks: [{ package: 'widget' }],
      fileDigest: '',
    });
    const { status } = await ask(`${origin}/`, { method: 'POST', path: 'api/edit/write', headers, content });
    expect(status).toBe(200);
    expect(await readFile(path.join(sandbox.work, 'catalog-filter.yaml'), 'utf8')).toContain(
      'kind: CatalogFilter',
    );
    expect((await command.stop()).code).toBe(0);
  });

  // Only Node.js loads a module of NODE_OPTIONS.
  it.skipIf(isExecutable)(
    'keeps the old or has the new selection when it is killed while it saves',
    async () => {
      const preload = pathToFileURL(path.join(projectRoot, 'test/support/kill-at.js')).href;
      const directory = path.join(sandbox.work, 'saved');
      const file = path.join(directory, 'selection.yaml');
      const save = async (at?: number): Promise<string> => {
        await rm(directory, { recursive: true, force: true });
        await sandbox.write({ 'saved/selection.yaml': 'old\n' });
        const { url, command } = await view('catalog', '--edit', '--to', 'saved/selection.yaml', {
          NODE_OPTIONS: `--import ${preload}`,
          OPMATE_TEST_KILL_BELOW: directory,
          ...(at !== undefined && { OPMATE_TEST_KILL_AT: String(at) }),
        });
        const { origin, searchParams } = new URL(url);
        const headers = {
          'Opmate-Token': searchParams.get('token') ?? '',
          'Content-Type': 'application/json',
        };
        const send = (action: string, fileDigest: string) =>
          ask(`${origin}/`, {
            ...{ method: 'POST', path: `api/edit/${action}`, headers },
            content: JSON.stringify({
              kind: 'filter',
              catalog: '',
              picks: [{ package: 'widget' }],
              fileDigest,
            }),
          });
        const { fileDigest } = JSON.parse((await send('plan', '')).body) as { fileDigest: string };
        await writeFile(path.join(directory, 'armed'), '');
        const written = await send('write', fileDigest).catch(() => undefined);
        const { code } = at === undefined ? await command.stop() : await command.result;
        expect([at, written?.status, code]).toEqual(at === undefined ? [at, 200, 0] : [at, undefined, null]);
        return readFile(file, 'utf8');
      };
      const whole = await save();
      expect(whole).toContain('kind: CatalogFilter');
      const calls = (await readFile(path.join(directory, 'calls'), 'utf8')).trim().split('\n');
      const swap = calls.findIndex((call) => call.startsWith('rename'));
      expect(swap).toBeGreaterThan(0);
      for (const at of calls.keys())
        expect([at, await save(at + 1)]).toEqual([at, at > swap ? whole : 'old\n']);
      const again = await view('catalog', '--edit', '--to', 'saved/selection.yaml');
      expect((await again.command.stop()).code).toBe(0);
    },
  );

  it('plans and writes a selection for its own page only', async () => {
    const { url, command } = await view('catalog', '--edit', '--to', 'written.yaml');
    const { origin, searchParams, hash } = new URL(url);
    const token = searchParams.get('token') ?? '';
    expect([token, hash]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), '#/edit']);
    const request = { kind: 'filter', catalog: '', picks: [{ package: 'widget', channel: 'stable' }] };
    const good = { 'Opmate-Token': token, 'Content-Type': 'application/json' };
    const send = async (
      path: string,
      headers: Record<string, string>,
      content = JSON.stringify(request),
    ): Promise<{ status: number; body: string }> =>
      ask(`${origin}/`, { method: 'POST', path: `api/edit/${path}`, headers, content });
    for (const headers of [
      { 'Content-Type': 'application/json' },
      { ...good, 'Opmate-Token': token.replace(/./g, '0') },
      { ...good, Origin: 'http://evil.test' },
      { ...good, 'Sec-Fetch-Site': 'cross-site' },
      { ...good, Origin: 'null' },
    ]) {
      expect([headers, (await send('write', headers)).status]).toEqual([headers, 403]);
    }
    expect((await send('write', { ...good, Host: 'evil.test' })).status).toBe(421);
    expect((await send('write', { ...good, 'Content-Type': 'text/plain' })).status).toBe(415);
    for (const content of [
      ...['', '[]', 'null', '{"kind":"filter"}', '{', `"${'x'.repeat(2_000_000)}"`],
      JSON.stringify({ ...request, picks: [{ package: 'widget', versions: 'x' }] }),
      JSON.stringify({ ...request, picks: [{ package: 'widget', versions: [] }] }),
      JSON.stringify({ ...request, picks: Array.from({ length: 10_001 }, () => ({ package: 'widget' })) }),
      JSON.stringify({ ...request, defaultChannels: [null] }),
      JSON.stringify({ ...request, catalog: 'x'.repeat(1_001) }),
    ]) {
      expect([content.slice(0, 90), (await send('write', good, content)).status]).toEqual([
        content.slice(0, 90),
        400,
      ]);
    }
    for (const versions of [['1.0.0 || >9'], ['x'], ['1.0.0\n']]) {
      const picks = [{ package: 'widget', channel: 'stable', versions }];
      const { status, body } = await send('plan', good, JSON.stringify({ ...request, picks }));
      expect([versions, status]).toEqual([versions, 422]);
      expect(body).toContain('invalid version');
    }
    const gone = { ...request, picks: [{ package: 'wigdet' }] };
    const missing = await send('plan', good, JSON.stringify(gone));
    expect([missing.status, missing.body]).toEqual([404, expect.stringContaining('did you mean')]);
    expect((await send('plan', good)).status).toBe(200);
    const imageset = JSON.stringify({ ...request, kind: 'imageset' });
    expect((await send('write', good, imageset)).body).toContain('specify the catalog image');
    const written = path.join(sandbox.work, 'written.yaml');
    await expect(readFile(written)).rejects.toThrow('ENOENT');

    // The file is that of --to, whatever a request names; a link of that name stays one.
    await sandbox.write({ 'elsewhere/linked.yaml': '' });
    await symlink('elsewhere/linked.yaml', written);
    const { fileDigest } = JSON.parse((await send('plan', good)).body) as { fileDigest: string };
    const others = { file: '../x.yaml', path: '/tmp/x.yaml', to: 'x.yaml' };
    const unread = await send('write', good, JSON.stringify({ ...request, ...others }));
    expect([unread.status, unread.body]).toEqual([422, expect.stringContaining('written.yaml: has changed')]);
    const named = JSON.stringify({ ...request, ...others, fileDigest });
    expect(JSON.parse((await send('write', { ...good, Origin: origin }, named)).body)).toMatchObject({
      file: 'written.yaml',
    });
    expect(await readlink(written)).toBe('elsewhere/linked.yaml');
    expect(await readFile(path.join(sandbox.work, 'elsewhere/linked.yaml'), 'utf8')).toContain(
      'CatalogFilter',
    );
    expect(await readdir(path.join(sandbox.work, 'elsewhere'))).toEqual(['linked.yaml']);
    expect((await command.stop()).code).toBe(0);
    const filtered = await sandbox.run(['catalog', 'filter', 'catalog', '-f', 'written.yaml', '--to', '-']);
    expect([filtered.code, filtered.stdout.match(/"olm.channel"/g)?.length]).toEqual([0, 1]);

    const plain = await view('catalog');
    expect((await ask(plain.url, { method: 'POST', path: 'api/edit/plan' })).status).toBe(405);
    expect((await plain.command.stop()).code).toBe(0);
  });

  it('opens published catalogs from a directory or over HTTP, and served ones', async () => {
    const publish = async (...args: string[]): Promise<void> => {
      const { code, stderr } = await sandbox.run(['catalog', 'publish', ...args, '--to', 'public']);
      expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    };
    await publish('catalog', '--name', 'demo');
    const site = await serveStatically(path.join(sandbox.work, 'public'), '/');
    const served = sandbox.serve(
      ['serve', 'catalog', '-p', '0', '--host', '127.0.0.1', '--http', '127.0.0.1:0'],
      {
        timeoutMs: 120_000,
      },
    );
    const base = (await served.firstLine()).replace(/(\/api\/v1)?(\/all)?\/?$/, '');
    for (const reference of ['public', 'public/catalogs/demo', `${site.url}catalogs/demo`, base]) {
      const { url, command } = await view(reference);
      const { body } = await ask(url, { path: 'api/catalog' });
      expect([reference, JSON.parse(body)]).toEqual([
        reference,
        expect.objectContaining({ name: reference, bundles: 4, channels: 3 }),
      ]);
      const details = await ask(url, { path: 'api/bundle?package=widget&bundle=widget.v1.1.0' });
      expect(JSON.parse(details.body)).toMatchObject({ displayName: 'Widget Maker' });
      expect((await ask(url, { path: 'icon?package=gadget' })).headers['content-type']).toBe('image/svg+xml');
      expect((await command.stop()).code).toBe(0);
    }
    expect((await served.stop()).code).toBe(0);

    // The next version of it is shown, although files of the one before are gone.
    const { url, command } = await view('public');
    await publish('older', '--name', 'demo', '--update', '--prune', '--older-than', '0s');
    expect(JSON.parse((await ask(url, { path: 'api/catalog' })).body)).toMatchObject({ bundles: 2 });
    expect((await command.stop()).code).toBe(0);
    await publish('catalog', '--name', 'other', '--update');
    const several = await sandbox.run(['view', 'public']);
    expect([several.code, several.stderr]).toEqual([1, expect.stringContaining('public/catalogs/other')]);
    site.close();
  });

  it('is served beside the other endpoints of serve', async () => {
    const command = sandbox.serve(['serve', 'catalog', '--port', '0', '--ui', '0'], { timeoutMs: 120_000 });
    const url = await command.firstLine();
    const { body } = await ask(url, { path: 'api/catalog' });
    expect(JSON.parse(body)).toMatchObject({ name: 'catalog', bundles: 4 });
    expect((await command.stop()).code).toBe(0);
    const both = await sandbox.run(['serve', '--catalogs', 'catalog', '--ui']);
    expect([both.code, both.stderr]).toEqual([
      1,
      expect.stringContaining('--ui and --catalogs cannot be used together'),
    ]);
  });
});

withBrowser('the page', () => {
  let browser: Browser;
  const outside: string[] = [];
  const faults: string[] = [];

  /** Opens the page, and keeps what it asks of others, and what goes wrong in it. */
  async function open(url: string, hash = '', width = 1300): Promise<Page> {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    page.on('request', (asked) => {
      if (!asked.url().startsWith(url) && !asked.url().startsWith('data:')) outside.push(asked.url());
    });
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    await page.goto(url + hash);
    await page.locator('h1').waitFor();
    return page;
  }

  beforeAll(async () => {
    browser = await connectBrowser();
  });

  afterEach(async () => {
    // An open page would go on polling a server that has ended.
    await Promise.all(browser.contexts().map((context) => context.close()));
  });

  afterAll(async () => {
    await browser.close();
  });

  it('shows packages, a graph and a bundle, all reachable by keyboard', async () => {
    const { url } = await view('catalog');
    const page = await open(url);
    const cards = page.locator('.card');
    expect(await cards.count()).toBe(2);
    expect(await cards.nth(1).innerText()).toContain('Widget Maker');
    expect(await cards.nth(1).innerText()).toContain('Makes widgets.');

    await page.keyboard.press('/');
    await page.keyboard.type('wid');
    await expect.poll(() => cards.count()).toBe(1);
    await page.locator('.rows a').first().waitFor();
    expect(await page.locator('.rows a').allInnerTexts()).toEqual([
      'widget.v1.0.0',
      'widget.v1.1.0',
      'widget.v1.2.0',
    ]);
    await cards.first().locator('a').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Widget Maker', level: 1 }).waitFor();
    await expect
      .poll(() => page.evaluate('document.activeElement.tagName + document.title'))
      .toBe('H1Widget Maker · opmate');

    const row = (name: string) => page.locator(`.canvas a[href$="widget.v${name}"]`);
    await row('1.2.0').waitFor();
    expect((await page.locator('.canvas a').allInnerTexts()).map((line) => line.split(/\s/)[0])).toEqual([
      '1.2.0',
      '1.1.0',
      '1.0.0',
    ]);
    expect(await row('1.2.0').innerText()).toContain('head');
    expect(await row('1.1.0').innerText()).toContain('skipped');
    expect(await row('1.0.0').innerText()).toContain('deprecated');
    await row('1.2.0').focus();
    await page.keyboard.press('ArrowRight');
    const focused = () => page.evaluate('document.activeElement.getAttribute("href")');
    await expect.poll(focused).toBe('#/package/widget/stable/widget.v1.0.0');
    await page.keyboard.press('ArrowLeft');
    await expect.poll(focused).toBe('#/package/widget/stable/widget.v1.2.0');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const panel = page.locator('.panel');
    await panel.getByRole('heading', { name: 'widget.v1.1.0' }).waitFor();
    expect(await panel.innerText()).toMatch(/Next\s+widget\.v1\.2\.0/);
    expect(await panel.innerText()).toContain('widgets.test/v1');
    expect(await panel.innerText()).toContain('registry.test/operand:v1.1.0');
    expect(await row('1.1.0').getAttribute('aria-current')).toBe('true');
    expect(await page.locator('.edge.hot').count()).toBe(1);

    await page.getByRole('button', { name: 'Table' }).click();
    expect(await page.locator('.graph-side tbody tr').first().innerText()).toMatch(
      /1\.2\.0\s+widget\.v1\.2\.0\s+widget\.v1\.0\.0\s+1\s+>=1\.0\.0 <1\.2\.0\s+head/,
    );
  });

  it('filters, sorts and searches packages, shows the matches, and keeps the state in the URL', async () => {
    const large = Array.from({ length: 900 }, (_, at) => `p${String(at).padStart(3, '0')}`).flatMap(
      (name) => [
        { schema: 'olm.package', name, defaultChannel: 'a' },
        { schema: 'olm.channel', package: name, name: 'a', entries: [{ name: `${name}.v1.0.0` }] },
        bundle(name, '1.0.0'),
      ],
    );
    const described = (name: string, max: string, categories: string, provider: string) => [
      { schema: 'olm.package', name, defaultChannel: 'a' },
      { schema: 'olm.channel', package: name, name: 'a', entries: [{ name: `${name}.v1.0.0` }] },
      bundle(name, '1.0.0', {
        properties: [
          { type: 'olm.package', value: { packageName: name, version: '1.0.0' } },
          { type: 'olm.gvk', value: { group: `${name}.test`, version: 'v1', kind: 'Thing' } },
          { type: 'olm.maxOpenShiftVersion', value: max },
          { type: 'olm.csv.metadata', value: { provider: { name: provider }, annotations: { categories } } },
        ],
      }),
    ];
    await sandbox.write({
      'many/a.json': text(large),
      'many/b.json': text([
        ...described('aa', '4.14', 'Storage', 'Zeta'),
        ...described('bb', '4.16', 'Storage, Database', 'Alpha'),
      ]),
    });
    const { url } = await view('many');
    const page = await open(url);
    const cards = page.locator('.card');
    await page.getByText('902 packages').waitFor();
    // Not all at once, but all that one scrolls to.
    expect(await cards.count()).toBeLessThan(902);
    for (let times = 0; times < 4; times++) await page.keyboard.press('End');
    await expect.poll(() => cards.count()).toBeGreaterThan(400);

    await page.getByLabel('Category').selectOption('Storage');
    await expect.poll(() => cards.count()).toBe(2);
    await page.getByLabel('Sort by').selectOption('provider');
    const names = () => page.locator('.card .id').allInnerTexts();
    await expect.poll(names).toEqual(['bb', 'aa']);
    await page.getByLabel('OpenShift').selectOption('4.15');
    await expect.poll(names).toEqual(['bb']);
    const address = page.url();
    expect(address).toMatch(/#\/\?category=Storage&openshift=4\.15&sort=provider$/);
    await page.reload();
    await expect.poll(names).toEqual(['bb']);
    expect(await page.getByLabel('OpenShift').inputValue()).toBe('4.15');
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('902 packages').waitFor();

    await page.getByRole('searchbox').fill('bb.test thing');
    await expect.poll(names).toEqual(['bb']);
    expect(await cards.first().innerText()).toContain('API bb.test/v1/Thing');
    expect(await cards.first().locator('.matches mark').allInnerTexts()).toEqual(['bb.test', 'Thing']);
    await page.getByRole('searchbox').fill('operand:v1');
    await expect.poll(() => page.locator('.rows li').count()).toBe(50);
    expect(await page.locator('.rows li').first().innerText()).toContain('related image');
    await page.close();
  });

  it('has accessible names and landmarks', async () => {
    const { url } = await view('catalog');
    const page = await open(url, '#/package/widget');
    await page.locator('.canvas a').first().waitFor();
    const tree = await page.locator('body').ariaSnapshot();
    for (const part of [
      '- banner',
      '- navigation "Catalog"',
      '- searchbox "Search packages and bundles"',
      '- main',
      '- heading "Widget Maker" [level=1]',
      '- navigation "Channels"',
      '- link "stable default 1.2.0 3 bundles"',
      '- region "Channel stable"',
      '- link /^1.2.0 widget\\.v1/',
      '- button "Larger"',
    ]) {
      const isPattern = part.includes('/^');
      if (isPattern) expect(tree).toMatch(/link "1\.2\.0 widget\.v1\.2\.0 head replaces widget\.v1\.0\.0/);
      else expect(tree).toContain(part);
    }
    // Every control has a name, and nothing takes the focus out of turn.
    const unnamed = await page.evaluate(
      `[...document.querySelectorAll('button, a, input, select')].filter((one) =>
        !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).length`,
    );
    expect(unnamed).toBe(0);
    expect(
      await page.evaluate(
        `document.querySelectorAll('[tabindex]:not([tabindex="0"], [tabindex="-1"])').length`,
      ),
    ).toBe(0);
    // Of the rows of the graph, one is in the order of the tab key.
    expect(await page.locator('.canvas a[tabindex="0"]').count()).toBe(1);
  });

  it('runs no code and loads no resources from a catalog', async () => {
    const { url } = await view('broken');
    for (const hash of [
      '',
      '#/package/gadget',
      '#/package/gadget/two-heads',
      `#/package/gadget/two-heads/${encodeURIComponent(`gadget.${image}`)}`,
      '#/package/widget/stable/widget.v1.0.0',
      '#/problems',
      `#/?q=${encodeURIComponent('<img')}`,
    ]) {
      const page = await open(url, hash);
      await page.evaluate(`document.querySelectorAll('details').forEach((one) => { one.open = true; })`);
      await page.waitForLoadState('networkidle');
      expect([hash, await page.evaluate('window.ran')]).toEqual([hash, undefined]);
      expect(await page.locator('img:not(.icon img), script[src*="evil"], body script').count()).toBe(0);
      const links = await page.locator('a').evaluateAll((all) => all.map((one) => one.getAttribute('href')));
      expect(links.filter((link) => !/^(#|https?:)/.test(link ?? ''))).toEqual([]);
      await page.close();
    }
    const page = await open(url, '#/package/gadget');
    await page.locator('summary', { hasText: 'About' }).click();
    expect(await page.locator('.markdown').first().innerText()).toContain('<script>window.ran = 1</script>');
    expect(await page.locator('.markdown a').first().getAttribute('rel')).toBe('noopener noreferrer');
    // The icon by itself, as a page of its own: the browser says what it has kept from running.
    const icon = await browser.newPage();
    const said: string[] = [];
    icon.on('console', (message) => said.push(message.text()));
    icon.on('request', (asked) => outside.push(...(asked.url().startsWith(url) ? [] : [asked.url()])));
    await icon.goto(`${url}icon?package=gadget`);
    expect(await icon.evaluate('window.ran')).toBeUndefined();
    expect(said).toContainEqual(expect.stringContaining('Blocked script execution'));
    expect(outside).toEqual([]);
  });

  it('escapes control characters and isolates right-to-left text', async () => {
    const [override, escape, hebrew] = ['\u202e', '\u001b[31m', '\u05d0\u05d1'];
    const name = `turned${override}`;
    await sandbox.write({
      'turned/catalog.json': text([
        { schema: 'olm.package', name, defaultChannel: 'a', description: `Turns ${override}text.` },
        { schema: 'olm.channel', package: name, name: 'a', entries: [{ name: `${hebrew}.v1.0.0` }] },
        { ...bundle(name, '1.0.0'), name: `${hebrew}.v1.0.0`, image: `registry.test/${escape}:v1` },
      ]),
    });
    const { url } = await view('turned');
    const page = await open(url, `#/package/${encodeURIComponent(name)}`);
    await page.locator('.panel h2').waitFor();
    const shown = await page.evaluate<string>(
      `document.title + document.body.innerText + [...document.querySelectorAll('[title], [aria-label]')].map((one) => one.title + one.ariaLabel)`,
    );
    expect(shown).toContain('turned\\u202e');
    expect(shown).toContain('registry.test/\\x1b[31m:v1');
    expect(shown).not.toMatch(/[\u202e\u001b]/);
    await page.locator('.canvas a', { hasText: hebrew }).first().waitFor();
    const direction = 'getComputedStyle(document.querySelector(".canvas a")).unicodeBidi';
    expect(await page.evaluate(direction)).toBe('isolate');
    await page.close();
  });

  it('shows findings in the list of problems and beside the graph', async () => {
    const { url } = await view('broken');
    const page = await open(url, '#/problems');
    const problems = page.locator('.problems > li.error');
    await problems.first().waitFor();
    expect(await problems.allInnerTexts()).toContainEqual(expect.stringContaining('multiple channel heads'));
    await problems.filter({ hasText: 'multiple channel heads' }).locator('a').click();
    await page.locator('.graph-side .problems', { hasText: 'multiple channel heads' }).waitFor();
    expect(await page.locator('.canvas .badge', { hasText: 'no bundle' }).count()).toBe(1);
  });

  it('reports no matches only if no bundle matches either', async () => {
    const { url } = await view('catalog');
    const page = await open(url, '#/?q=registry.test%2Foperand');
    await page.getByRole('heading', { name: 'Bundles' }).waitFor();
    expect(await page.locator('.heading .sums').innerText()).toBe('0 of 2 packages');
    expect(await page.getByText('No matches.').count()).toBe(0);
    await page.goto(`${url}#/?q=nothing-has-this`);
    await page.getByText('No matches.').waitFor();
    await page.close();
  });

  it('collapses a long list of names in a problem', async () => {
    const relatedImages = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
      name,
      image: `registry.test/${name}:v1`,
    }));
    await sandbox.write({
      'long-list/catalog.json': text([...gadget.slice(0, 2), bundle('gadget', '0.1.0', { relatedImages })]),
    });
    const { url } = await view('long-list');
    const page = await open(url, '#/problems?check=related-image-tag');
    const message = page.locator('.problems .message');
    await message.getByRole('button', { name: 'and 2 more' }).waitFor();
    expect(await message.innerText()).not.toContain('registry.test/d:v1');
    await message.getByRole('button').press('Enter');
    expect(await page.evaluate(`document.activeElement.className`)).toBe('message');
    expect(await message.innerText()).toMatch(/"registry\.test\/d:v1", "registry\.test\/e:v1"$/);
    await page.close();
  });

  it('compares two catalogs', async () => {
    const { url } = await view('catalog', '--compare', 'older');
    const page = await open(url, '#/compare');
    await page.locator('.sums-table').waitFor();
    expect(await page.locator('.sums-table tr', { hasText: 'packages' }).innerText()).toMatch(/\+1\s+−1\s+–/);
    const item = page.locator('.compared > li', { hasText: 'widget' });
    await item.locator('summary').click();
    await item.getByText('head: widget.v1.1.0 → widget.v1.2.0').waitFor();
    await item.getByRole('link', { name: 'Upgrade graph of widget' }).click();
    await page.locator('.canvas .badge', { hasText: 'new' }).waitFor();
    expect(await page.locator('.canvas a', { hasText: 'new' }).innerText()).toContain('widget.v1.2.0');
  });

  it('draws several channels, an upgrade path and a compared catalog in one graph', async () => {
    const { url } = await view('catalog', '--compare', 'older');
    const page = await open(url, '#/package/widget');
    const row = (version: string) => page.locator(`.canvas a[href*="widget.v${version}"]`);
    await row('1.2.0').waitFor();
    await page.getByRole('link', { name: 'Add old to the graph' }).click();
    await page.getByRole('heading', { name: 'stable + old' }).waitFor();
    expect(await row('1.0.0').locator('.in-channel').allInnerTexts()).toEqual(['stable', 'old']);
    expect(await row('1.1.0').locator('.in-channel').allInnerTexts()).toEqual(['stable']);

    await page.getByText('Upgrade path').click();
    await page.getByRole('combobox', { name: /^From/ }).selectOption('widget.v1.0.0');
    await page.locator('.steps li').first().waitFor();
    expect(await page.locator('.steps li').allInnerTexts()).toEqual([
      '1.2.0 replaces widget.v1.0.0, channel stable',
    ]);
    expect(await page.locator('.drawing .step').count()).toBe(1);
    expect(page.url()).toContain('beside=old&from=widget.v1.0.0&to=widget.v1.2.0');
    const svg = await save(page, 'Save SVG');
    expect(svg).toContain('>stable + old<');
    expect(svg).toContain('in stable and old');
    expect(svg.match(/class="step"/g)).toHaveLength(1);
    expect(svg.match(/class="edge added"/g)).toHaveLength(1);
    await page.reload();
    await page.locator('.steps li').first().waitFor();
    await page.getByRole('combobox', { name: /^From/ }).selectOption('widget.v1.2.0');
    await page.getByRole('combobox', { name: /^To/ }).selectOption('widget.v1.0.0');
    await page.getByText('No upgrade leads from widget.v1.2.0 to widget.v1.0.0').waitFor();

    // From the other side, the older catalog has lost a bundle, and edges.
    const { url: back } = await view('older', '--compare', 'catalog');
    await page.close();
    const other = await open(back, '#/package/widget');
    const gone = other.locator('.canvas a[href*="widget.v1.2.0"]');
    await gone.waitFor();
    expect(await gone.innerText()).toContain('removed');
    expect(await other.locator('.edge.removed').count()).toBe(1);
    await other.getByLabel('Compare', { exact: true }).uncheck();
    await expect.poll(() => gone.count()).toBe(0);
    expect(other.url()).toContain('compare=no');
    await other.close();
  });

  it('shows versions of a fitted channel of 100 bundles, zooms with Ctrl and the wheel and scrolls by dragging', async () => {
    const names = Array.from({ length: 100 }, (_, at) => `hundred.v1.${at}.0`);
    await sandbox.write({
      'hundred/catalog.json': text([
        { schema: 'olm.package', name: 'hundred', defaultChannel: 'stable' },
        {
          schema: 'olm.channel',
          package: 'hundred',
          name: 'stable',
          entries: names.map((name, at) => (at === 0 ? { name } : { name, replaces: names[at - 1] })),
        },
        ...names.map((_, at) => bundle('hundred', `1.${at}.0`)),
      ]),
    });
    const { url } = await view('hundred');
    const page = await open(url, '#/package/hundred');
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.locator('.canvas a').first().waitFor();
    await page.getByRole('button', { name: 'Fit the whole channel' }).click();
    await expect.poll(() => page.locator('.canvas .label').count()).toBe(100);
    const overlaps = await page.evaluate(`(() => {
      const boxes = [...document.querySelectorAll('.canvas .label')].map((one) => one.getBoundingClientRect());
      return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
        a.left < b.right && b.left < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom)).length;
    })()`);
    expect(overlaps).toBe(0);
    expect(
      await page.evaluate(
        `document.querySelector('.scroller').getBoundingClientRect().bottom <= innerHeight`,
      ),
    ).toBe(true);

    const box = (await page.locator('.scroller').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    // Lines to later columns pass below the versions of the first.
    expect(
      await page.evaluate(`(() => {
        const label = document.querySelector('.canvas .label');
        const leaders = document.querySelector('.leaders');
        const isBefore = (leaders.compareDocumentPosition(label) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
        return isBefore && getComputedStyle(label).backgroundColor !== 'rgba(0, 0, 0, 0)';
      })()`),
    ).toBe(true);
    await page.mouse.move(box.x + 20, box.y + 200);
    const size = page.getByTitle('Normal size');
    const fitted = await size.textContent();
    await page.mouse.wheel(0, -100);
    await page.keyboard.down('Control');
    expect(await size.textContent()).toBe(fitted);
    for (let turn = 0; turn < 5; turn++) await page.mouse.wheel(0, -100);
    await page.keyboard.up('Control');
    await page.locator('.canvas .version').first().waitFor();
    const top = () => page.evaluate<number>('document.querySelector(".scroller").scrollTop');
    // Over the names it scrolls.
    await page.mouse.move(box.x + 300, box.y + 300);
    const before = await top();
    await page.mouse.wheel(0, 90);
    await expect.poll(top).toBeGreaterThan(before);
    await page.waitForTimeout(200);
    const address = page.url();
    const start = await top();
    await page.mouse.down();
    await page.mouse.move(box.x + 300, box.y + 220, { steps: 4 });
    await page.mouse.up();
    expect((await top()) - start).toBeGreaterThan(70);
    expect(page.url()).toBe(address);

    // The row with the focus stays in the window, which is lower than the graph.
    await page.setViewportSize({ width: 390, height: 420 });
    await page.locator('.canvas a[tabindex="0"]').focus();
    await page.keyboard.press('Home');
    for (let row = 0; row < 30; row++) {
      await page.keyboard.press('ArrowDown');
      expect(
        await page.evaluate(`(() => {
          const { top, bottom } = document.activeElement.getBoundingClientRect();
          const bar = document.querySelector('.bar').getBoundingClientRect().bottom;
          return document.activeElement.matches('.canvas a') && top >= bar && bottom <= innerHeight;
        })()`),
      ).toBe(true);
    }
    await page.close();
  });

  it('shows long versions in full in a fitted channel', async () => {
    const versions = Array.from({ length: 74 }, (_, at) => `1.2.${5000 + at}-c04833d`);
    await sandbox.write({
      'lengthy/catalog.json': text([
        { schema: 'olm.package', name: 'lengthy', defaultChannel: 'alpha' },
        {
          schema: 'olm.channel',
          package: 'lengthy',
          name: 'alpha',
          entries: versions.map((version, at) => ({
            name: `lengthy.v${version}`,
            ...(at > 0 && { replaces: `lengthy.v${versions[at - 1]}` }),
          })),
        },
        ...versions.map((version) => bundle('lengthy', version)),
      ]),
    });
    const { url } = await view('lengthy');
    const page = await open(url, '#/package/lengthy');
    await page.locator('.canvas a').first().waitFor();
    await page.getByRole('button', { name: 'Fit the whole channel' }).click();
    await expect.poll(() => page.locator('.canvas .label').count()).toBe(74);
    const cut = `[...document.querySelectorAll('.canvas .label')].filter((one) => one.scrollWidth > one.clientWidth).length`;
    expect(await page.evaluate(cut)).toBe(0);
    await page.close();
  });

  it('filters problems by check, lists images to copy and save, and saves the graph', async () => {
    const { url } = await view('broken');
    const page = await open(url, '#/problems?check=bundle-image-tag');
    await page.locator('.problems > li').first().waitFor();
    const checks = () => page.locator('.problems .place > span').allInnerTexts();
    await expect.poll(async () => [...new Set(await checks())]).toEqual(['bundle-image-tag']);
    await page.getByLabel('Check').selectOption('');
    await page.locator('.problems > li.error').first().waitFor();
    const badges = await page.locator('.problems > li > .badge').allInnerTexts();
    expect(badges).toEqual([...badges].sort((a, b) => rankOf(a) - rankOf(b)));
    const amounts = ['error', 'warning', 'notice'].map(
      (kind) => badges.filter((text) => text === kind).length,
    );
    const [errors = 0, warnings = 0, notices = 0] = amounts;
    // The bar counts what the page names first.
    const inBar = async () => {
      const texts = await page.locator('.bar .number').allInnerTexts();
      return texts.map((text) => Number.parseInt(text, 10));
    };
    await expect.poll(inBar).toEqual([errors, warnings].filter((n) => n > 0));
    expect(await page.locator('.banner').innerText()).toContain(`Invalid catalog: ${errors} error`);
    const sums = await page.locator('.heading .sums').innerText();
    expect(sums.match(/\d+ (error|warning|notice)/g)).toEqual(
      [`${errors} error`, `${warnings} warning`, `${notices} notice`].filter(
        (text) => !text.startsWith('0 '),
      ),
    );

    await page.goto(`${url}#/images/widget`);
    await page.getByText('2 images', { exact: true }).waitFor();
    const lines = 'registry.test/operand:v1.2.0\nregistry.test/widget:v1.2.0\n';
    expect(await save(page, 'Save text')).toBe(lines);
    await page.getByLabel('Of').selectOption('all');
    await page.getByText('6 images', { exact: true }).waitFor();
    expect(JSON.parse(await save(page, 'Save JSON'))).toMatchObject({
      images: expect.arrayContaining([
        {
          image: 'registry.test/operand:v1.0.0',
          bundles: [{ package: 'widget', bundle: 'widget.v1.0.0' }],
        },
      ]) as object,
    });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByLabel('Of').selectOption('');
    await page.getByText('2 images', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Copy all images' }).click();
    await page.getByText('copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(lines);

    await page.goto(`${url}#/package/widget/stable`);
    await page.locator('.canvas a').first().waitFor();
    expect(await save(page, 'Save SVG')).toMatch(/^<svg xmlns=.*widget\.v1\.2\.0/s);
    expect(JSON.parse(await save(page, 'Save JSON'))).toMatchObject({ channel: 'stable', lanes: 2 });
    await page.close();
  });

  it('selects packages to mirror, shows the result, and writes it on request', async () => {
    const registry = await startFaultRegistry();
    const { catalog } = await serveOperatorSet(registry);
    const { url } = await view(catalog, '--edit', '--to', 'set.yaml', '--use-http');
    const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(url);
    await page.getByRole('heading', { name: 'Selection' }).waitFor();
    expect(page.url()).not.toContain('token');
    await page.getByRole('button', { name: 'Add widget' }).click();
    await page.getByText('1 package · 1 bundle · 3 images').waitFor();
    await page.getByText('2 of 3 versions upgrade to the head').waitFor();
    await page.getByLabel('stable').first().check();
    await page.getByLabel('Versions of widget stable').selectOption('range');
    await page.getByLabel('From version of widget stable').selectOption('1.1.0');
    await page.getByText('1 package · 2 bundles · 5 images').waitFor();
    await page.getByText('every version of the channel still upgrades to the head').waitFor();
    await page.getByLabel(/Read the sizes/).check();
    const size = page.locator('.part', { hasText: 'Size' });
    await size.getByText('in 5 images').waitFor();
    const shown = await size.innerText();
    expect(page.url()).toContain('pick=widget%2Fstable%2F1.1.0');
    await page.reload();
    await page.getByText('1 package · 2 bundles · 5 images').waitFor();

    const file = path.join(sandbox.work, 'set.yaml');
    await expect(readFile(file)).rejects.toThrow('ENOENT');
    await page.getByRole('button', { name: 'Write set.yaml' }).click();
    await page.getByText('Written: set.yaml').waitFor();
    const plan = await sandbox.run([
      'mirror',
      'plan',
      '-c',
      'set.yaml',
      'file://archive',
      '-o',
      'json',
      '--use-http',
    ]);
    const { packages } = JSON.parse(plan.stdout) as { packages: { name: string; bytes: number }[] };
    expect(packages).toMatchObject([{ name: 'widget', images: 5 }]);
    // What the page has shown is what mirroring copies.
    expect(shown).toContain(`${((packages[0]?.bytes ?? 0) / 1024).toFixed(1)} KiB`);
    await page.reload();
    const overwrite = page.getByRole('button', { name: 'Overwrite set.yaml' });
    await overwrite.waitFor();
    // What somebody else has written meanwhile is overwritten only knowingly.
    const text = await readFile(file, 'utf8');
    await writeFile(file, '# by hand\n');
    await overwrite.click();
    await page
      .getByRole('alert')
      .getByText('set.yaml: has changed since the selection was planned')
      .waitFor();
    expect(await readFile(file, 'utf8')).toBe('# by hand\n');
    await overwrite.click();
    await page.getByText('Written: set.yaml').waitFor();
    expect(await readFile(file, 'utf8')).toBe(text);
    await page.close();
    await registry.close();
  });

  it('selects one version, a list of versions and default channels, and copies the list of images', async () => {
    const { url } = await view('catalog', '--edit', '--to', 'chosen.yaml');
    const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(url);
    await page.getByRole('button', { name: 'Add widget' }).click();
    await page.getByText('1 package · 3 bundles · 6 images').waitFor();
    const versions = page.getByLabel('Versions of widget', { exact: true });
    await versions.selectOption('single');
    await page.getByLabel('Version of widget', { exact: true }).selectOption('1.0.0');
    await expect.poll(() => page.locator('.document').innerText()).toContain('minVersion: 1.0.0');
    expect(await page.locator('.document').innerText()).toContain('maxVersion: 1.0.0');

    await page.getByLabel('stable', { exact: true }).check();
    await page.getByLabel('Versions of widget stable').selectOption('list');
    await page.getByLabel('1.0.0', { exact: true }).check();
    await page.getByLabel('Only the selected bundles').check();
    await page.getByText('1 package · 2 bundles · 4 images').waitFor();
    await page.getByLabel('old', { exact: true }).check();
    await page.getByLabel('Default channel of widget').selectOption('old');
    await expect.poll(() => page.locator('.document').innerText()).toContain('defaultChannel: old');
    expect(page.url()).toContain('default=widget%2Fold&exact=yes');
    await page.reload();
    await page.getByText('1 package · 2 bundles · 4 images').waitFor();
    const lines = 'operand:v1.0.0 operand:v1.2.0 widget:v1.0.0 widget:v1.2.0'.split(' ');
    expect(await save(page, 'Save text')).toBe(lines.map((line) => `registry.test/${line}\n`).join(''));

    await page.getByRole('button', { name: 'Write chosen.yaml' }).click();
    await page.getByText('Written: chosen.yaml').waitFor();
    const { code, stdout } = await sandbox.run([
      'catalog',
      'filter',
      'catalog',
      '-f',
      'chosen.yaml',
      '--to',
      '-',
    ]);
    const blobs = stdout.split(/\n(?=\{)/).map((blob) => JSON.parse(blob) as Record<string, unknown>);
    expect([code, blobs.find(({ schema }) => schema === 'olm.package')?.['defaultChannel']]).toEqual([
      0,
      'old',
    ]);
    expect(blobs.filter(({ schema }) => schema === 'olm.bundle').map(({ name }) => name)).toEqual([
      'widget.v1.0.0',
      'widget.v1.2.0',
    ]);

    // An image set cannot list versions: the page says so, and offers what can.
    await page.getByLabel('Write').selectOption('imageset');
    await page.getByRole('alert').getByText('an ImageSetConfiguration cannot list versions').waitFor();
    await page.close();
    faults.splice(0, faults.length, ...faults.filter((text) => !text.startsWith('Failed to load resource')));
  });

  it('exports a page that works from the disk and shows catalog contents as text', async () => {
    const args = ['view', 'broken', '--compare', 'older', '--export'];
    const exported = await sandbox.run([...args, 'page']);
    expect([exported.code, exported.stdout]).toEqual([0, '']);
    const again = await sandbox.run([...args, 'page']);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('must be empty')]);
    const url = `file://${path.join(sandbox.work, 'page', 'index.html')}`;
    const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
    const said: string[] = [];
    const loaded: string[] = [];
    page.on('pageerror', (error) => said.push(error.message));
    page.on('console', (message) => said.push(message.text()));
    page.on('request', (request) => loaded.push(request.url()));
    await page.goto(url);
    await expect.poll(() => page.locator('.card').count()).toBe(2);
    await page.locator('.card img').waitFor();
    // No file of the site is the icon, whose script would run on the origin of the site.
    expect(await page.locator('.card img').getAttribute('src')).toMatch(/^data:image\/svg\+xml;base64,/);
    expect((await readdir(path.join(sandbox.work, 'page'))).sort()).toEqual([
      ...['data', 'exported.js', 'index.html', 'page.css', 'page.js'],
    ]);
    expect(
      (await readdir(path.join(sandbox.work, 'page/data'))).filter((name) => !name.endsWith('.js')),
    ).toEqual([]);
    await page.getByRole('searchbox').fill('widgets.test/v1');
    await page.locator('.card .matches').first().waitFor();
    await page.goto(`${url}#/package/widget/stable/widget.v1.1.0`);
    await page.locator('.panel').getByRole('heading', { name: 'widget.v1.1.0' }).waitFor();
    expect(await page.locator('.canvas a').count()).toBe(3);
    expect(await save(page, 'Save SVG')).toContain('widget.v1.1.0');
    await page.goto(`${url}#/package/gadget/two-heads/${encodeURIComponent(`gadget.${image}`)}`);
    await page.locator('.canvas a').first().waitFor();
    await page.goto(`${url}#/problems?severity=error`);
    await page.locator('.problems > li.error').first().waitFor();
    await page.goto(`${url}#/compare/doohickey`);
    await page.locator('.differences li').first().waitFor();
    await page.goto(`${url}#/images/widget`);
    await page.getByText('2 images', { exact: true }).waitFor();
    await page.goto(`${url}#/package/wigdet`);
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    expect(await page.evaluate('window.ran')).toBeUndefined();
    expect(said).toEqual([]);
    expect(loaded.filter((one) => !/^(file|data):/.test(one))).toEqual([]);
    await page.close();
  });

  it('exports a page that draws channels, upgrade paths and images under any path of a web server', async () => {
    expect((await sandbox.run(['view', 'catalog', '--compare', 'older', '--export', 'site'])).code).toBe(0);
    const site = await serveStatically(path.join(sandbox.work, 'site'), '/catalogs/demo/');
    const page = await open(site.url, '#/package/widget');
    await page.getByRole('link', { name: 'Add old to the graph' }).click();
    await page.getByRole('heading', { name: 'stable + old' }).waitFor();
    await page.getByText('Upgrade path').click();
    await page.getByRole('combobox', { name: /^From/ }).selectOption('widget.v1.0.0');
    await page.locator('.steps li').first().waitFor();
    expect(await page.locator('.steps li').allInnerTexts()).toEqual([
      '1.2.0 replaces widget.v1.0.0, channel stable',
    ]);
    expect(await page.locator('.drawing .step').count()).toBe(1);
    expect(await page.locator('.edge.added').count()).toBe(1);
    await page.goto(`${site.url}#/package/widget/stable?from=0.9.0&to=1.2.0`);
    await page.getByText('No upgrade leads from 0.9.0 to widget.v1.2.0').waitFor();
    await page.goto(`${site.url}#/images/?q=Widget+Maker&scope=all`);
    await page.getByText('6 images', { exact: true }).waitFor();
    expect((await save(page, 'Save text')).split('\n')).toHaveLength(7);
    await page.close();
    site.close();
  });

  it('exports the same bytes for the same catalogs', async () => {
    const contents: [string, string][][] = [];
    for (const directory of ['first', 'second']) {
      const args = ['view', 'broken', '--compare', 'older', '--export', directory];
      expect((await sandbox.run(args)).code).toBe(0);
      const root = path.join(sandbox.work, directory);
      const files = (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) =>
        entry.isFile(),
      );
      const names = files.map((entry) => path.relative(root, path.join(entry.parentPath, entry.name))).sort();
      contents.push(
        await Promise.all(
          names.map(async (name): Promise<[string, string]> => [
            name,
            await readFile(path.join(root, name), 'utf8'),
          ]),
        ),
      );
    }
    expect(contents[0]?.map(([name]) => name)).toContain('data/p1.js');
    expect(contents[1]).toEqual(contents[0]);
  });

  it('handles requests of an exported page as the server does', async () => {
    expect((await sandbox.run(['view', 'broken', '--compare', 'older', '--export', 'same'])).code).toBe(0);
    const { url, command } = await view('broken', '--compare', 'older');
    await expect
      .poll(async () => JSON.parse((await ask(url, { path: 'api/state' })).body) as object)
      .toMatchObject({ isChecking: false });
    const context: { opmatePage?: ExportedPage; window?: object } = {};
    context.window = context;
    const run = async (file: string): Promise<void> =>
      runInNewContext(await readFile(path.join(sandbox.work, 'same/data', file), 'utf8'), context) as void;
    await run('catalog.js');
    const load = async (part: string): Promise<unknown> => {
      await run(`${part}.js`);
      return context.opmatePage?.parts[part];
    };
    for (const address of [
      'api/index',
      'api/search?q=widget+registry.test',
      'api/package?package=widget',
      'api/channel?package=widget&channel=stable&compare=',
      'api/channel?package=widget&channel=stable&channel=old&compare=yes',
      'api/channel?package=gadget&channel=two-heads&compare=yes',
      'api/path?package=widget&channel=stable&from=widget.v1.0.0&to=widget.v1.2.0',
      'api/path?package=widget&channel=stable&from=1.0.1&to=1.2.0',
      'api/path?package=widget&channel=stable&from=widget.v1.2.0&to=widget.v1.0.0',
      'api/bundle?package=widget&bundle=widget.v1.1.0',
      `api/bundle?package=gadget&bundle=${encodeURIComponent(`gadget.${image}`)}`,
      'api/package?package=gadget',
      'api/problems?from=0&package=&severity=warning&check=',
      'api/compare',
      'api/compare/package?package=doohickey',
      'api/compare/package?package=widget',
    ]) {
      const { body } = await ask(url, { path: address });
      const exported = await handleExportedRequest(context.opmatePage as ExportedPage, address, load);
      expect([address, JSON.parse(JSON.stringify(exported))]).toEqual([address, JSON.parse(body)]);
    }
    for (const address of [
      'api/package?package=wigdet',
      'api/channel?package=widget&channel=nothing',
      'api/path?package=widget&channel=stable&from=x&to=1.2.0',
    ]) {
      const { error, hint } = JSON.parse((await ask(url, { path: address })).body) as Record<string, string>;
      const message = hint === undefined ? error : `${error} (${hint})`;
      await expect(handleExportedRequest(context.opmatePage as ExportedPage, address, load)).rejects.toThrow(
        message,
      );
    }
    expect((await command.stop()).code).toBe(0);
  });

  it('shows a page for an unknown route', async () => {
    const { url } = await view('catalog');
    const page = await open(url, '#/package/wigdet');
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    expect(await page.getByRole('alert').innerText()).toContain('package "wigdet" not found');
    await page.getByRole('link', { name: 'All packages' }).click();
    await page.locator('.card').first().waitFor();
    await page.goto(`${url}#/nowhere/at/all`);
    await page.getByText('Page not found: nowhere/at/all').waitFor();
    await page.goto(`${url}#/package/widget/nothing`);
    await page.getByText('channel "nothing" not found').waitFor();
    await page.close();
    faults.splice(0, faults.length, ...faults.filter((text) => !text.startsWith('Failed to load resource')));
  });

  it('shows an edit without a reload, the time of reading, and an alert while it is not current', async () => {
    await sandbox.write({ 'open/a.json': text(gadget) });
    const { url, command } = await view('open');
    const page = await open(url);
    const read = page.locator('.bar time');
    const first = (await read.getAttribute('datetime')) ?? '';
    expect(Date.parse(first)).not.toBeNaN();
    await sandbox.write({ 'open/a.json': text(gadget), 'open/b.json': text(widget) });
    await expect.poll(() => page.locator('.card').count()).toBe(2);
    const second = (await read.getAttribute('datetime')) ?? '';
    expect(Date.parse(second)).toBeGreaterThan(Date.parse(first));
    await page.getByText('The catalog has changed and was read again at').waitFor({ state: 'attached' });

    await page.goto(`${url}#/package/gadget`);
    await page.locator('.panel').waitFor();
    const directory = path.join(sandbox.work, 'open');
    await rename(directory, `${directory}-away`);
    const alert = page.getByRole('alert').first();
    await alert.getByText(/Not current\..*no such file/).waitFor();
    await rename(`${directory}-away`, directory);
    await page.locator('.panel').waitFor();
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);

    await command.stop();
    await alert.getByText('opmate does not respond').waitFor();
    expect(await page.locator('.panel h2').innerText()).toBe('gadget.v0.1.0');
    await page.goto(`${url}#/package/widget`);
    await page
      .locator('p.note.error')
      .filter({ hasText: /^opmate does not respond/ })
      .waitFor();
    expect(await page.getByRole('heading', { name: 'Not found' }).count()).toBe(0);
    await page.close();
    // The browser has said of each poll that it failed.
    faults.splice(0, faults.length, ...faults.filter((text) => !text.startsWith('Failed to load resource')));
  });

  it('keeps the selected colors, and fits a phone', async () => {
    const { url } = await view('catalog');
    const page = await open(url, '#/package/widget', 400);
    await page.locator('.panel').waitFor();
    expect(await page.evaluate(overflow)).toBe(0);
    const scheme = 'getComputedStyle(document.documentElement).colorScheme';
    expect(await page.evaluate(scheme)).toBe('light dark');
    await page.getByRole('button', { name: /^Colors: auto/ }).click();
    await page.getByRole('button', { name: /^Colors: light/ }).click();
    expect(await page.evaluate(scheme)).toBe('dark');
    await page.reload();
    await page.locator('h1').waitFor();
    expect(await page.evaluate(scheme)).toBe('dark');
  });

  it('keeps only visible rows of a long channel in the document', async () => {
    const versions = Array.from({ length: 3000 }, (_, at) => `1.${at}.0`);
    await sandbox.write({ 'long/catalog.json': text(chainOf('long', versions)) });
    const { url } = await view('long');
    const page = await open(url, '#/package/long/stable/long.v1.1500.0');
    await page.locator('.canvas a[aria-current]').waitFor();
    expect(await page.locator('.canvas li').count()).toBeLessThan(120);
    await page.locator('.canvas a[aria-current]').focus();
    await page.keyboard.press('End');
    await expect
      .poll(() => page.evaluate('document.activeElement.getAttribute("href")'))
      .toBe('#/package/long/stable/long.v1.0.0');
    await page.getByRole('button', { name: 'Fit the whole channel' }).click();
    await expect.poll(() => page.locator('.canvas li').count()).toBeGreaterThan(120);
  });

  it('groups minor versions of a channel above 100 bundles, expanded by keyboard', async () => {
    const versions = Array.from({ length: 120 }, (_, at) => `4.${Math.floor(at / 30)}.${at % 30}`);
    await sandbox.write({ 'grouped/catalog.json': text(chainOf('many', versions)) });
    const { url } = await view('grouped');
    const page = await open(url, '#/package/many');
    const groups = page.locator('.canvas button');
    await groups.first().waitFor();
    expect(await page.locator('.canvas li').count()).toBe(4);
    expect(await groups.first().textContent()).toContain('30 bundles: 4.3.29 to 4.3.0');
    await groups.first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => groups.nth(1).getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('ArrowRight');
    const focused = 'document.activeElement.getAttribute("href")';
    await expect.poll(() => page.evaluate(focused)).toBe('#/package/many/stable/many.v4.2.29');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => page.locator('.canvas li').count()).toBe(4);
    // A bundle that a link leads to is shown.
    await page.goto(`${url}#/package/many/stable/many.v4.0.3`);
    await page.locator('.canvas a[aria-current]').waitFor();
    expect(await groups.last().getAttribute('aria-expanded')).toBe('true');
    await page.getByRole('button', { name: 'Group minor versions' }).click();
    await groups.first().waitFor({ state: 'detached' });
    expect(await page.locator('.canvas a').count()).toBeGreaterThan(30);
  });

  it('lists the keys on ?, but not in the search field', async () => {
    const { url } = await view('catalog');
    const page = await open(url, '#/package/widget');
    await page.locator('.panel').waitFor();
    const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await page.getByRole('searchbox').focus();
    await page.keyboard.press('?');
    expect(await keys.isVisible()).toBe(false);
    await page.goto(`${url}#/package/widget`);
    await page.locator('.canvas a').first().focus();
    await page.keyboard.press('?');
    await keys.waitFor();
    await page.keyboard.press('Escape');
    await keys.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
    await keys.waitFor();
  });

  it('prints every row of a channel in light colors, and no controls', async () => {
    const versions = Array.from({ length: 400 }, (_, at) => `1.${at}.0`);
    await sandbox.write({ 'printed/catalog.json': text(chainOf('many', versions)) });
    const { url } = await view('printed');
    const page = await open(url, '#/package/many');
    await page.locator('.canvas a').first().waitFor();
    expect(await page.locator('.canvas li').count()).toBeLessThan(400);
    await page.evaluate("dispatchEvent(new Event('beforeprint'))");
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await expect.poll(() => page.locator('.canvas li').count()).toBe(400);
    expect(await page.getByRole('searchbox').isVisible()).toBe(false);
    expect(await page.getByRole('button', { name: 'Larger' }).isVisible()).toBe(false);
    expect(await page.locator('.scroller').evaluate((box) => box.scrollHeight - box.clientHeight)).toBe(0);
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('light');
    await page.emulateMedia({ media: 'screen' });
    await page.evaluate("dispatchEvent(new Event('afterprint'))");
    await expect.poll(() => page.locator('.canvas li').count()).toBeLessThan(400);
  });

  it.each(screens)('has no violations of axe-core: %s, %d px', async (colorScheme, width) => {
    const { url } = await view('broken', '--compare', 'older');
    const page = await open(url, '', width);
    await page.emulateMedia({ colorScheme });
    const problems: string[] = [];
    const check = async (place: string, shown = page): Promise<void> => {
      problems.push(...(await findViolations(shown)).map((violation) => `${place}: ${violation}`));
    };
    const places = [
      '',
      '?q=widget',
      'package/widget',
      'package/gadget/two-heads',
      'problems',
      'images/widget',
    ];
    for (const place of [...places, 'compare', 'compare/widget', 'nowhere']) {
      await page.goto(`${url}#/${place}`);
      await page.locator('h1').waitFor();
      if (place.startsWith('package')) await page.locator('.graph').waitFor();
      await check(place);
    }
    await page.goto(`${url}#/package/widget`);
    await page.locator('.panel').waitFor();
    await page.getByText('Legend').click();
    await check('legend');
    await page.keyboard.press('?');
    await check('keys');
    const edit = new URL((await view('catalog', '--edit')).url);
    const selection = await open(`${edit.origin}/`, `${edit.search}${edit.hash}`, width);
    await selection.emulateMedia({ colorScheme });
    await selection.getByRole('button', { name: 'Add widget' }).click();
    await selection.getByText('Size', { exact: true }).waitFor();
    await check('edit', selection);
    expect(problems).toEqual([]);
  });

  it('made no external requests and logged no errors in any test', () => {
    expect({ outside, faults }).toEqual({ outside: [], faults: [] });
  });
});
