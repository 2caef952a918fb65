import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { load } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { pushImage } from '../../src/oci/image/image-builder.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { mediaTypes } from '../../src/oci/image/types.js';
import { createAuthority } from '../support/certificates.js';
import { type RunningCommand, useSandbox } from '../support/command-line.js';
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { catalogOf, widgetCatalog } from './catalogs.js';
import { makeCatalogImage, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...parts: string[]): string => path.join(sandbox.work, ...parts);
const platforms = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64' },
];

/** Runs `work` against `opmate oci serve DIRECTORY`. */
async function withServer<T>(
  directory: string,
  work: (host: string, server: RunningCommand) => Promise<T>,
  flags: string[] = [],
): Promise<T> {
  const server = sandbox.start(['oci', 'serve', directory, '--port', '0', ...flags]);
  try {
    return await work(new URL(await server.firstLine()).host, server);
  } finally {
    await server.stop();
  }
}

let multiDigest = '';

beforeAll(async () => {
  await storeImage(at('one'), 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
  // An index of two platforms whose catalogs differ, so that tests can tell which was taken.
  const layout = await openLayout(at('multi'), { create: true });
  const manifests = [];
  for (const platform of platforms) {
    const catalog = catalogOf(platform.architecture, [{ name: `${platform.architecture}.v1` }]);
    const image = await makeCatalogImage({ 'all.json': catalog }, { platform });
    manifests.push({ ...(await pushImage(layout, image.descriptor.digest, image)), platform });
  }
  const index = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests }));
  multiDigest = (await layout.putManifest('v1', index, mediaTypes.ociIndex)).digest;
});

describe('opmate oci serve', () => {
  it('creates the directory, prints its URL, and serves it', async () => {
    const server = sandbox.start(['oci', 'serve', 'new/registry', '--port', '0']);
    const url = await server.firstLine();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await fetch(`${url}/v2/`)).status).toBe(200);
    expect((await readdir(at('new/registry'))).sort()).toEqual(['blobs', 'index.json', 'oci-layout']);
    expect(await server.stop()).toEqual({ code: 0, stdout: `${url}\n`, stderr: '' });
  });

  it('serves TLS to clients that trust its CA', async () => {
    const authority = createAuthority('test authority of serve');
    const { cert, key } = authority.issue();
    await sandbox.write({ 'server.crt': cert, 'server.key': key, 'ca.crt': authority.cert });
    const tls = ['--tls-cert', 'server.crt', '--tls-key', 'server.key'];
    const server = sandbox.start(['oci', 'serve', 'tls', '--port', '0', ...tls]);
    const url = await server.firstLine();
    expect(url).toMatch(/^https:/);
    const { host } = new URL(url);
    const copied = await sandbox.run([
      'oci',
      'copy',
      'oci:one:v1',
      `${host}/ns/one:v1`,
      '--ca-file',
      'ca.crt',
    ]);
    expect(copied).toMatchObject({ code: 0 });
    const refused = await sandbox.run(['oci', 'inspect', `${host}/ns/one:v1`]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('test authority of serve');
    await server.stop();
  });

  it.each([
    [['--tls-cert', 'server.crt'], 2, '--tls-cert: needs --tls-key'],
    [['--tls-cert', 'none', '--tls-key', 'none'], 1, 'none'],
    [['--port', '70000'], 2, '--port "70000": expected an integer from 0 to 65535'],
    [['--port', 'http'], 2, '--port "http": expected an integer from 0 to 65535'],
  ])('refuses %j', async (flags, code, message) => {
    const result = await sandbox.run(['oci', 'serve', 'refused', ...flags]);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toContain(message);
  });

  it('reports a port in use', async () => {
    await withServer('used', async (host) => {
      const port = host.split(':')[1] as string;
      const samePort = await sandbox.run(['oci', 'serve', 'other', '--port', port]);
      expect(samePort).toMatchObject({ code: 1, stdout: '' });
      expect(samePort.stderr).toContain(port);
    });
  });

  it('refuses a directory with other files', async () => {
    await sandbox.write({ 'mine/notes.txt': 'mine' });
    const result = await sandbox.run(['oci', 'serve', 'mine', '--port', '0'], { timeoutMs: 5000 });
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(await readdir(at('mine'))).toEqual(['notes.txt']);
  });

  it('loses nothing when two processes serve one directory', async () => {
    await withServer('shared', (one) =>
      withServer('shared', async (other) => {
        const targets = [one, other, one, other, one, other].map((host, i) => `${host}/ns/one:v${i}`);
        const copy = (target: string) => sandbox.run(['oci', 'copy', '--use-http', 'oci:one:v1', target]);
        for (const { code } of await Promise.all(targets.map(copy))) expect(code).toBe(0);
        for (const host of [one, other]) {
          const { stdout } = await sandbox.run(['oci', 'inspect', '--use-http', `${host}/ns/one`, '--tags']);
          expect(JSON.parse(stdout)).toMatchObject({ tags: ['v0', 'v1', 'v2', 'v3', 'v4', 'v5'] });
        }
      }),
    );
  });

  it('keeps pushed contents after a kill and restart', async () => {
    const first = sandbox.start(['oci', 'serve', 'killed', '--port', '0']);
    const { host } = new URL(await first.firstLine());
    await sandbox.run(['oci', 'copy', '--use-http', 'oci:one:v1', `${host}/ns/one:v1`]);
    await first.stop('SIGKILL');
    await withServer('killed', async (again) => {
      const rendered = await sandbox.run(['render', '--use-http', `${again}/ns/one:v1`]);
      expect(rendered.stdout).toBe((await sandbox.run(['render', 'oci:one:v1'])).stdout);
    });
  });
});

