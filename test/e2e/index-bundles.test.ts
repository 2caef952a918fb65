import { rm } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeBuiltIndex, makeCatalogImage, storeImage } from './images.js';
import { smallBundle } from '../support/small-bundle.js';
import { useSandbox } from '../support/command-line.js';
import { startFaultRegistry } from '../support/fault-registry.js';

/** Operations of index builds on images with a catalog and the database that it is rendered from. */
const sandbox = useSandbox();
const versions = ['1.0.0', '1.1.0', '1.2.0'];
const images: string[] = [];
let host = '';

/** Runs a command that must succeed. */
async function succeed(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await sandbox.run(args);
  expect(code, stderr).toBe(0);
  return { stdout, stderr };
}

const fragment = [
  { schema: 'olm.package', name: 'other', defaultChannel: 'stable' },
  { schema: 'olm.channel', package: 'other', name: 'stable', entries: [{ name: 'other.v1.0.0' }] },
  {
    schema: 'olm.bundle',
    package: 'other',
    name: 'other.v1.0.0',
    image: 'registry.example.com/other:v1',
    properties: [{ type: 'olm.package', value: { packageName: 'other', version: '1.0.0' } }],
  },
];

beforeAll(async () => {
  const server = sandbox.start(['oci', 'serve', 'registry', '--port', '0'], { timeoutMs: 600_000 });
  host = new URL(await server.firstLine()).host;
  await sandbox.write({ '../registries.conf': `[[registry]]\nlocation = "${host}"\ninsecure = true\n` });
  for (const [at, version] of versions.entries()) {
    const replaces = at === 0 ? undefined : `demo.v${versions[at - 1]}`;
    const files = demoBundle(version, replaces);
    for (const [name, text] of Object.entries(files))
      await sandbox.write({ [`bundle-${version}/${name}`]: text });
    const { stdout } = await succeed('bundle', 'push', `bundle-${version}`, `${host}/demo:v${version}`);
    images.push(stdout.trim());
  }
  for (const [tag, count] of [
    ['one', 1],
    ['two', 2],
    ['three', 3],
  ] as const) {
    const database = path.join(sandbox.work, `${tag}.db`);
    await succeed('registry', 'add', '-d', database, '-b', images.slice(0, count).join(','));
    const { stdout } = await succeed('render', database);
    await storeImage(path.join(sandbox.work, 'built'), tag, await makeBuiltIndex(database, stdout));
    await rm(database);
  }
});

function demoBundle(version: string, replaces: string | undefined): Record<string, string> {
  const files = smallBundle({ packageName: 'demo', version, ...(replaces !== undefined && { replaces }) });
  const { annotations } = JSON.parse(files['metadata/annotations.yaml'] ?? '') as { annotations: object };
  const prefix = 'operators.operatorframework.io.bundle';
  const places = {
    [`${prefix}.mediatype.v1`]: 'registry+v1',
    [`${prefix}.manifests.v1`]: 'manifests/',
    [`${prefix}.metadata.v1`]: 'metadata/',
  };
  const text = JSON.stringify({ annotations: { ...annotations, ...places } });
  return { ...files, 'metadata/annotations.yaml': text };
}

const listBundles = async (tag: string): Promise<string[]> => {
  const { stdout } = await succeed('list', 'bundles', `oci:built:${tag}`);
  return stdout
    .split('\n')
    .slice(1)
    .flatMap((line) => line.match(/\S+\.v\S+/)?.[0] ?? []);
};

