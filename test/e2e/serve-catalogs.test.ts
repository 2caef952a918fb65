import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { type Socket, connect } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RunningCommand, isExecutable, projectRoot, useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { registryClient } from '../support/registry-client.js';
import { computeDigest, parseDigest } from '../../src/core/digest.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { catalogOf } from './catalogs.js';
import { largeCatalog } from './served-catalogs.js';
import { makeCatalogImage, storeImage } from './images.js';
import { busy } from '../support/waiting.js';

const sandbox = useSandbox();
let registry: Registry;
let host: string;

beforeAll(async () => {
  registry = await startRegistry({
    directory: path.join(sandbox.work, 'registry'),
    host: '127.0.0.1',
    port: 0,
  });
  host = new URL(registry.url).host;
});

afterAll(async () => {
  await registry.close();
});

const catalogText = (version: number): string =>
  catalogOf('widget', [{ name: `widget.v1.${version}.0` }]) +
  catalogOf('gadget', [{ name: `gadget.v1.${version}.0` }]);

/** What is served of a catalog: lines with sorted keys. */
function served(version: number): string {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, one]) => [key, sorted(one)] as const);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  const lines = catalogText(version).split('\n').slice(0, -1);
  return lines.map((line) => `${JSON.stringify(sorted(JSON.parse(line)))}\n`).join('');
}

let pushes = 0;

/** Pushes a version of the catalog to a registry. */
async function push(
  to: string,
  repository: string,
  version: number,
  text = catalogText(version),
): Promise<void> {
  const layout = `layout-${pushes++}`;
  await storeImage(path.join(sandbox.work, layout), 'v', await makeCatalogImage({ 'catalog.json': text }));
  const copied = await sandbox.run([
    'oci',
    'copy',
    `oci:${layout}:v`,
    `docker://${to}/${repository}:latest`,
    '--use-http',
  ]);
  expect(copied.stderr).not.toMatch(/error/);
  expect(copied.code).toBe(0);
}

function manifest(name: string, ref: string, more: object = { pollInterval: '1s' }): object {
  return {
    apiVersion: 'catalogd.operatorframework.io/v1alpha1',
    kind: 'ClusterCatalog',
    metadata: { name },
    spec: { source: { type: 'Image', image: { ref, ...more } } },
  };
}

interface Served {
  command: RunningCommand;
  /** `http://127.0.0.1:PORT/catalogs` */
  url: string;
}

