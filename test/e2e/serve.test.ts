import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { chmod, mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ChannelCredentials } from '@grpc/grpc-js';
import { beforeAll, describe, expect, it } from 'vitest';
import { layerOf } from '../../src/archive/tar-writer.js';
import { imageLabels } from '../../src/model/image-labels.js';
import { buildImage } from '../../src/oci/image/image-builder.js';
import { createAuthority } from '../support/certificates.js';
import {
  type RunOptions,
  type RunningCommand,
  bundlesDirectory,
  readGrpcPort,
  useSandbox,
} from '../support/command-line.js';
import { type RegistryClient, registryClient } from '../support/registry-client.js';
import { caseOf, catalogOf, widgetCatalog } from './catalogs.js';
import { makeCatalogImage, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...parts: string[]): string => path.join(sandbox.work, ...parts);

/** Runs `work` against `opmate serve ARGS`; returns the result of the server, which is then told to stop. */
async function withServer(
  args: string[],
  work: (client: RegistryClient, port: number, server: RunningCommand) => Promise<void>,
  options: RunOptions & { credentials?: ChannelCredentials } = {},
) {
  const { credentials, ...run } = options;
  const server = sandbox.start(['serve', ...args, '-p', '0', '--host', '127.0.0.1'], run);
  const port = await readGrpcPort(server);
  const client = registryClient(port, credentials === undefined ? {} : { credentials });
  try {
    await work(client, port, server);
  } finally {
    client.close();
  }
  return server.stop();
}

const packagesOf = async (client: RegistryClient): Promise<unknown[]> =>
  (await client.call('ListPackages')).map(({ name }) => name);

beforeAll(async () => {
  await sandbox.write({
    'catalog/all.json': widgetCatalog,
    'other/all.json': catalogOf('other', [{ name: 'o.v1' }]),
  });
});