describe('opmate catalog add-bundle', () => {
  it('adds to the database and renders the package again; leaves out what the index has', async () => {
    const args = [
      'catalog',
      'add-bundle',
      'oci:built:one',
      ...images.slice(0, 2),
      '--save',
      'oci:built:added',
    ];
    const { stdout, stderr } = await succeed(...args);
    expect(stdout).toMatch(/^oci:.*built@sha256:/);
    expect(stderr).toContain('added bundle demo.v1.1.0');
    expect(stderr).not.toContain('added bundle demo.v1.0.0');
    expect(await listBundles('added')).toEqual(['demo.v1.0.0', 'demo.v1.1.0']);
    const again = await sandbox.run(args);
    expect(again.stdout).toBe(stdout);
  });

  it('resolves tags to digests, as an index records them', async () => {
    const bundle = `${host}/demo:v1.1.0`;
    const args = ['catalog', 'add-bundle', 'oci:built:one', bundle, '--save', 'oci:built:tagged'];
    await succeed(...args);
    const { stdout } = await sandbox.run(['render', 'oci:built:tagged']);
    expect(stdout).toContain(`"image": "${images[1]}"`);
  });

  it('deprecates bundles, and removes what they replace', async () => {
    const [, second = ''] = images;
    const args = [
      'catalog',
      'add-bundle',
      'oci:built:three',
      '--deprecate',
      second,
      '--save',
      'oci:built:short',
    ];
    await succeed(...args);
    expect(await listBundles('short')).toEqual(['demo.v1.2.0']);
  });

  it('adds to the files of a catalog without a database', async () => {
    const { stdout } = await sandbox.run(['render', 'oci:built:one']);
    const image = await makeCatalogImage({ 'demo/catalog.json': stdout });
    await storeImage(path.join(sandbox.work, 'built'), 'files', image);
    const args = [
      'catalog',
      'add-bundle',
      'oci:built:files',
      images[1] ?? '',
      '--save',
      'oci:built:files-added',
    ];
    await succeed(...args);
    expect(await listBundles('files-added')).toEqual(['demo.v1.0.0', 'demo.v1.1.0']);
    const refused = await sandbox.run([...args.slice(0, 3), '--deprecate', 'x', '--save', 'oci:built:none']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('has no database of bundles');
    for (const indexes of [
      ['oci:built:files', 'oci:built:one'],
      ['oci:built:one', 'oci:built:files'],
    ]) {
      const merge = ['catalog', 'merge', ...indexes, '--openshift', '4.22', '--save', 'oci:built:none'];
      expect(await sandbox.run(merge)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          'oci:built:files: has no database of bundles\nhint: use indexes with a database, or add fragments to a file-based one with opmate catalog add-fragment',
        ) as string,
      });
    }
  });

  it('names no flag of another command where a bundle does not fit a catalog without a database', async () => {
    const { stdout } = await sandbox.run(['render', 'oci:built:one']);
    const image = await makeCatalogImage({ 'demo/catalog.json': stdout });
    await storeImage(path.join(sandbox.work, 'built'), 'unfit', image);
    for (const [bundle, hint] of [
      [images[0], 'overwrite the latest bundle of a channel'],
      [images[2], 'set spec.replaces of the bundle, or add it by its version'],
    ] as const) {
      const args = ['catalog', 'add-bundle', 'oci:built:unfit', bundle ?? '', '--save', 'oci:built:refused'];
      const { code, stderr } = await sandbox.run(args);
      expect(code).toBe(1);
      expect(stderr).toContain(`hint: ${hint}`);
    }
  });

  it('refuses bundles that are not in a registry, and bundles that do not exist', async () => {
    for (const [bundle, message] of [
      ['oci:built:one', 'is not an image of a registry'],
      [`${host}/demo:none`, 'not found'],
    ] as const) {
      const args = ['catalog', 'add-bundle', 'oci:built:one', bundle, '--save', 'oci:built:refused'];
      const { code, stderr } = await sandbox.run(args);
      expect(code).not.toBe(0);
      expect(stderr).toContain(message);
    }
    expect(await sandbox.run(['list', 'packages', 'oci:built:refused'])).toMatchObject({ code: 1 });
  });
});