async function serve(
  directory: string,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<Served> {
  const command = sandbox.start(
    ['serve', '--catalogs', directory, '--http', '0', '--use-http', '--retry-timeout', '1s', ...args],
    { env, timeoutMs: 60_000 },
  );
  return { command, url: await command.firstLine() };
}

async function until<T>(get: () => Promise<T>, isIt: (value: T) => boolean): Promise<T> {
  for (let i = 0; i < 2_400; i++) {
    const value = await get();
    if (isIt(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('did not come about');
}

async function textAt(url: string): Promise<string> {
  const answer = await fetch(url);
  const text = await answer.text();
  return answer.ok ? text : `${answer.status}`;
}

describe('opmate serve --catalogs', () => {
  it('serves, reports its status, and waits', async () => {
    await push(host, 'first/catalog', 1);
    await sandbox.write({
      'd1/one.json': manifest('one', `${host}/first/catalog:latest`),
      'd1/down.json': manifest('down', '127.0.0.1:1/none/there:latest'),
    });
    const waiting = sandbox.run([
      'catalogs',
      'wait',
      '--for',
      'Serving',
      'one',
      '--storage',
      's1',
      '--timeout',
      '30s',
    ]);
    const { command, url } = await serve('d1', [
      '--storage',
      's1',
      '--external-url',
      'https://catalogs.example/',
    ]);
    expect(url).toBe('https://catalogs.example/catalogs');
    expect(await waiting).toMatchObject({ code: 0, stdout: '' });
    const late = await sandbox.run(['catalogs', 'wait', 'down', '--storage', 's1', '--timeout', '300ms']);
    expect(late.code).toBe(1);
    expect(late.stderr).toContain('down: not Serving=True within the time');
    // The other one is tried on its own, and may be told about later.
    const items = await vi.waitFor(async () => {
      const status = await sandbox.run(['catalogs', 'status', '--storage', 's1', '-o', 'json']);
      const read = JSON.parse(status.stdout) as {
        items: { metadata: { name: string }; status: object }[];
      };
      expect(read.items.map(({ metadata }) => metadata.name)).toEqual(['down', 'one']);
      return read.items;
    }, busy);
    expect(items[1]?.status).toMatchObject({
      urls: { base: 'https://catalogs.example/catalogs/one' },
      contentURL: 'https://catalogs.example/catalogs/one/api/v1/all',
      contentHash: `sha256:${createHash('sha256').update(served(1)).digest('hex')}`,
    });
    const table = await sandbox.run(['catalogs', 'status', '--storage', 's1']);
    expect(table.stdout).toMatch(/^NAME +SERVING +PROGRESSING/);
    expect(table.stdout).toMatch(/^down +False \(Unavailable\)/m);
    expect(table.stdout).toMatch(/^one +True \(Available\) +True \(Succeeded\)/m);
    expect((await command.stop()).code).toBe(0);
    const after = await sandbox.run(['catalogs', 'wait', 'one', '--storage', 's1', '--timeout', '100ms']);
    expect(after.code).toBe(1);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('rows 2 and 36: updates a catalog under load without failed or mixed responses', async () => {
    await push(host, 'load/catalog', 0);
    await sandbox.write({ 'd2/load.json': manifest('load', `${host}/load/catalog:latest`) });
    const { command, url } = await serve('d2', ['--storage', 's2']);
    await until(
      () => textAt(`${url}/load/api/v1/all`),
      (text) => text === served(0),
    );
    const whole = new Set([0, 1, 2, 3].map(served));
    const metas = new Set(
      [0, 1, 2, 3].map((one) =>
        served(one)
          .split('\n')
          .filter((line) => line.includes('olm.bundle'))
          .join('\n'),
      ),
    );
    let isOver = false;
    const faults: string[] = [];
    let requests = 0;
    const client = async (route: string, allowed: Set<string>): Promise<void> => {
      while (!isOver) {
        const text = await textAt(`${url}/load/api/v1/${route}`).catch((error: unknown) => String(error));
        requests++;
        if (!allowed.has(route === 'all' ? text : text.trimEnd())) faults.push(text.slice(0, 200));
      }
    };
    const clients = [
      client('all', whole),
      client('all', whole),
      client('metas?schema=olm.bundle', metas),
      client('metas?schema=olm.bundle', metas),
    ];
    for (const version of [1, 2, 3]) {
      await push(host, 'load/catalog', version);
      await until(
        () => textAt(`${url}/load/api/v1/all`),
        (text) => text === served(version),
      );
    }
    isOver = true;
    await Promise.all(clients);
    expect(faults).toEqual([]);
    expect(requests).toBeGreaterThan(100);
    expect((await command.stop()).code).toBe(0);
  });

  it('rows 9 and 12: applies changes of the directory, and keeps its contents while a manifest is invalid', async () => {
    await push(host, 'watch/catalog', 1);
    await sandbox.write({ 'd3/a.json': manifest('a', `${host}/watch/catalog:latest`) });
    const { command, url } = await serve('d3', ['--storage', 's3']);
    await until(
      () => textAt(`${url}/a/api/v1/all`),
      (text) => text === served(1),
    );
    await sandbox.write({ 'd3/b.json': manifest('b', `${host}/watch/catalog:latest`) });
    await until(
      () => textAt(`${url}/b/api/v1/all`),
      (text) => text === served(1),
    );
    await sandbox.write({
      'd3/b.json': '{"kind": "ClusterCatalog", "apiVersion": "olm.operatorframework.io/v1", "sepc": {}}',
    });
    await until(
      () => Promise.resolve(command.stderr()),
      (text) => text.includes('sepc: unknown field (use "spec")'),
    );
    expect(await textAt(`${url}/b/api/v1/all`)).toBe(served(1));
    await rm(path.join(sandbox.work, 'd3/b.json'));
    await until(
      () => textAt(`${url}/b/api/v1/all`),
      (text) => text === '404',
    );
    expect(await textAt(`${url}/a/api/v1/all`)).toBe(served(1));
    await rename(path.join(sandbox.work, 'd3'), path.join(sandbox.work, 'd3-away'));
    await rename(path.join(sandbox.work, 'd3-away'), path.join(sandbox.work, 'd3'));
    expect(await textAt(`${url}/a/api/v1/all`)).toBe(served(1));
    expect((await command.stop()).code).toBe(0);
  });

  it('isolates manifests with faults: others are added, updated and removed, also after a restart', async () => {
    await push(host, 'isolated/catalog', 1);
    // Without polling, a status changes with a manifest only.
    const fromImage = (name: string): object => manifest(name, `${host}/isolated/catalog:latest`, {});
    await sandbox.write({
      'd4/a.json': manifest('a', 'nowhere'),
      'd4/b.json': '{"kind": "ClusterCatalog"}',
      'd4/good.json': fromImage('good'),
      'd4/kept.json': fromImage('kept'),
    });
    // The status is written after the content is served.
    const settled = async (condition: string, ...names: string[]): Promise<void> => {
      const { code, stderr } = await sandbox.run([
        'catalogs',
        'wait',
        ...names,
        '--for',
        condition,
        '--storage',
        's4',
      ]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    };
    const reads = (url: string, name: string, text: string): Promise<string> =>
      until(
        () => textAt(`${url}/${name}/api/v1/all`),
        (found) => found === text,
      );
    const first = await serve('d4', ['--storage', 's4']);
    await reads(first.url, 'good', served(1));
    await reads(first.url, 'kept', served(1));
    await settled('Progressing=True', 'good', 'kept');
    await settled('Progressing=False', 'a', 'b.json');
    expect(first.command.stderr()).toMatch(
      /d4\/a\.json:1:\d+: spec\.source\.image\.ref: "nowhere" has no registry/,
    );
    expect(first.command.stderr()).toMatch(/d4\/b\.json:1:\d+: apiVersion: missing/);
    const local = await sandbox.run(['catalogs', 'status', '--storage', 's4', '-o', 'yaml']);
    const remote = await sandbox.run(['catalogs', 'status', '--url', first.url, '-o', 'yaml']);
    expect(remote).toMatchObject({ code: 0, stdout: local.stdout });
    for (const where of [
      ['--storage', 's4'],
      ['--url', first.url],
    ]) {
      const { stdout } = await sandbox.run(['catalogs', 'status', ...where]);
      expect(stdout.split('\n')[0]).toMatch(/^NAME +SERVING +PROGRESSING .* RESOLVED +MESSAGE$/);
      expect(stdout).toMatch(/^a +False \(Unavailable\) +False \(Blocked\) .*"nowhere" has no registry/m);
      expect(stdout).toMatch(/^b\.json +False \(Unavailable\) +False \(Blocked\) .*apiVersion: missing/m);
      expect(stdout).toMatch(
        /^good +True \(Available\) +True \(Succeeded\) .*isolated\/catalog@sha256:\S+ +-$/m,
      );
    }
    await sandbox.write({
      'd4/kept.json': 'apiVersion: [',
      'd4/more.json': fromImage('more'),
    });
    await rm(path.join(sandbox.work, 'd4/good.json'));
    await reads(first.url, 'more', served(1));
    await reads(first.url, 'good', '404');
    expect(await textAt(`${first.url}/kept/api/v1/all`)).toBe(served(1));
    expect((await first.command.stop()).code).toBe(0);

    const second = await serve('d4', ['--storage', 's4']);
    await reads(second.url, 'kept', served(1));
    await reads(second.url, 'more', served(1));
    await sandbox.write({ 'd4/a.json': fromImage('a') });
    await reads(second.url, 'a', served(1));
    await settled('Progressing=True', 'a');
    await settled('Progressing=False', 'kept');
    const { stdout } = await sandbox.run(['catalogs', 'status', 'kept', 'a', '--storage', 's4']);
    expect(stdout).toMatch(/^kept +True \(Available\) +False \(Blocked\) .*kept\.json:\d+: /m);
    expect(stdout).toMatch(/^a +True \(Available\) +True \(Succeeded\) /m);
    expect((await second.command.stop()).code).toBe(0);
  });

  it('lists every problem of a manifest with file and line, in the table, as JSON and in the log', async () => {
    const text = `apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  name: broken
spec:
  priority: high
  source:
    type: Image
    image:
      ref: 7
`;
    const fine = {
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name: 'fine' },
      spec: { source: { type: 'Directory', directory: { path: '../fbc-fine' } } },
    };
    await sandbox.write({ 'd9/broken.yaml': text, 'd9/fine.json': fine, 'fbc-fine/a.json': served(1) });
    const { command, url } = await serve('d9', ['--storage', 's9']);
    await until(
      () => textAt(`${url}/fine/api/v1/all`),
      (found) => found === served(1),
    );
    const problems = [
      /^ {2}.*d9\/broken\.yaml:6:3: spec\.priority: expected an integer .*, got a string$/m,
      /^ {2}.*d9\/broken\.yaml:10:7: spec\.source\.image\.ref: expected a string, got the number 7 \(.*\)$/m,
    ];
    for (const where of [
      ['--storage', 's9'],
      ['--url', url],
    ]) {
      const table = await sandbox.run(['catalogs', 'status', ...where, '--failed']);
      expect(table.stdout).toMatch(/^broken .*:6:3: spec\.priority: .* \(and 1 more\)$/m);
      expect(table.stdout).toContain('\nbroken: 2 problems\n');
      for (const problem of problems) expect(table.stdout).toMatch(problem);
      expect(table.stdout).not.toMatch(/^fine/m);
      expect(table.stderr).toContain('2 catalogs, 1 failed');
      const json = await sandbox.run(['catalogs', 'status', 'broken', ...where, '-o', 'json']);
      const { items } = JSON.parse(json.stdout) as { items: { status: { problems: object[] } }[] };
      expect(items[0]?.status.problems).toMatchObject([
        { message: expect.stringContaining('spec.priority: expected an integer') as string, line: 6 },
        { message: 'spec.source.image.ref: expected a string, got the number 7', line: 10, column: 7 },
      ]);
    }
    for (const where of [
      ['--storage', 's9'],
      ['--url', url],
    ]) {
      const status = await sandbox.run(['catalogs', 'status', 'fine', ...where, '-o', 'json']);
      expect(JSON.parse(status.stdout)).toMatchObject({
        items: [
          {
            spec: {
              source: {
                type: 'Directory',
                directory: { path: expect.stringMatching(/fbc-fine$/) as string },
              },
            },
          },
        ],
      });
      const metas = await sandbox.run(['catalogs', 'metas', ...where]);
      expect(metas.stdout).toMatch(/^NAME +CATALOG +SCHEMA +PACKAGE\n/);
      expect(metas.stdout).toMatch(/^\S+ +fine +olm\.\w+ /m);
      const packages = await sandbox.run([
        'catalogs',
        'list',
        ...where,
        '--schema',
        'olm.package',
        '-o',
        'json',
      ]);
      const schemas = (JSON.parse(packages.stdout) as { schema: string }[]).map(({ schema }) => schema);
      expect(new Set(schemas)).toEqual(new Set(['olm.package']));
    }
    expect(command.stderr()).toMatch(/^error: .*broken\.yaml: refused, 2 problems; other manifests/m);
    await sandbox.write({ 'd9/broken.yaml': text.replace('high', '1').replace('ref: 7', 'ref: "7"') });
    await until(
      async () => (await sandbox.run(['catalogs', 'status', 'broken', '--storage', 's9'])).stdout,
      (found) => !found.includes('spec.priority') && !found.includes('problems'),
    );
    expect((await command.stop()).code).toBe(0);
  });

  it('serves stored contents from the first request after a restart, except damaged ones', async () => {
    const directorySource = (name: string): object => ({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name },
      spec: { source: { type: 'Directory', directory: { path: `../fbc-${name}` } } },
    });
    await sandbox.write({
      ...Object.fromEntries(
        ['large', 'damaged'].map((name) => [
          `fbc-${name}/c.json`,
          largeCatalog(12_000_000, name)['catalog.json'] as string,
        ]),
      ),
      'd8/large.json': directorySource('large'),
      'd8/damaged.json': directorySource('damaged'),
    });
    const first = await serve('d8', ['--storage', 's8']);
    const texts = new Map<string, string>();
    for (const name of ['large', 'damaged']) {
      const text = await until(
        () => textAt(`${first.url}/${name}/api/v1/all`),
        (found) => found !== '503',
      );
      expect(text.length).toBeGreaterThan(12_000_000);
      texts.set(name, text);
    }
    expect((await first.command.stop()).code).toBe(0);
    // Nothing can be read again.
    for (const name of ['large', 'damaged'])
      await rm(path.join(sandbox.work, `fbc-${name}`), { recursive: true });
    const { hex } = parseDigest(computeDigest(texts.get('damaged') ?? ''));
    const stored = path.join(sandbox.work, 's8/contents', hex, 'catalog.jsonl');
    const bytes = await readFile(stored);
    bytes[5_000_000] = (bytes[5_000_000] as number) ^ 1;
    await writeFile(stored, bytes);

    const second = await serve('d8', ['--storage', 's8']);
    const [large, damaged] = await Promise.all([
      textAt(`${second.url}/large/api/v1/all`),
      textAt(`${second.url}/damaged/api/v1/all`),
    ]);
    expect(large === texts.get('large')).toBe(true);
    expect(damaged).toBe('503');
    expect((await second.command.stop()).code).toBe(0);
  });

  it('leaks nothing through updates and aborted requests, and serves metrics at their address only', async () => {
    const source = (version: string): object => ({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name: 'busy' },
      spec: { source: { type: 'Directory', directory: { path: `../fbc-busy-${version}` } } },
    });
    for (const version of ['a', 'b']) {
      await sandbox.write({
        [`fbc-busy-${version}/c.json`]: largeCatalog(1_000_000, version)['catalog.json'] ?? '',
      });
    }
    await sandbox.write({ 'd10/busy.json': source('a') });
    const { command, url } = await serve('d10', [
      ...['--storage', 's10', '--metrics-listen', '0', '--log-level', 'info'],
    ]);
    const metricsUrl = /serving metrics.*?(http:\/\/[^\s"]+)/.exec(command.stderr())?.[1] ?? '';
    const all = `${url}/busy/api/v1/all`;
    const hashOf = async (): Promise<string> =>
      (await fetch(all, { method: 'HEAD' })).headers.get('etag') ?? '';
    const first = await until(hashOf, (etag) => etag !== '');
    expect((await fetch(`${new URL(url).origin}/metrics`)).status).toBe(404);
    const inFlight = async (): Promise<string> =>
      /^opmate_http_requests_in_flight (\d+)$/m.exec(await textAt(metricsUrl))?.[1] ?? '';
    expect(await inFlight()).toBe('0');
    const { pid = 0 } = command.child;
    const descriptors = async (): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;
    const residentMiB = async (): Promise<number> =>
      Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

    const request = `GET ${new URL(all).pathname} HTTP/1.1\r\nHost: ${new URL(all).host}\r\n\r\n`;
    const sockets: Socket[] = [];
    const connected = async (text: string): Promise<Socket> => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      sockets.push(socket.on('error', () => undefined));
      await once(socket, 'connect');
      socket.write(text);
      return socket;
    };
    let isOver = false;
    const read = async (): Promise<void> => {
      while (!isOver)
        await fetch(all).then(
          (response) => response.arrayBuffer(),
          () => undefined,
        );
    };
    const abort = async (): Promise<void> => {
      while (!isOver) {
        const socket = await connected(request.repeat(2)).catch(() => undefined);
        if (socket === undefined) continue;
        await new Promise<void>((resolve) => {
          socket.once('data', () => resolve()).once('close', () => resolve());
        });
        socket.resetAndDestroy();
      }
    };
    const update = async (version: string, before: string): Promise<string> => {
      await sandbox.write({ 'd10/busy.json': source(version) });
      return until(hashOf, (etag) => etag !== before);
    };
    const [memory, open] = [await residentMiB(), await descriptors()];
    const clients = [read(), read(), abort(), abort()];
    let etag = first;
    for (const version of ['b', 'a', 'b']) etag = await update(version, etag);
    isOver = true;
    await Promise.all(clients);
    for (const socket of sockets) socket.destroy();
    await until(inFlight, (count) => count === '0');
    await until(descriptors, (count) => count <= open + 10);
    expect(await residentMiB()).toBeLessThan(memory + 250);
    // Content that has been replaced is gone.
    const contents = await until(
      async () =>
        (await readdir(path.join(sandbox.work, 's10/contents'))).filter((name) =>
          /^[0-9a-f]{64}$/.test(name),
        ),
      (names) => names.length === 1,
    );
    expect(`"sha256-${contents[0]}"`).toBe(etag);

    expect((await command.stop()).code).toBe(0);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('row 6: names packages with their catalog, selects by priority and label, and reports ambiguities', async () => {
    const directorySource = (name: string, more: object): object => ({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name, labels: { tier: name } },
      spec: { source: { type: 'Directory', directory: { path: `../fbc-${name}` } }, ...more },
    });
    await sandbox.write({
      'fbc-low/c.json': catalogText(1),
      'fbc-same/c.json': catalogOf('gadget', [{ name: 'gadget.v1.0.0' }]),
      'fbc-high/c.json': catalogOf('widget', [{ name: 'widget.v9.0.0' }]),
      'd5/low.json': directorySource('low', {}),
      'd5/same.json': directorySource('same', {}),
      'd5/high.json': directorySource('high', { priority: 7 }),
    });
    const { command, url } = await serve('d5', ['--storage', 's5']);
    await sandbox.run([
      'catalogs',
      'wait',
      '--storage',
      's5',
      '--for',
      'condition=Ready',
      'low',
      'same',
      'high',
    ]);
    const ask = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await sandbox.run(['catalogs', 'packages', ...args]);
      return code === 0 ? stdout : stderr;
    };
    const stored = ['--storage', 's5'];
    const asked = ['--url', url];
    expect(await ask(...stored)).toBe('high/widget\nlow/gadget\nlow/widget\nsame/gadget\n');
    expect(await ask(...asked)).toBe('high/widget\nlow/gadget\nlow/widget\nsame/gadget\n');
    expect(await ask('widget', ...asked)).toBe('high/widget\n');
    expect(await ask('low/widget', ...stored)).toBe('low/widget\n');
    expect(await ask('--selector', 'tier=same', ...asked)).toBe('same/gadget\n');
    expect(await ask('gadget', '--catalog', 'low', ...stored)).toBe('low/gadget\n');
    expect(await ask('gadget', ...stored)).toContain(
      'several catalogs of the same priority have it: low/gadget, same/gadget',
    );
    expect(await ask('none', ...asked)).toContain('none: no catalog has such a package');
    await command.stop();
  });

  it('finds its storage by the directory of the manifests', async () => {
    await sandbox.write({
      'fbc/c.json': catalogText(1),
      'd7/a.json': {
        apiVersion: 'olm.operatorframework.io/v1',
        kind: 'ClusterCatalog',
        metadata: { name: 'a' },
        spec: { source: { type: 'Directory', directory: { path: '../fbc' } } },
      },
    });
    const env = { XDG_CACHE_HOME: path.join(sandbox.work, 'cache') };
    const none = await sandbox.run(['catalogs', 'status'], { env });
    expect(none).toMatchObject({ code: 1, stdout: '' });
    const { command } = await serve('d7', ['--grpc', '127.0.0.1:0', '--log-level', 'info'], env);
    expect((await sandbox.run(['catalogs', 'wait', '--catalogs', 'd7'], { env })).code).toBe(0);
    // The same catalog over gRPC, by host name.
    const port = Number(/serving registry.*?port[=":]+(\d+)/.exec(command.stderr())?.[1]);
    const client = registryClient(port, { authority: 'a.catalogs.svc' });
    expect(await client.call('GetPackage', { name: 'widget' })).toMatchObject([{ name: 'widget' }]);
    client.close();
    const status = await sandbox.run(['catalogs', 'status', 'a', '-o', 'yaml'], { env });
    expect(status.stdout).toContain('reason: Available');
    // Another server with the same storage would remove contents of this one.
    const second = await sandbox.run(['serve', '--catalogs', 'd7', '--http', '0'], { env });
    expect(second).toMatchObject({ code: 1, stdout: '' });
    expect(second.stderr).toMatch(/in use by process \d+ on .*--storage/s);
    await command.stop();
    const again = await serve('d7', [], env);
    await again.command.stop();
  });

  it.skipIf(!hasDockerRegistry)('follows docker-registry through an outage', async () => {
    const other: DockerRegistry = await startDockerRegistry();
    let isGone = false;
    try {
      await push(other.host, 'a/b', 1);
      await sandbox.write({ 'd6/c.json': manifest('c', `${other.host}/a/b:latest`) });
      const { command, url } = await serve('d6', ['--storage', 's6']);
      await until(
        () => textAt(`${url}/c/api/v1/all`),
        (text) => text === served(1),
      );
      await push(other.host, 'a/b', 2);
      await until(
        () => textAt(`${url}/c/api/v1/all`),
        (text) => text === served(2),
      );
      await other.close();
      isGone = true;
      await until(
        () => Promise.resolve(command.stderr()),
        (text) => /catalog c: .*still serving the previous content/.test(text),
      );
      expect(await textAt(`${url}/c/api/v1/all`)).toBe(served(2));
      await command.stop();
      // Also from the beginning.
      const again = await serve('d6', ['--storage', 's6']);
      await until(
        () => textAt(`${again.url}/c/api/v1/all`),
        (text) => text === served(2),
      );
      await again.command.stop();
    } finally {
      if (!isGone) await other.close();
    }
  });
});

// Only Node.js loads a module of NODE_OPTIONS.
describe.skipIf(isExecutable)('opmate serve --catalogs, killed during a swap', () => {
  const preload = pathToFileURL(path.join(projectRoot, 'test/support/kill-at.js')).href;

  async function swapKilledAt(at: number | undefined, name: string): Promise<string[]> {
    // Without an interval nothing is written between the two states; the manifest leads from one to the other.
    const file = `d-${name}/k.json`;
    const manifestOf = (repository: string): object => manifest('k', `${repository}:latest`, {});
    const storage = path.join(sandbox.work, `s-${name}`);
    await sandbox.write({ [file]: manifestOf(`${host}/kill-old/catalog`) });
    const { command, url } = await serve(`d-${name}`, ['--storage', storage], {
      NODE_OPTIONS: `--import ${preload}`,
      OPMATE_TEST_KILL_BELOW: storage,
      ...(at !== undefined && { OPMATE_TEST_KILL_AT: String(at) }),
    });
    await until(
      () => textAt(`${url}/k/api/v1/all`),
      (text) => text === served(1),
    );
    await sandbox.run(['catalogs', 'wait', '--storage', storage, '--for', 'Progressing']);
    await writeFile(path.join(storage, 'armed'), '');
    await sandbox.write({ [file]: manifestOf(`${host}/kill-new/catalog`) });
    if (at === undefined) {
      await until(
        () => textAt(`${url}/k/api/v1/all`),
        (text) => text === served(2),
      );
      await command.stop('SIGKILL');
      const calls = await readFile(path.join(storage, 'calls'), 'utf8');
      return calls.trim().split('\n');
    }
    const { code } = await command.result;
    expect(code).toBeNull();
    await rm(path.join(storage, 'armed'));
    // The registry is gone: only what is on the disk can be served.
    await sandbox.write({ [file]: manifestOf('127.0.0.1:1/gone/catalog') });
    const again = await serve(`d-${name}`, ['--storage', storage]);
    const text = await until(
      () => textAt(`${again.url}/k/api/v1/all`),
      // Until it is loaded; that there is no such catalog is never said.
      (found) => found !== '503',
    );
    await again.command.stop();
    return [text === served(1) ? 'old' : text === served(2) ? 'new' : `neither: ${text.slice(0, 300)}`];
  }

  it('row 36: serves the complete old or new content after a kill at any point', async () => {
    await push(host, 'kill-old/catalog', 1);
    await push(host, 'kill-new/catalog', 2);
    const calls = await swapKilledAt(undefined, 'count');
    const swap = calls.findIndex((call) => call.startsWith('rename') && call.includes('/catalogs/'));
    expect(swap).toBeGreaterThan(1);
    // The renaming of the record decides.
    const points = [1, Math.ceil(swap / 2), swap + 1, swap + 2];
    const outcomes: string[] = [];
    for (const at of points) outcomes.push(...(await swapKilledAt(at, `kill-${at}`)));
    expect(outcomes).toEqual(['old', 'old', 'old', 'new']);
  }, 180_000);
});