describe('opmate serve', () => {
  it('serves a directory until stopped, prints nothing, and leaves nothing behind', async () => {
    const result = await withServer(['catalog'], async (client) => {
      expect(await packagesOf(client)).toEqual(['widget']);
      expect((await client.call('ListBundles')).length).toBeGreaterThan(0);
    });
    expect(result).toMatchObject({ code: 0, stdout: '' });
    expect(result.stderr).toMatch(/^info: serving registry catalog=catalog port=\d+ tls=false\n/);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('serves an image and a layout without leftovers', async () => {
    await storeImage(at('layout'), 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
    const result = await withServer(['oci:layout:v1', '--cache-dir', 'layout-cache'], async (client) => {
      expect(await packagesOf(client)).toEqual(['widget']);
    });
    expect(result.code).toBe(0);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('shares its port among worker processes, replaces a killed one, and stops all', async (context) => {
    if (process.platform !== 'linux') return context.skip();
    const args = [at('catalog'), '--workers', '2', '--cache-dir', at('workers-cache')];
    const result = await withServer(args, async (client, port, server) => {
      const started = () => server.stderr().match(/serving registry/g)?.length;
      const { pid = 0 } = server.child;
      const workersOf = async (): Promise<number[]> => {
        const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
        return text.trim().split(' ').map(Number);
      };
      await expect.poll(started).toBe(2);
      const before = await workersOf();
      expect(before).toHaveLength(2);
      expect(await packagesOf(client)).toEqual(['widget']);
      process.kill(before[0] as number, 'SIGKILL');
      await expect.poll(started).toBe(3);
      const after = await workersOf();
      expect(after.filter((worker) => before.includes(worker))).toEqual([before[1]]);
      const another = registryClient(port);
      expect(await packagesOf(another)).toEqual(['widget']);
      another.close();
    });
    expect(result.code).toBe(0);
    expect(result.stderr).toMatch(/worker process \d+ ended/);
  });

  it('fails with the message and exit code of its first worker', async () => {
    const args = ['serve', at('missing'), '-p', '0', '--host', '127.0.0.1'];
    const [one, two] = [sandbox.start(args), sandbox.start([...args, '--workers', '2'])];
    expect(await one.result).toMatchObject({ code: 1, stdout: '' });
    expect(await two.result).toEqual(await one.result);
    const refused = await sandbox.run(['serve', at('catalog'), '--workers', '2', '--http']);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('--workers and --http cannot be used together');
  });

  it('stops on SIGINT too, with exit code 0', async () => {
    const server = sandbox.start(['serve', 'catalog', '-p', '0']);
    await readGrpcPort(server);
    expect(await server.stop('SIGINT')).toMatchObject({ code: 0 });
  });

  it('refuses an invalid catalog with the message of opm, also in the termination log', async () => {
    const { catalog, message } = caseOf('bundle-unknown-package');
    await sandbox.write({ 'invalid/all.json': catalog, 'termination.log': '' });
    const result = await sandbox.run(['serve', 'invalid', '-p', '0', '-t', 'termination.log']);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    const [line = ''] = message.split('\n').filter((text) => /config|package/.test(text));
    const said = /config contains .*|package .*/.exec(line)?.[0] ?? line;
    expect(result.stderr).toContain(said.trim());
    expect(await readFile(at('termination.log'), 'utf8')).toContain(said.trim());
  });

  it('only warns about a termination log that cannot be written', async () => {
    const result = await sandbox.run(['serve', 'nowhere', '-t', 'no/such/file']);
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/warn: cannot write no\/such\/file: .*\n/);
    expect(result.stderr).toContain('nowhere');
  });

  it.each([
    [['catalog', '-p', 'x'], '--port "x": expected an integer from 0 to 65535'],
    [['catalog', '-p', '65536'], '--port "65536": expected an integer from 0 to 65535'],
    [['catalog', '-p', '0x1F'], '--port "0x1F": expected an integer from 0 to 65535'],
    [
      ['catalog', '--cache-enforce-integrity'],
      '--cache-dir must be specified with --cache-enforce-integrity',
    ],
    [['catalog', '--cache-only'], '--cache-only: needs --cache-dir'],
    [['catalog', '--tls-cert', 'x'], '--tls-cert: needs --tls-key'],
    [[], 'missing required argument "catalog"\nhint: see opmate serve --help'],
  ])('%j is wrong usage', async (args, message) => {
    const result = await sandbox.run(['serve', ...args]);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(message);
  });

  it('reports a port in use in one line', async () => {
    await withServer(['catalog'], async (_client, port) => {
      const result = await sandbox.run(['serve', 'other', '-p', String(port), '--host', '127.0.0.1']);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr.split('\n')[0]).toBe(`error: listen 127.0.0.1:${port}: address already in use`);
    });
  });

  it('accepts unused flags of opm', async () => {
    const flags = [
      '--debug',
      '--pprof-addr',
      '',
      '--cache-dir',
      'flags-cache',
      '--cache-enforce-integrity=false',
    ];
    const result = await withServer(['catalog', ...flags], async (client) => {
      expect(await packagesOf(client)).toEqual(['widget']);
    });
    expect(result.stderr).not.toContain('profiles');
    const asked = await withServer(['catalog', '--pprof-addr', 'localhost:6060'], async () => undefined);
    expect(asked.stderr).toContain('no effect: --pprof-addr');
  });

  it('needs no temporary directory', async () => {
    const result = await withServer(
      ['catalog'],
      async (client) => expect((await client.call('ListBundles')).length).toBeGreaterThan(0),
      { env: { TMPDIR: '/nonexistent' } },
    );
    expect(result.code).toBe(0);
  });

  it('logs calls as JSON, without content', async () => {
    const result = await withServer(['catalog', '--log-format', 'json'], async (client) => {
      await client.call('GetPackage', { name: 'widget' }, { authorization: 'Bearer secret-token' });
    });
    const lines = result.stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const call = lines.find(({ message }) => message === 'finished call');
    expect(call).toMatchObject({ level: 'info', method: '/api.Registry/GetPackage', code: 'OK' });
    expect(Object.keys(call as object).sort()).toEqual(
      ['code', 'durationMs', 'id', 'level', 'message', 'method', 'time'].sort(),
    );
    expect(result.stderr).not.toContain('secret-token');
  });

  it('serves TLS, with the new certificate when its files change', async () => {
    const [before, after] = [createAuthority('before'), createAuthority('after')];
    const write = async ({ cert, key }: { cert: string; key: string }): Promise<void> =>
      sandbox.write({ 'tls.crt': cert, 'tls.key': key });
    const trusting = (cert: string): ChannelCredentials => ChannelCredentials.createSsl(Buffer.from(cert));
    await write(before.issue());
    const tls = ['--tls-cert', 'tls.crt', '--tls-key', 'tls.key'];
    await withServer(
      ['catalog', ...tls],
      async (client, port, server) => {
        expect(await packagesOf(client)).toEqual(['widget']);
        await writeFile(at('tls.crt'), 'half written');
        while (!server.stderr().includes('still serving'))
          await new Promise((resolve) => setTimeout(resolve, 20));
        expect(await packagesOf(client)).toEqual(['widget']);
        await write(after.issue());
        while (!server.stderr().includes('new certificate'))
          await new Promise((resolve) => setTimeout(resolve, 20));
        const other = registryClient(port, { credentials: trusting(after.cert) });
        expect(await packagesOf(other)).toEqual(['widget']);
        other.close();
      },
      { credentials: trusting(before.cert) },
    );
    const refused = await sandbox.run([
      'serve',
      'catalog',
      '-p',
      '0',
      '--tls-cert',
      'tls.crt',
      '--tls-key',
      'none',
    ]);
    expect(refused).toMatchObject({ code: 1 });
  });

  it('creates a cache for an image layer that a server then uses', async () => {
    const made = await sandbox.run([
      'serve',
      'catalog',
      '--cache-dir',
      'cache',
      '--cache-only',
      '-t',
      '/dev/null',
    ]);
    expect(made).toMatchObject({ code: 0, stdout: '' });
    const [file] = await readdir(at('cache'));
    expect((await stat(at('cache', file as string))).mode & 0o777).toBe(0o644);
    await chmod(at('cache'), 0o555);
    const strict = ['--cache-dir', 'cache', '--cache-enforce-integrity'];
    const result = await withServer(['catalog', ...strict], async (client) => {
      expect(await packagesOf(client)).toEqual(['widget']);
    });
    expect(result.stderr).not.toContain('cache');
    const other = await sandbox.run(['serve', 'other', ...strict]);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('integrity check failed');
    await chmod(at('cache'), 0o755);
  });

  it('ignores a cache of opm, and reports why it creates one', async () => {
    await mkdir(at('opm-cache/pogreb.v1'), { recursive: true });
    await writeFile(at('opm-cache/pogreb.v1/digest'), '0123456789abcdef');
    const result = await withServer(['catalog', '--cache-dir', 'opm-cache'], async (client) => {
      expect(await packagesOf(client)).toEqual(['widget']);
    });
    expect(result).toMatchObject({ code: 0 });
    expect(await readFile(at('opm-cache/pogreb.v1/digest'), 'utf8')).toBe('0123456789abcdef');
  });

  it('fails with --cache-only if the cache cannot be written', async () => {
    await writeFile(at('file'), '');
    const result = await sandbox.run(['serve', 'catalog', '--cache-dir', 'file', '--cache-only']);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('file: cannot write the cache: it cannot be written: ');
  });

  it('does not wait for a pipe in place of its cache or termination log', async () => {
    const making = ['serve', 'catalog', '--cache-dir', 'pipes', '--cache-only'];
    expect(await sandbox.run(making)).toMatchObject({ code: 0 });
    const [cache = ''] = (await readdir(at('pipes'))).filter((name) => name.endsWith('.cache'));
    await rm(at('pipes', cache));
    for (const name of [`pipes/${cache}`, 'log']) execFileSync('mkfifo', [at(name)]);
    const result = await withServer(['catalog', '--cache-dir', 'pipes'], async (client) => {
      expect(await packagesOf(client)).toEqual(['widget']);
    });
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain('damaged');
    const failed = await sandbox.run(['serve', 'nowhere', '-t', 'log']);
    expect(failed).toMatchObject({ code: 1 });
    expect(failed.stderr).toContain('warn: cannot write log: ');
  });

  it('also serves the HTTP catalog API, under the name of the directory or a given one', async () => {
    for (const [flags, name] of [
      [[], 'catalog'],
      [['--name', 'my.catalog'], 'my.catalog'],
    ] as const) {
      const args = ['catalog', '--http', '127.0.0.1:0', ...flags];
      await withServer(args, async (client, _port, server) => {
        const url = await server.firstLine();
        expect(new URL(url).pathname).toBe(`/catalogs/${name}`);
        expect((await fetch(new URL('/readyz', url))).status).toBe(200);
        const lines = (await (await fetch(`${url}/api/v1/all`)).text()).trim().split('\n');
        expect(lines.map((line) => (JSON.parse(line) as { schema: string }).schema)).toContain('olm.package');
        expect(await packagesOf(client)).toEqual(['widget']);
      });
    }
    const wrong = await sandbox.run(['serve', 'catalog', '--http', '0', '--name', '../x', '-p', '0']);
    expect(wrong).toMatchObject({ code: 1, stdout: '' });
    expect(wrong.stderr).toContain('--name "../x": must be a DNS-1123 subdomain');
  });

  it('serves the file of a sqlite index, and an image of one', async () => {
    const made = await sandbox.run([
      'registry',
      'add',
      '-b',
      path.join(bundlesDirectory, 'silicom-sts-operator/0.0.1'),
      '-d',
      'index.db',
    ]);
    expect(made.code).toBe(0);
    await withServer(['index.db'], async (client) => {
      expect(await client.call('ListBundles')).toHaveLength(1);
    });
    const cached = await sandbox.run(['serve', 'index.db', '--cache-dir', 'cache', '--cache-only']);
    expect(cached.code).toBe(1);
    expect(cached.stderr).toContain(
      'index.db: a sqlite index is served without a cache\nhint: remove --cache-only',
    );
    const content = await readFile(at('index.db'));
    const image = await buildImage({
      layers: [await layerOf([{ path: 'database/index.db', content }])],
      labels: { [imageLabels.database]: '/database/index.db' },
    });
    await storeImage(at('index-layout'), 'v1', image);
    await withServer(['oci:index-layout:v1'], async (client) => {
      expect(await packagesOf(client)).toEqual(['silicom-sts-operator']);
    });
  });

  it('stops despite an idle connection', async () => {
    const server = sandbox.start(['serve', 'catalog', '-p', '0', '--host', '127.0.0.1']);
    const socket = connect(await readGrpcPort(server), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    expect(await server.stop()).toMatchObject({ code: 0 });
    socket.destroy();
  });
});