describe('opmate catalog add-fragment', () => {
  it('reports a missing fragment as catalog gate does', async () => {
    for (const name of ['none', './none', 'none/demo', 'none.json']) {
      const add = ['catalog', 'add-fragment', 'oci:built:one', name, '--save', 'oci:built:refused'];
      const added = await sandbox.run(add);
      const gated = await sandbox.run(['catalog', 'gate', name, '--gate', 'validate-fbc']);
      expect(added).toMatchObject({ code: 1, stdout: '' });
      expect(added).toEqual(gated);
    }
  });
});

describe('opmate catalog deprecate of an index image', () => {
  const deprecate = (...args: string[]) => sandbox.run(['catalog', 'deprecate', 'oci:built:three', ...args]);
  const blob = {
    schema: 'olm.deprecations',
    package: 'demo',
    entries: [{ reference: { schema: 'olm.bundle', name: 'demo.v1.1.0' }, message: 'use v1.2.0' }],
  };

  it('saves the image to a layout or an archive, and pushes it', async () => {
    await sandbox.write({ 'deprecations.json': blob });
    const names: string[] = [];
    for (const [output, saved] of [
      [['--save', 'oci:built:old'], 'oci:built:old'],
      [['--save', 'oci-archive:old.tar'], 'oci-archive:old.tar'],
      [['--save', 'oci:built:both', '-t', `${host}/index:old`, '--push'], `${host}/index:old`],
      [['-t', `${host}/index:pushed`], `${host}/index:pushed`],
    ] as const) {
      const { code, stdout, stderr } = await deprecate('--schema', 'deprecations.json', ...output);
      expect(code, stderr).toBe(0);
      names.push(...stdout.trim().split('\n'));
      const rendered = await succeed('render', saved);
      expect(rendered.stdout).toContain('use v1.2.0');
    }
    const digests = new Set(names.map((name) => name.slice(name.indexOf('@') + 1)));
    expect([names.length, digests.size]).toEqual([5, 1]);
  });

  it('needs an output for a schema, and a schema for an output', async () => {
    await sandbox.write({ 'deprecations.json': blob });
    for (const [args, message] of [
      [['--schema', 'deprecations.json'], '--schema: needs --tag or --save'],
      [['--package', 'demo', '--message', 'x', '--save', 'oci:built:none'], '--save: needs --schema'],
      [['--package', 'demo', '--message', 'x', '-t', `${host}/index:none`], '--tag: needs --schema'],
      [['--package', 'demo', '--message', 'x', '--sign-by', 'key.pem'], '--sign-by: needs --schema'],
      [['--schema', 'deprecations.json', '--save', 'oci:built:none', '--push'], '--push: needs --tag'],
    ] as const) {
      const { code, stderr } = await deprecate(...args);
      expect(code).toBe(2);
      expect(stderr).toContain(message);
    }
  });
});

describe('opmate catalog merge', () => {
  const merge = (...more: string[]) =>
    sandbox.run(['catalog', 'merge', 'oci:built:one', 'oci:built:three', '--openshift', '4.22', ...more]);

  it('adds what the other index has, and drops what the label excludes from the version', async () => {
    const labels = {
      [images[0] as string]: 'v4.12',
      [images[1] as string]: 'v4.12',
      [images[2] as string]: 'v4.12',
    };
    await sandbox.write({
      'labels.json': labels,
      'older.json': { ...labels, [images[1] as string]: '=v4.21' },
    });
    const { code, stderr } = await merge('--labels', 'labels.json', '--save', 'oci:built:merged');
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(await listBundles('merged')).toEqual(['demo.v1.0.0', 'demo.v1.1.0', 'demo.v1.2.0']);
    const older = await merge('--labels', 'older.json', '--save', 'oci:built:older');
    expect(older.stderr).toContain('not for OpenShift 4.22');
    expect(await listBundles('older')).toEqual(['demo.v1.2.0']);
  });

  it('keeps packages of fragments, or names those that it drops', async () => {
    const text = fragment.map((blob) => JSON.stringify(blob)).join('\n');
    await sandbox.write({ 'fragment/other/catalog.json': text });
    const from = 'oci:built:with-fragment';
    await succeed('catalog', 'add-fragment', 'oci:built:one', 'fragment', '--save', from);
    const args = [
      'catalog',
      'merge',
      from,
      'oci:built:two',
      '--openshift',
      '4.22',
      '--allow-missing',
      '--save',
    ];
    await succeed(...args, 'oci:built:kept');
    expect(await listBundles('kept')).toEqual(['demo.v1.0.0', 'demo.v1.1.0', 'other.v1.0.0']);
    const dropped = await sandbox.run([...args, 'oci:built:dropped', '--database-only']);
    expect(dropped).toMatchObject({ code: 0 });
    expect(dropped.stderr).toContain('packages of fragments are not kept: "other"');
    expect(await listBundles('dropped')).toEqual(['demo.v1.0.0', 'demo.v1.1.0']);
  });
});