describe('opmate oci copy', () => {
  it('creates no layout for a missing image', async () => {
    const { code } = await sandbox.run(['oci', 'copy', 'oci:one:none', 'oci:not-made:v1']);
    expect(code).toBe(1);
    await expect(readdir(at('not-made'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('keeps the digest from a layout to a registry, to another one, and back', async () => {
    await withServer('hub', async (host) => {
      const http = '--use-http';
      const copies = [
        ['oci:multi:v1', `${host}/ns/multi:v1`],
        [`${host}/ns/multi:v1`, `${host}/other/multi:v2`],
        [`${host}/other/multi:v2`, 'oci:back'],
        [`${host}/other/multi@${multiDigest}`, 'oci:back:by-digest'],
      ];
      for (const [from, to] of copies as [string, string][]) {
        const { code, stdout } = await sandbox.run(['oci', 'copy', http, from, to]);
        expect({ code, stdout }).toEqual({ code: 0, stdout: `${multiDigest}\n` });
      }
      expect(await readFile(at('back/blobs/sha256', multiDigest.slice(7)))).toEqual(
        await readFile(at('multi/blobs/sha256', multiDigest.slice(7))),
      );
      const tags = await sandbox.run(['oci', 'inspect', 'oci:back:v2', '--tags']);
      expect(JSON.parse(tags.stdout)).toMatchObject({ tags: ['by-digest', 'v2'] });
    });
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('copies one platform on request', async () => {
    const { code } = await sandbox.run([
      'oci',
      'copy',
      'oci:multi:v1',
      'oci:arm:v1',
      '--platform',
      'linux/arm64',
    ]);
    expect(code).toBe(0);
    expect((await sandbox.run(['render', 'oci:arm:v1', '--platform', 'linux/arm64'])).stdout).toContain(
      '"arm64.v1"',
    );
  });

  it.skipIf(!hasDockerRegistry)('copies to and from docker-registry', async () => {
    const registry = await startDockerRegistry();
    try {
      const image = `${registry.host}/ns/multi:v1`;
      const pushed = await sandbox.run(['oci', 'copy', '--use-http', 'oci:multi:v1', image]);
      expect(pushed).toMatchObject({ code: 0, stdout: `${multiDigest}\n` });
      const pulled = await sandbox.run(['oci', 'copy', '--use-http', image, 'oci:from-docker:v1']);
      expect(pulled).toMatchObject({ code: 0, stdout: `${multiDigest}\n` });
      const rendered = await sandbox.run(['render', '--use-http', image, '--platform', 'linux/amd64']);
      expect(rendered.stdout).toContain('"amd64.v1"');
    } finally {
      await registry.close();
    }
  });

  it.each([
    ['oci:none:v1', 'oci:target:v1', 'none: not an OCI image layout'],
    ['oci:one:v9', 'oci:target:v1', 'v9'],
    ['oci:one:v1', 'oci-archive:target.tar:v1', 'archives are read-only'],
  ])('refuses to copy %s to %s', async (from, to, message) => {
    const { code, stdout, stderr } = await sandbox.run(['oci', 'copy', from, to]);
    expect(code).not.toBe(0);
    expect(stdout).toBe('');
    expect(stderr).toContain(message);
    expect(await readdir(sandbox.work)).not.toContain('target.tar');
  });

  it('detects a blob damaged on disk', async () => {
    await storeImage(at('damaged'), 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
    const blobs = at('damaged/blobs/sha256');
    for (const name of await readdir(blobs)) {
      const bytes = await readFile(path.join(blobs, name));
      if (bytes.readUInt16BE(0) !== 0x1f8b) continue;
      bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1;
      await writeFile(path.join(blobs, name), bytes);
    }
    for (const args of [
      ['render', 'oci:damaged:v1'],
      ['oci', 'copy', 'oci:damaged:v1', 'oci:healthy:v1'],
    ]) {
      const { code, stdout, stderr } = await sandbox.run(args);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/digest/);
    }
    expect(await sandbox.leftovers()).toEqual([]);
  });
});

describe('opmate oci inspect', () => {
  it('prints digest, platform, labels and layers as JSON and YAML', async () => {
    const { code, stdout } = await sandbox.run(['oci', 'inspect', 'oci:one:v1']);
    expect(code).toBe(0);
    const value = JSON.parse(stdout) as object;
    expect(value).toMatchObject({
      digest: expect.stringMatching(/^sha256:/) as string,
      mediaType: mediaTypes.ociManifest,
      platform: { os: 'linux', architecture: 'amd64' },
      labels: { 'operators.operatorframework.io.index.configs.v1': '/configs' },
      layers: [{ mediaType: mediaTypes.ociLayerGzip }],
    });
    expect(load((await sandbox.run(['oci', 'inspect', 'oci:one:v1', '-o', 'yaml'])).stdout)).toEqual(value);
  });

  it('says how to name an image in a directory or file', async () => {
    await sandbox.write({ 'image.tar': '' });
    for (const command of [['inspect'], ['inspect', '--tags'], ['inspect', '--raw'], ['copy', 'oci:to:v1']]) {
      for (const [name, problem, hint] of [
        ['one', 'is a directory', 'use oci:one'],
        ['./one', 'is a directory', 'use oci:./one'],
        ['image.tar', 'is a file', 'use oci-archive:image.tar or docker-archive:image.tar'],
      ] as const) {
        const [verb = '', ...more] = command;
        const refused = await sandbox.run(['oci', verb, name, ...more]);
        expect(refused).toEqual({
          code: 2,
          stdout: '',
          stderr: `error: ${name}: ${problem}\nhint: ${hint}\n`,
        });
      }
    }
    const missing = await sandbox.run(['oci', 'inspect', './none']);
    expect(missing).toMatchObject({ code: 1, stderr: 'error: ./none: no such file or directory\n' });
  });

  it('prints the manifest with --raw as it is stored', async () => {
    const { stdout } = await sandbox.run(['oci', 'inspect', 'oci:multi:v1', '--raw']);
    expect(stdout).toBe(await readFile(at('multi/blobs/sha256', multiDigest.slice(7)), 'utf8'));
  });

  it('selects a platform', async () => {
    for (const { os, architecture } of platforms) {
      const platform = ['--platform', `${os}/${architecture}`];
      const inspected = await sandbox.run(['oci', 'inspect', 'oci:multi:v1', ...platform]);
      expect(JSON.parse(inspected.stdout)).toMatchObject({ digest: multiDigest, platform: { architecture } });
      const listed = await sandbox.run(['list', 'packages', 'oci:multi:v1', ...platform]);
      expect(listed.stdout.split('\n')[1]).toMatch(new RegExp(`^${architecture} `));
    }
    const missing = await sandbox.run(['render', 'oci:multi:v1', '--platform', 'linux/s390x']);
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(missing.stderr).toMatch(/linux\/s390x/);
    expect(missing.stderr).toMatch(/linux\/amd64/);
  });

  it('reports missing parts of an incomplete layout', async () => {
    await mkdir(at('empty-directory'));
    await storeImage(at('partial'), 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
    await rm(at('partial/oci-layout'));
    for (const name of ['empty-directory', 'partial']) {
      const { code, stdout, stderr } = await sandbox.run(['oci', 'inspect', `oci:${name}:v1`]);
      expect(code).toBe(1);
      expect(stdout).toBe('');
      expect(stderr).toContain(name);
    }
  });
});
