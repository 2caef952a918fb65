import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, mkdir, readFile, readdir, stat, symlink, utimes } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { imageLabels } from '../../src/model/image-labels.js';
import { extractImage, openImage } from '../../src/oci/image/image.js';
import { type BuiltImage, pushImageIndex } from '../../src/oci/image/image-builder.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { registryClient } from '../support/registry-client.js';
import { caseOf, catalogOf, widgetCatalog } from './catalogs.js';
import { makeCatalogImage, makeImage, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const hostPlatform = { os: 'linux', architecture: 'amd64' };
const build = (...args: string[]) => sandbox.run(['catalog', 'build', ...args]);
const onScratch = ['-i', 'scratch'];

const catalogFiles: Record<string, string> = {
  '.indexignore': 'README.md\n',
  'README.md': 'not a catalog',
  'gadget/catalog.json': catalogOf('gadget', [
    { name: 'gadget.v1' },
    { name: 'gadget.v2', replaces: 'gadget.v1' },
  ]),
  'widget/catalog.json': widgetCatalog,
};
const inDirectory = (directory: string, files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${directory}/${name}`, text]));

async function openBuilt(layout: string, reference: string, architecture = 'amd64') {
  const platform = { os: 'linux', architecture };
  return openImage(await openLayout(at(layout)), reference, { hostPlatform, platform });
}

let unpacked = 0;
/** The files of an image by their paths. */
async function filesIn(layout: string, reference: string): Promise<Record<string, string>> {
  const directory = at(`unpacked${unpacked++}`);
  const image = await openBuilt(layout, reference);
  const { files } = await extractImage(image, directory, { roots: ['configs', 'tmp'] });
  const found: Record<string, string> = {};
  for (const name of files.sort()) found[name] = String(await readFile(path.join(directory, name)));
  return found;
}

async function architecturesOf(layout: string, tag: string): Promise<string[]> {
  const { bytes } = await (await openLayout(at(layout))).getManifest(tag);
  const { manifests } = JSON.parse(bytes.toString()) as {
    manifests: { platform: { architecture: string } }[];
  };
  return manifests.map(({ platform }) => platform.architecture);
}

beforeAll(async () => {
  await sandbox.write(inDirectory('catalog', catalogFiles));
  const bases = await Promise.all(
    ['amd64', 'arm64', 's390x'].map((architecture) =>
      makeImage({
        files: { 'bin/opm': architecture },
        labels: { vendor: 'test', [imageLabels.database]: '/database/index.db' },
        platform: { os: 'linux', architecture },
      }),
    ),
  );
  await pushImageIndex(await openLayout(at('base'), { create: true }), 'v1', bases);
  await storeImage(at('base'), 'single', bases[0] as BuiltImage);
});

describe('opmate catalog build', () => {
  it('builds the image of the generated Dockerfile for every platform of the base', async () => {
    const result = await build('catalog', '-i', 'oci:base:v1', '--save', 'oci:out:v1', '-l', 'a=1,b=2');
    expect(result).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^oci:out@sha256:[0-9a-f]{64}\n$/),
    });
    expect(result.stderr).toContain('built 3 images from 4 files: linux/amd64, linux/arm64, linux/s390x');
    expect(await sandbox.leftovers()).toEqual([]);
    expect(await architecturesOf('out', 'v1')).toEqual(['amd64', 'arm64', 's390x']);
    expect((await sandbox.run(['generate', 'dockerfile', 'catalog', '-i', 'some/opm:v1'])).code).toBe(0);
    const dockerfile = String(await readFile(at('catalog.Dockerfile')));
    const [, entrypoint = ''] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? [];
    const [, command = ''] = /^CMD (.*)$/m.exec(dockerfile) ?? [];
    for (const architecture of await architecturesOf('out', 'v1')) {
      const { config } = await openBuilt('out', 'v1', architecture);
      expect(config).toMatchObject({ architecture, created: '1970-01-01T00:00:00Z' });
      expect(config.config).toEqual({
        Entrypoint: JSON.parse(entrypoint),
        // opm refuses to start with the directory of a cache that is not there.
        Cmd: (JSON.parse(command) as string[]).filter((word) => !word.startsWith('--cache-dir')),
        ExposedPorts: { '50051/tcp': {} },
        Labels: { [imageLabels.configs]: '/configs', vendor: 'test', a: '1', b: '2' },
      });
    }
    expect(await filesIn('out', 'v1')).toEqual(inDirectory('configs', catalogFiles));
  });

  it('builds the same image from the same contents', async () => {
    const copy = { ...catalogFiles };
    await sandbox.write(inDirectory('copy', Object.fromEntries(Object.entries(copy).reverse())));
    await chmod(at('copy', 'README.md'), 0o755);
    await chmod(at('copy', 'gadget'), 0o700);
    await utimes(at('copy', 'widget', 'catalog.json'), 1, 1);
    await mkdir(at('copy', 'empty'));
    const digestOf = async (...args: string[]): Promise<string> => {
      const { code, stdout } = await build(...args, ...onScratch);
      expect(code).toBe(0);
      return stdout.replace(/^.*@/, '');
    };
    const one = await digestOf('catalog', '--save', 'oci:same:one', '--cache');
    expect(await digestOf('copy', '--save', 'oci-archive:two.tar', '--cache')).toBe(one);
    expect(await digestOf('copy', '--save', 'oci:same:other')).not.toBe(one);
    const later = ['--created', '2026-03-04T05:06:07Z'];
    expect(await digestOf('copy', '--save', 'oci:same:later', '--cache', ...later)).not.toBe(one);
    expect((await openBuilt('same', 'later')).config.created).toBe('2026-03-04T05:06:07Z');
    expect(await architecturesOf('same', 'one')).toEqual(['amd64', 'arm64', 'ppc64le', 's390x']);
    expect((await openBuilt('same', 'one')).config.config).toEqual({
      Labels: { [imageLabels.configs]: '/configs' },
    });
  });

  it('puts the cache at the path of the image command', async () => {
    expect(
      (await build('catalog', '-i', 'oci:base:single', '--save', 'oci:out:cached', '--cache')).code,
    ).toBe(0);
    const image = await openBuilt('out', 'cached');
    expect(image.config.config?.Cmd).toEqual(['serve', '/configs', '--cache-dir=/tmp/cache']);
    expect(image.config.history?.at(-1)?.created_by).toBe('opmate: /tmp/cache');
    expect(image.manifest.layers.length).toBe(3);
    const names = Object.keys(await filesIn('out', 'cached')).filter((name) => name.startsWith('tmp/'));
    expect(names).toContain('tmp/cache/digest');
    expect(names).toContain('tmp/cache/cache/packages.json');
    expect(names.filter((name) => /\/gadget_stable_gadget\.v[12]\.json$/.test(name)).length).toBe(2);
    const blob = path.join('blobs', (image.manifest.layers[2]?.digest ?? '').replace(':', '/'));
    const listed = execFileSync('tar', ['-tvzf', at('out', blob)], { encoding: 'utf8' });
    expect(listed).toMatch(/^drwxrwxrwt 0\/0 .* tmp\/$/m);
    expect(listed).toMatch(/^drwxr-xr-x 0\/0 .* tmp\/cache\/$/m);
    expect(listed).toMatch(/^-rw-r--r-- 0\/0 .* tmp\/cache\/digest$/m);
  });

  it('builds for selected platforms, a single one as an image without index', async () => {
    const some = ['--platforms', 'linux/s390x,linux/amd64'];
    expect((await build('catalog', '-i', 'oci:base:v1', '--save', 'oci:out:some', ...some)).code).toBe(0);
    expect(await architecturesOf('out', 'some')).toEqual(['amd64', 's390x']);
    const one = [
      '--platform',
      'linux/arm64',
      '--save',
      'docker-archive:one.tar',
      '-t',
      'example.com/ns/c:v1',
    ];
    for (const base of ['scratch', 'oci:base:v1']) {
      const result = await build('catalog', '-i', base, ...one);
      expect(result).toMatchObject({ code: 0, stdout: expect.stringMatching(/^docker-archive:one\.tar@/) });
      const manifest = execFileSync('tar', ['-xOf', at('one.tar'), 'manifest.json'], { encoding: 'utf8' });
      expect(JSON.parse(manifest)).toMatchObject([{ RepoTags: ['example.com/ns/c:v1'] }]);
    }
    const none = await build(
      'catalog',
      '-i',
      'oci:base:v1',
      '--save',
      'oci:out:x',
      '--platforms',
      'linux/arm',
    );
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toContain('no image for linux/arm, only linux/amd64, linux/arm64, linux/s390x');
    const several = await build('catalog', ...onScratch, '--save', 'docker-archive:four.tar');
    expect(several).toMatchObject({ code: 1, stdout: '' });
    expect(several.stderr).toMatch(/holds one image, not 4\nhint: select a platform with --platform/);
    expect(await readdir(sandbox.work)).not.toContain('four.tar');
  });

  it('builds an image that can be served', async () => {
    expect((await build('catalog', ...onScratch, '--save', 'oci:out:served')).code).toBe(0);
    const server = sandbox.start(['serve', 'oci:out:served', '--port', '0', '--log-format', 'json', '-v']);
    const port = await new Promise<number>((resolve, reject) => {
      server.child.stderr?.on('data', () => {
        const [, found] = /"port":(\d+)/.exec(server.stderr()) ?? [];
        if (found !== undefined) resolve(Number(found));
      });
      void server.result.then(({ stderr }) => reject(new Error(stderr)));
    });
    const client = registryClient(port);
    expect(await client.call('ListPackages')).toEqual([{ name: 'gadget' }, { name: 'widget' }]);
    client.close();
    expect((await server.stop()).code).toBe(0);
  });
});

describe('opmate catalog build: refusals', () => {
  const out = ['--save', 'oci:refused:v1'];
  const expectNothing = async (): Promise<void> => {
    await expect(stat(at('refused'))).rejects.toThrow();
    expect(await sandbox.leftovers()).toEqual([]);
  };

  it('refuses an invalid catalog unless allowed', async () => {
    const { catalog } = caseOf('bundle-dup');
    await sandbox.write({ 'invalid/catalog.json': catalog });
    const refused = await build('invalid', ...onScratch, ...out);
    expect(refused).toMatchObject({ code: 3, stdout: '' });
    expect(refused.stderr).toContain('has duplicate bundle');
    await expectNothing();
    const cached = await build('invalid', ...onScratch, ...out, '--skip-validation', '--cache');
    expect(cached).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('duplicate bundle'),
    });
    await expectNothing();
    expect((await build('invalid', ...onScratch, '--save', 'oci:out:bad', '--skip-validation')).code).toBe(0);
    expect(await filesIn('out', 'bad')).toEqual({ 'configs/catalog.json': catalog });
  });

  it('refuses a catalog without blobs unless allowed', async () => {
    await sandbox.write({ 'blank/catalog.json': '', 'blank/other.yaml': '' });
    const refused = await build('blank', ...onScratch, ...out);
    expect(refused).toMatchObject({ code: 3, stdout: '' });
    expect(refused.stderr).toContain('warning: the catalog has no blobs');
    await expectNothing();
    expect((await build('blank', ...onScratch, '--save', 'oci:out:blank', '--skip-validation')).code).toBe(0);
  });

  it('reports all files that must not be in an image together', async () => {
    await sandbox.write({ 'hostile/catalog.json': widgetCatalog, 'secret.txt': 'secret' });
    await symlink('../secret.txt', at('hostile', 'link.yaml'));
    execFileSync('mkfifo', [at('hostile', 'pipe')]);
    const result = await build('hostile', ...onScratch, ...out);
    expect(result).toMatchObject({ code: 3, stdout: '' });
    expect(result.stderr).toMatch(
      /^error: hostile\/link\.yaml: a link to ".*secret\.txt", outside of the directory$/m,
    );
    expect(result.stderr).toMatch(/^error: hostile\/pipe: is not a regular file$/m);
    await expectNothing();
    const limited = await build('catalog', ...onScratch, ...out, '--max-unpacked-size', '100');
    expect(limited).toMatchObject({ code: 1, stderr: expect.stringContaining('--max-unpacked-size') });
    await expectNothing();
  });

  it('refuses a base image that is a catalog', async () => {
    await storeImage(at('base'), 'catalog', await makeCatalogImage({ 'catalog.json': widgetCatalog }));
    const result = await build('catalog', '-i', 'oci:base:catalog', ...out);
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('would be mixed') });
    await expectNothing();
  });

  it.each<[string[], number, RegExp]>([
    [['catalog'], 2, /--tag or --save: missing\nhint: add --tag/],
    [['catalog', '--push', ...out], 2, /--push: needs --tag/],
    [['catalog', '-t', 'example.com/x'], 2, /--tag "example\.com\/x": missing tag/],
    [['catalog', '-t', 'oci:x:v1'], 2, /not a place in a registry\nhint: save the image there with --save/],
    [['catalog', '--save', 'example.com/x:v1'], 2, /expected an image in a file or directory/],
    [['catalog', '--save', 'oci:catalog/out:v1'], 2, /lies in the catalog/],
    [['catalog', '--save', 'oci-archive:none/x.tar'], 1, /its directory "none"/],
    [['catalog', ...out, '--created', 'yesterday'], 2, /--created "yesterday": not a time/],
    [['catalog', ...out, '--platforms', 'linux'], 2, /invalid platform/],
    [['catalog', ...out, '--platforms', ','], 2, /expected at least one item/],
    [
      ['catalog', ...out, '--platforms', 'linux/arm64', '--platform', 'linux/arm64'],
      2,
      /cannot be used together/,
    ],
    [['catalog', ...out, '-l', 'x'], 2, /invalid label "x"/],
    [['catalog', ...out, '-l', `${imageLabels.configs}=/x`], 1, /reserved for the location of the catalog/],
    [['nowhere', ...out], 1, /^error: nowhere: no such file or directory/m],
    [['secret.txt', ...out], 1, /secret\.txt: is not a directory/],
  ])('refuses %j', async (args, code, message) => {
    await sandbox.write({ 'secret.txt': 'secret' });
    const result = await build(...args, ...onScratch);
    expect(result).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) });
    await expectNothing();
  });

  it('warns about a catalog without files', async () => {
    await mkdir(at('nothing'));
    const result = await build('nothing', ...onScratch, '--save', 'oci:of-nothing');
    expect(result).toMatchObject({ code: 0, stderr: expect.stringMatching(/^warn: nothing: is empty/) });
  });
});

describe.skipIf(!hasDockerRegistry)('opmate catalog build with docker-registry', () => {
  let registry: DockerRegistry;
  beforeAll(async () => {
    registry = await startDockerRegistry();
  });
  afterAll(() => registry.close());

  it('pushes an image that opmate and skopeo read, repeatedly', async () => {
    const name = `${registry.host}/ns/catalog`;
    const args = ['catalog', '-i', 'oci:base:v1', '-t', `${name}:v1`, '--use-http'];
    const first = await build(...args);
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining(`${name}@sha256:`) });
    expect(await build(...args, '--save', 'oci:pushed', '--push')).toMatchObject({
      code: 0,
      stdout: `${first.stdout}oci:pushed@${first.stdout.replace(/^.*@/, '')}`,
    });
    expect(await (await openLayout(at('pushed'))).listTags()).toEqual(['v1']);
    const rendered = await sandbox.run(['render', `${name}:v1`, '--use-http']);
    expect(rendered.code).toBe(0);
    expect(rendered.stdout).toBe((await sandbox.run(['render', 'catalog'])).stdout);
    if (spawnSync('skopeo', ['--version']).error) return;
    for (const architecture of ['amd64', 'arm64', 's390x']) {
      const inspected = execFileSync(
        'skopeo',
        ['--override-arch', architecture, 'inspect', '--tls-verify=false', `docker://${name}:v1`],
        { encoding: 'utf8' },
      );
      expect(JSON.parse(inspected)).toMatchObject({
        Architecture: architecture,
        Digest: first.stdout.trim().replace(/^.*@/, ''),
        Labels: { [imageLabels.configs]: '/configs' },
      });
    }
  });
});