describe('hostile and broken inputs of index edits', () => {
  const isMissing = async (tag: string): Promise<boolean> =>
    (await sandbox.run(['list', 'packages', `oci:built:${tag}`])).code !== 0;

  it('refuses a hidden database that is none, and one that is damaged', async () => {
    const { stdout } = await succeed('render', 'oci:built:one');
    await sandbox.write({
      'text.db': 'not a database',
      'cut.db': Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4096, 0xa5)]),
    });
    for (const name of ['text', 'cut']) {
      const image = await makeBuiltIndex(path.join(sandbox.work, `${name}.db`), stdout);
      await storeImage(path.join(sandbox.work, 'built'), name, image);
      for (const args of [
        ['add-bundle', `oci:built:${name}`, images[1] ?? ''],
        ['rm-package', `oci:built:${name}`, '--all'],
        ['merge', 'oci:built:one', `oci:built:${name}`, '--openshift', '4.22', '--allow-missing'],
      ]) {
        const { code, stderr } = await sandbox.run(['catalog', ...args, '--save', 'oci:built:broken']);
        expect(code, args.join(' ')).toBe(1);
        expect(stderr).toMatch(/^error: .*do\.not\.edit\.db/m);
        expect(stderr).not.toContain(sandbox.temporary);
      }
    }
    expect(await isMissing('broken')).toBe(true);
  });

  it('refuses labels that are no texts, and an index whose bundles have tags', async () => {
    await sandbox.write({ 'labels-bad.json': { [images[0] as string]: 4.12 }, 'labels-list.json': '[]' });
    for (const file of ['labels-bad.json', 'labels-list.json', 'labels-none.json']) {
      const args = ['oci:built:one', 'oci:built:two', '--openshift', '4.22', '--labels', file];
      const { code, stderr } = await sandbox.run(['catalog', 'merge', ...args, '--save', 'oci:built:bad']);
      expect(code, file).not.toBe(0);
      expect(stderr).toContain(file);
    }
    const database = path.join(sandbox.work, 'tags.db');
    await succeed('registry', 'add', '-d', database, '-b', `${host}/demo:v1.0.0`);
    const { stdout } = await succeed('render', database);
    await storeImage(path.join(sandbox.work, 'built'), 'tags', await makeBuiltIndex(database, stdout));
    const args = ['oci:built:tags', 'oci:built:two', '--openshift', '4.22', '--save', 'oci:built:bad'];
    const { code, stderr } = await sandbox.run(['catalog', 'merge', ...args]);
    expect(code).toBe(1);
    expect(stderr).toContain('has no digest');
    expect(await isMissing('bad')).toBe(true);
  });

  it('writes nothing if one of several bundles cannot be added', async () => {
    const args = ['oci:built:one', images[1] ?? '', `${host}/demo@sha256:${'0'.repeat(64)}`];
    const { code, stderr } = await sandbox.run([
      'catalog',
      'add-bundle',
      ...args,
      '--save',
      'oci:built:half',
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('sha256:0000');
    expect(await isMissing('half')).toBe(true);
    expect(await sandbox.leftovers()).toEqual([]);
  });
});

