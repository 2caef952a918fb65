import { execFile } from 'node:child_process';
import { readFile, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pushImageIndex } from '../../src/oci/image/image-builder.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { type AppRegistry, packageArchive, startAppRegistry } from '../support/app-registry.js';
import { useSandbox } from '../support/command-line.js';
import { asText, smallCsv, smallPackage, widgetTree } from '../support/manifest-trees.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';
import { rawTar } from '../support/tar.js';
import { gzipSync } from 'node:zlib';
import { startRegistry } from '../../src/serve/registry/registry.js';
import { makeImage, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const run = promisify(execFile);
const hasSkopeo = await run('skopeo', ['--version']).then(
  () => true,
  () => false,
);

let apps: AppRegistry;
beforeAll(async () => {
  apps = await startAppRegistry();
});
afterAll(() => apps.close());
beforeEach(() => {
  apps.token = undefined;
  apps.misbehave = undefined;
  apps.requests.length = 0;
});

const flattened = {
  'bundle.yaml': JSON.stringify({
    data: {
      customResourceDefinitions: '[]',
      clusterServiceVersions: JSON.stringify([smallCsv({ name: 'flat.v1' })]),
      packages: JSON.stringify([smallPackage('flat', { stable: 'flat.v1' })]),
    },
  }),
};
const oldTree = asText({
  'w/p.yaml': smallPackage('widget', { stable: 'widget.v0' }),
  'w/csv.yaml': smallCsv({ name: 'widget.v0' }),
});

const build = (...args: string[]) => sandbox.run(['registry', 'build', ...args]);
const fromApps = (namespace: string, ...args: string[]) =>
  build('--appregistry-endpoint', apps.endpoint, '--appregistry-namespace', namespace, ...args);
const packagesOf = async (reference: string): Promise<string[]> => {
  const { stdout } = await sandbox.run(['list', 'packages', reference]);
  return [...stdout.matchAll(/^([a-z-]+) /gm)].map(([, name]) => name as string);
};

describe('registry build', () => {
  it('reads the default release of every package of a namespace', async () => {
    apps.serve('ns', 'widget', {
      '1.0.0': packageArchive(oldTree),
      '10.0.0': packageArchive(widgetTree()),
      '9.0.0': packageArchive(oldTree),
    });
    apps.serve('ns', 'flat', { '1.0.0': packageArchive(flattened) });
    apps.serve('other', 'gone', { '1.0.0': Buffer.from('not asked for') });
    const { code, stdout, stderr } = await fromApps('quay.io/ns', '--from', 'scratch', '--to', 'oci:out:v1');
    expect(stderr).toMatch(
      /^info: built an index of 3 bundles, 2 packages\ninfo: saved oci:out:v1: 1 image, \S+ \S+ in new layers\ninfo: next: opmate oci copy oci:out:v1 REGISTRY\/NAME:TAG\n$/,
    );
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^oci:out@sha256:[0-9a-f]{64}\n$/),
    });
    const told = await fromApps('ns', '--save', 'told', '--db-only', '--log-format', 'json');
    const tasks = [...told.stderr.matchAll(/"task":"pull [^"]*\/([a-z]+)","state":"(\w+)"/g)];
    expect(tasks.map(([, name, state]) => `${name} ${state}`).sort()).toEqual([
      ...['flat done', 'flat start', 'widget done', 'widget start'],
    ]);
    apps.requests.splice(apps.requests.length / 2);
    const { stdout: bundles } = await sandbox.run(['list', 'bundles', 'oci:out:v1']);
    expect(bundles).toContain('widget.v2');
    expect(bundles).not.toContain('widget.v0');
    expect(await packagesOf('oci:out:v1')).toEqual(['flat', 'widget']);
    expect(apps.requests.map(({ url }) => url.replace(/[0-9a-f]{64}$/, 'HEX')).sort()).toEqual([
      '/cnr/api/v1/packages/ns/flat/1.0.0',
      '/cnr/api/v1/packages/ns/flat/blobs/sha256/HEX',
      '/cnr/api/v1/packages/ns/widget/10.0.0',
      '/cnr/api/v1/packages/ns/widget/blobs/sha256/HEX',
      '/cnr/api/v1/packages?namespace=ns',
    ]);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('builds the same image from the same operators of any source', async () => {
    await sandbox.write(inDirectory('tree', widgetTree()));
    await sandbox.write({ 'downloaded/widget.tar.gz': packageArchive(widgetTree()) });
    apps.serve('one', 'widget', { '1.0.0': packageArchive(widgetTree()) });
    const digests = new Set<string>();
    for (const input of [
      ['--manifests', 'tree'],
      ['--appregistry-namespace', './downloaded'],
      ['--appregistry-namespace', 'one', '--appregistry-endpoint', apps.endpoint],
    ]) {
      const { stdout, stderr } = await build(...input, '--from', 'scratch', '--to', 'oci-archive:same.tar');
      expect(stdout, stderr).toMatch(/@sha256:/);
      digests.add(stdout);
    }
    expect(digests.size).toBe(1);
    expect(await packagesOf('oci-archive:same.tar')).toEqual(['widget']);
  });

  it('reads bundles that are named, and only images from a file', async () => {
    await sandbox.write({
      ...inDirectory(
        'a',
        smallBundle({
          packageName: 'alpha',
          spec: { relatedImages: [{ name: 'x', image: 'quay.io/a/x:1' }] },
        }),
      ),
      ...inDirectory('b', smallBundle({ packageName: 'beta' })),
      'list.txt': '# bundles\na\nb\n',
    });
    // A file may come from others: its lines are images, not paths of this machine.
    const listed = await build('--bundles', 'list.txt', '--save', 'db', '--db-only=true');
    expect(listed).toMatchObject({ code: 1, stdout: '' });
    expect(listed.stderr).toContain('error: list.txt:2: a: ');
    const { code, stderr } = await build('--bundles', 'a,b', '--save', 'db', '--db-only=true');
    expect(stderr).toBe(
      'info: wrote db/bundles.db: 2 bundles, 2 packages\n' +
        'info: next: opmate registry serve db/bundles.db\n',
    );
    expect(code).toBe(0);
    expect(await readdir(at('db'))).toEqual(['bundles.db']);
    expect((await sandbox.run(['registry', 'images', '--from-db', 'db/bundles.db'])).stdout).toBe(
      'quay.io/a/x:1\n',
    );
  });

  it('saves an archive that is readable without a network', async () => {
    await sandbox.write(inDirectory('tree', widgetTree()));
    const bases = await openLayout(at('base'), { create: true });
    const images = await Promise.all(
      ['amd64', 'arm64'].map((architecture) =>
        makeImage({ files: { 'bin/opm': architecture }, platform: { os: 'linux', architecture } }),
      ),
    );
    await pushImageIndex(bases, 'v1', images);
    const saved = await build('--manifests', 'tree', '--from', 'oci:base:v1', '--save', 'catalog.tar');
    expect(saved.stderr).toContain('the archive holds the image of linux/amd64; --platform takes another');
    expect(saved.stderr).toContain('info: saved docker-archive:catalog.tar: 1 image, ');
    expect(saved.code).toBe(0);
    for (const reference of ['docker-archive:catalog.tar', 'oci-archive:catalog.tar']) {
      expect(await packagesOf(reference)).toEqual(['widget']);
      const { stdout } = await sandbox.run(['oci', 'inspect', reference]);
      expect(saved.stdout).toContain((JSON.parse(stdout) as { digest: string }).digest);
    }
    const images1 = await sandbox.run(['registry', 'images', '--from-archive', 'catalog.tar']);
    expect(images1).toMatchObject({ code: 0, stdout: '' });
    expect(await build('--manifests', 'tree', '--from', 'oci:base:v1', '--save', 'again.tar')).toMatchObject({
      code: 0,
    });
    expect((await readFile(at('again.tar'))).equals(await readFile(at('catalog.tar')))).toBe(true);
    const arm = await build(
      ...['--manifests', 'tree', '--from', 'oci:base:v1', '--save', 'arm.tar', '--platform', 'linux/arm64'],
    );
    expect(arm.code).toBe(0);
    expect((await sandbox.run(['oci', 'inspect', 'docker-archive:arm.tar'])).stdout).toContain('arm64');
  });

  it.runIf(hasSkopeo)('saves an archive that skopeo reads', async () => {
    await sandbox.write(inDirectory('tree', widgetTree()));
    expect((await build('--manifests', 'tree', '--from', 'scratch', '--save', 's.tar')).code).toBe(0);
    for (const [i, reference] of ['docker-archive:s.tar', 'oci-archive:s.tar'].entries()) {
      await run('skopeo', ['--insecure-policy', 'copy', '-q', reference, `oci:from-skopeo${i}:v1`], {
        cwd: sandbox.work,
      });
      expect(await packagesOf(`oci:from-skopeo${i}:v1`)).toEqual(['widget']);
    }
  });

  it('sends the token unchanged to the app registry only, and never shows it', async () => {
    const token = 'basic czNjcjN0LXRva2Vu';
    apps.serve('secret', 'widget', { '1.0.0': packageArchive(widgetTree()) });
    apps.token = token;
    const elsewhere = await startAppRegistry();
    try {
      const given = await fromApps('secret', '--auth-token', token, '--save', 'db', '--db-only', '--debug');
      expect(given.code).toBe(0);
      expect(given.stderr).not.toContain('czNjcjN0');
      expect(new Set(apps.requests.map(({ authorization }) => authorization))).toEqual(new Set([token]));
      apps.token = 'another';
      const refused = await fromApps('secret', '--auth-token', token, '--save', 'db', '--db-only', '--debug');
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain('hint: specify the token of the app registry with --auth-token');
      expect(refused.stderr).not.toContain('czNjcjN0');
      apps.token = token;
      elsewhere.serve('secret', 'widget', { '1.0.0': packageArchive(widgetTree()) });
      apps.misbehave = (request, response) => {
        if (!request.url?.includes('/blobs/')) return false;
        response.writeHead(302, { location: `${elsewhere.origin}${request.url}` }).end();
        return true;
      };
      const moved = await fromApps('secret', '--auth-token', token, '--save', 'db', '--db-only');
      expect(moved.code).toBe(0);
      expect(elsewhere.requests).toEqual([
        { url: expect.stringContaining('/blobs/'), authorization: undefined },
      ]);
    } finally {
      await elsewhere.close();
    }
  });

  it('reads bundle images, and saves under the pushed name', async () => {
    const registry = await startRegistry({ directory: at('registry') });
    const { host } = new URL(registry.url);
    try {
      const files = smallBundle({ packageName: 'gamma' });
      await storeImage(at('registry'), 'ns/gamma-bundle:v1', await makeImage({ files }));
      const made = await build(
        ...['--bundles', `${host}/ns/gamma-bundle:v1`, '--from', 'scratch', '--use-http'],
        ...['--to', `${host}/ns/catalog:v1`, '--save', 'named.tar'],
      );
      expect(made.stderr.split('\n').slice(-5)).toEqual([
        'info: built an index of 1 bundle, 1 package',
        expect.stringContaining(`info: pushed ${host}/ns/catalog:v1: 1 image, `),
        expect.stringContaining('info: saved docker-archive:named.tar: 1 image, '),
        `info: next: opmate serve ${host}/ns/catalog:v1 --use-http`,
        '',
      ]);
      const [pushed, saved] = made.stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split('@'));
      expect(pushed).toEqual([`${host}/ns/catalog`, saved?.[1]]);
      const images = await sandbox.run([
        'registry',
        'images',
        '--from-archive',
        `docker-archive:named.tar:${host}/ns/catalog:v1`,
      ]);
      expect(images.stdout).toBe(`${host}/ns/gamma-bundle:v1\n`);
    } finally {
      await registry.close();
    }
  });

  it('checks base and destination before any work', async () => {
    await sandbox.write({ ...inDirectory('tree', widgetTree()), file: 'x', 'directory/x': 'x' });
    for (const [args, message] of [
      [['--from', 'oci:nowhere:v1', '--to', 'oci:out:v1'], 'nowhere: not an OCI image layout'],
      [['--save', 'directory'], 'directory: is a directory'],
      [['--save', 'file', '--db-only'], 'file: is not a directory'],
      [['--save', 'none/x.tar'], 'none'],
    ] as const) {
      const { code, stdout, stderr } = await build('--manifests', 'tree', ...args);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(message);
      expect(stderr).not.toContain('building');
    }
  });

  it('leaves nothing behind when interrupted', async () => {
    const asked = new Promise<void>((resolve) => {
      apps.misbehave = () => {
        resolve();
        return true;
      };
    });
    const args = ['--appregistry-endpoint', apps.endpoint, '--appregistry-namespace', 'ns'];
    const command = sandbox.start(['registry', 'build', ...args, '--save', 'interrupted', '--db-only']);
    await asked;
    expect(await command.stop('SIGINT')).toMatchObject({ code: 130, stdout: '' });
    await expect(stat(at('interrupted'))).rejects.toThrow();
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('omits damaged packages only if allowed', async () => {
    await sandbox.write(inDirectory('tree', widgetTree()));
    await sandbox.write({ 'tree/bad/csv.yaml': 'kind: [' });
    const strict = await build('--manifests', 'tree', '--save', 'strict', '--db-only');
    expect(strict.code).toBe(1);
    await expect(stat(at('strict'))).rejects.toThrow();
    const permissive = await build(
      '--manifests',
      'tree',
      '--save',
      'permissive',
      '--db-only',
      '--permissive',
    );
    expect(permissive.code).toBe(4);
    expect(permissive.stderr).toContain('tree/bad/csv.yaml');
    expect(await packagesOf('permissive/bundles.db')).toEqual(['widget']);
  });

  it('does not unpack an archive outside its directory', async () => {
    apps.serve('hostile', 'widget', {
      '1.0.0': gzipSync(rawTar([{ name: '../../../escaped', content: 'x' }])),
    });
    const { code, stderr } = await fromApps('hostile', '--save', 'db3', '--db-only');
    expect(code).toBe(1);
    expect(stderr).toContain('hostile/widget.tar.gz');
    await expect(stat(at('db3'))).rejects.toThrow();
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it.each([
    ['--to x.test/a:1', '--appregistry-namespace, --manifests or --bundles: missing'],
    ['--manifests a --bundles b --to x.test/a:1', '--manifests and --bundles cannot be used together'],
    ['--manifests a', '--to or --save: missing'],
    ['--manifests a --db-only', '--db-only: needs --save'],
    ['--manifests a --to x.test/a:1 --db-only --save d', '--db-only and --to cannot be used together'],
    ['--manifests a --to quay.io/a/b', '--to "quay.io/a/b": missing tag'],
    ['--manifests a --to docker-archive:x.tar', 'use --save FILE'],
    ['--manifests a --to x.test/a:1 --auth-token t', '--auth-token: needs --appregistry-namespace'],
    ['--bundles , --to x.test/a:1', '--bundles: no bundles'],
    ['--appregistry-namespace a/b --to x.test/a:1', 'invalid app registry namespace'],
    ['--appregistry-namespace quay.io/.. --to x.test/a:1', 'invalid app registry namespace'],
    [
      '--appregistry-namespace a --appregistry-endpoint ftp://x --to x.test/a:1',
      'not a URL of an app registry',
    ],
  ])('refuses %s', async (args, message) => {
    const { code, stderr } = await build(...args.split(' ').filter((word) => word !== ''));
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});