describe('opmate catalog rm-package --all', () => {
  it('leaves an empty catalog and an empty database', async () => {
    const args = ['catalog', 'rm-package', 'oci:built:two', '--all', '--save', 'oci:built:empty'];
    await succeed(...args);
    expect(await sandbox.run(['render', 'oci:built:empty'])).toMatchObject({ code: 0, stdout: '' });
    const added = [
      'catalog',
      'add-bundle',
      'oci:built:empty',
      images[0] ?? '',
      '--save',
      'oci:built:refilled',
    ];
    await succeed(...added);
    expect(await listBundles('refilled')).toEqual(['demo.v1.0.0']);
    expect(
      await sandbox.run(['catalog', 'rm-package', 'oci:built:two', '--save', 'oci:built:x']),
    ).toMatchObject({
      code: 2,
    });
  });
});

describe('the form of an edited index', () => {
  it('stays that of Docker in a registry, for all platforms, and is that of OCI elsewhere', async () => {
    const index = await startFaultRegistry();
    try {
      const { stdout } = await sandbox.run(['render', 'oci:built:one']);
      const manifests = [];
      for (const architecture of ['amd64', 'arm64']) {
        const files = { 'demo/catalog.json': stdout };
        const image = await makeCatalogImage(files, { platform: { os: 'linux', architecture } });
        index.serveBlob('ns/index', image.config);
        for (const { bytes } of image.layers) index.serveBlob('ns/index', bytes);
        const manifest = image.manifest
          .toString()
          .replaceAll('application/vnd.oci.image.manifest.v1+json', dockerTypes.manifest)
          .replaceAll('application/vnd.oci.image.config.v1+json', dockerTypes.config)
          .replaceAll('application/vnd.oci.image.layer.v1.tar+gzip', dockerTypes.layer);
        const digest = index.serveManifest('ns/index', undefined, manifest, dockerTypes.manifest);
        const platform = { os: 'linux', architecture };
        manifests.push({ mediaType: dockerTypes.manifest, digest, size: manifest.length, platform });
      }
      const list = JSON.stringify({ schemaVersion: 2, mediaType: dockerTypes.list, manifests });
      index.serveManifest('ns/index', 'v1', list, dockerTypes.list);
      await sandbox.write({
        '../registries.conf': [host, index.host]
          .map((location) => `[[registry]]\nlocation = "${location}"\ninsecure = true\n`)
          .join(''),
      });
      const from = `${index.host}/ns/index:v1`;
      const to = `${host}/docker-form:v2`;
      await succeed('catalog', 'add-bundle', from, images[1] as string, '-t', to);
      const read = async (reference: string) => {
        const raw = await succeed('oci', 'inspect', '--raw', reference);
        return JSON.parse(raw.stdout) as {
          mediaType: string;
          manifests: { digest: string }[];
          config: { mediaType: string };
          layers: { mediaType: string }[];
        };
      };
      const written = await read(to);
      expect(written.mediaType).toBe(dockerTypes.list);
      expect(written.manifests).toHaveLength(2);
      const image = await read(`${host}/docker-form@${written.manifests[1]?.digest}`);
      expect(image).toMatchObject({
        mediaType: dockerTypes.manifest,
        config: { mediaType: dockerTypes.config },
      });
      expect(new Set(image.layers.map(({ mediaType }) => mediaType))).toEqual(new Set([dockerTypes.layer]));
      expect(image.layers).toHaveLength(2);
      const bundles = await succeed('list', 'bundles', to);
      expect(bundles.stdout).toContain('demo.v1.1.0');
      await succeed('catalog', 'add-bundle', from, images[1] as string, '--save', 'oci:built:of-docker');
      expect((await read('oci:built:of-docker')).mediaType).toBe('application/vnd.oci.image.index.v1+json');
    } finally {
      await index.close();
    }
  });
});

const dockerTypes = {
  list: 'application/vnd.docker.distribution.manifest.list.v2+json',
  manifest: 'application/vnd.docker.distribution.manifest.v2+json',
  config: 'application/vnd.docker.container.image.v1+json',
  layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
};
