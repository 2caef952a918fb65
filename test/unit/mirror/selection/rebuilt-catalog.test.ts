import { execFileSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FileTree } from '../../../../src/archive/file-tree.js';
import { ArchiveMeter, defaultArchiveLimits } from '../../../../src/archive/limits.js';
import { readTar } from '../../../../src/archive/tar-reader.js';
import { layerOf } from '../../../../src/archive/tar-writer.js';
import { DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import { collectFacts } from '../../../../src/catalog/facts.js';
import { rebuildCatalog } from '../../../../src/mirror/selection/rebuilt-catalog.js';
import type { BundleFacts, CatalogFacts, ChannelFacts } from '../../../../src/model/facts.js';
import { imageLabels } from '../../../../src/model/image-labels.js';
import { validateCatalog } from '../../../../src/graph/validate.js';
import { readContents } from '../../../../src/oci/image/contents.js';
import { copyImage } from '../../../../src/oci/image/copy.js';
import {
  type BuildImageOptions,
  buildImage,
  pushImage,
  pushImageIndex,
} from '../../../../src/oci/image/image-builder.js';
import { type Image, openImage, readImage } from '../../../../src/oci/image/image.js';
import { type LayoutRepository, openLayout } from '../../../../src/oci/layout/layout.js';
import type { Repository } from '../../../../src/oci/registry/repository.js';
import { type Descriptor, mediaTypes, type Platform } from '../../../../src/oci/image/types.js';
import { failureOf } from '../../../support/connect.js';
import { bytesOf, descriptorOf, readAll, streamOf } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';
import { type RawEntry, rawTar } from '../../../support/tar.js';

const hostPlatform = { os: 'linux', architecture: 'amd64' };

const lines = (...blobs: object[]): string => blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');

const bundleBlob = (name: string, version: string, more: object = {}): object => ({
  schema: 'olm.bundle',
  name: `${name}.v${version}`,
  package: name,
  image: `quay.io/acme/${name}-bundle:v${version}`,
  properties: [{ type: 'olm.package', value: { packageName: name, version } }],
  relatedImages: [
    { name: '', image: `quay.io/acme/${name}-bundle:v${version}` },
    { name: 'operator', image: `quay.io/acme/${name}:v${version}` },
  ],
  ...more,
});

/** Two packages; widget has two channels, deprecations, a blob of another schema, and fields that nobody knows. */
const sources = {
  'widget/index.json': lines(
    { schema: 'olm.package', name: 'widget', defaultChannel: 'stable', 'x-owner': 'acme' },
    {
      schema: 'olm.channel',
      package: 'widget',
      name: 'stable',
      entries: [
        { name: 'widget.v1.0.0' },
        { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0', 'x-note': 'first' },
        { name: 'widget.v1.2.0', replaces: 'widget.v1.1.0', 'x-note': 'second' },
      ],
      'x-lane': 7,
    },
    { schema: 'olm.channel', package: 'widget', name: 'beta', entries: [{ name: 'widget.v1.2.0' }] },
    bundleBlob('widget', '1.0.0'),
    bundleBlob('widget', '1.1.0', { 'x-build': { b: 1, a: 2 } }),
    bundleBlob('widget', '1.2.0'),
    {
      schema: 'olm.deprecations',
      package: 'widget',
      entries: [
        { reference: { schema: 'olm.package' }, message: 'old' },
        { reference: { schema: 'olm.channel', name: 'beta' }, message: 'older' },
        { reference: { schema: 'olm.bundle', name: 'widget.v1.0.0' }, message: 'oldest' },
      ],
    },
    { schema: 'acme.widget.note', package: 'widget', text: 'kept' },
  ),
  'gadget/index.json': lines(
    { schema: 'olm.package', name: 'gadget', defaultChannel: 'alpha' },
    { schema: 'olm.channel', package: 'gadget', name: 'alpha', entries: [{ name: 'gadget.v1.0.0' }] },
    bundleBlob('gadget', '1.0.0'),
    { schema: 'acme.note', package: 'gadget', text: 'dropped' },
  ),
  'notes.json': lines({ schema: 'acme.note', text: 'of all' }),
};

interface Prepared {
  catalog: DirectoryCatalog;
  facts: CatalogFacts;
}

async function prepare(files: Record<string, string> = sources): Promise<Prepared> {
  const catalog = new DirectoryCatalog(await directoryWith(files), 'catalog');
  onTestFinished(() => catalog.close());
  return { catalog, facts: await collectFacts(catalog) };
}

/** Facts of one package without its channel `beta` and its first bundle. */
function partOf({ channels, bundles, packages, deprecations }: CatalogFacts): CatalogFacts {
  const isWidget = (one: { package: string }): boolean => one.package === 'widget';
  const first = 'widget.v1.0.0';
  return {
    packages: packages.filter(({ name }) => name === 'widget'),
    channels: channels
      .filter((one) => isWidget(one) && one.name === 'stable')
      .map((one) => ({ ...one, entries: one.entries.filter(({ name }) => name !== first) })),
    bundles: bundles.filter((one) => isWidget(one) && one.name !== first),
    deprecations: deprecations.map((one) => ({ ...one, entries: one.entries.slice(0, 1) })),
  };
}

type BaseOptions = Partial<BuildImageOptions> & { files?: Record<string, string>; raw?: RawEntry[] };

/** An image in a layout of its own, by digest. */
async function baseImage(options: BaseOptions = {}, platforms: Platform[] = []) {
  const { files = { 'configs/old/catalog.json': '{}', 'bin/opm': 'opm' }, raw, ...rest } = options;
  const entries = Object.entries(files).map(([name, text]) => ({ path: name, content: Buffer.from(text) }));
  const layers = raw === undefined ? [await layerOf(entries)] : [await gzipped(raw)];
  const build = (platform?: Platform) =>
    buildImage({
      layers,
      labels: { [imageLabels.configs]: '/configs', vendor: 'acme' },
      entrypoint: ['/bin/opm'],
      cmd: ['serve', '/configs', '--cache-dir=/tmp/cache'],
      platform,
      ...rest,
    });
  const repository = await openLayout(path.join(await directoryWith(), 'base'), { create: true });
  if (platforms.length === 0) {
    const { digest } = await pushImage(repository, 'v1', await build());
    return { repository, digest };
  }
  const { digest } = await pushImageIndex(repository, 'v1', await Promise.all(platforms.map(build)));
  return { repository, digest };
}

async function gzipped(raw: RawEntry[]): Promise<Buffer> {
  const { gzipSync } = await import('node:zlib');
  return gzipSync(rawTar(raw));
}

const open = (repository: Repository, digest: string, platform?: Platform) =>
  openImage(repository, digest, { hostPlatform, platform });

/** All files of an image, as a container would see them. */
async function filesOf(repository: Repository, digest: string): Promise<FileTree> {
  const image = await open(repository, digest);
  return readImage(image, { roots: [''] });
}

async function textsOf(
  repository: Repository,
  digest: string,
  directory: string,
): Promise<Record<string, string>> {
  const { files } = await filesOf(repository, digest);
  const texts: Record<string, string> = {};
  for (const [name, file] of files) {
    if (name.startsWith(`${directory}/`)) texts[name.slice(directory.length + 1)] = String(await file.read());
  }
  return texts;
}

/** The documents of the rebuilt image's catalog by file. */
async function blobsOf(repository: Repository, digest: string): Promise<Record<string, string[]>> {
  const texts = await textsOf(repository, digest, 'configs');
  const parts = (text: string): string[] =>
    text.split(/^(?=\{$)/m).map((blob) => JSON.stringify(JSON.parse(blob)));
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, parts(text)]));
}

describe('mirror/rebuilt-catalog', () => {
  it('puts the part of a catalog that is kept in place of the old one', async () => {
    const temporaryDirectory = await directoryWith();
    const { catalog, facts } = await prepare();
    const base = await baseImage({
      files: { 'configs/old/catalog.json': '{}', 'bin/opm': 'opm', 'tmp/cache/x': '1' },
    });
    const rebuilt = await rebuildCatalog(catalog, partOf(facts), base, {
      temporaryDirectory,
      withoutCache: true,
    });
    const { repository, digest } = rebuilt;
    expect(await blobsOf(repository, digest)).toEqual({
      'catalog.json': ['{"schema":"acme.note","text":"of all"}'],
      'widget/catalog.json': [
        '{"schema":"olm.package","name":"widget","defaultChannel":"stable","x-owner":"acme"}',
        '{"schema":"olm.channel","name":"stable","package":"widget","entries":[' +
          '{"name":"widget.v1.1.0","replaces":"widget.v1.0.0","x-note":"first"},' +
          '{"name":"widget.v1.2.0","replaces":"widget.v1.1.0","x-note":"second"}],"x-lane":7}',
        JSON.stringify({
          ...orderedBundle('1.1.0'),
          'x-build': { a: 2, b: 1 },
        }),
        JSON.stringify(orderedBundle('1.2.0')),
        '{"package":"widget","schema":"acme.widget.note","text":"kept"}',
        '{"schema":"olm.deprecations","package":"widget","entries":[' +
          '{"reference":{"schema":"olm.package"},"message":"old"}]}',
      ],
    });
    const { files } = await filesOf(repository, digest);
    expect([...files.keys()].filter((name) => !name.startsWith('configs/'))).toEqual(['bin/opm']);
    const image = await open(repository, digest);
    expect(image.config.config).toEqual({
      Entrypoint: ['/bin/opm'],
      Cmd: ['serve', '/configs'],
      Labels: { [imageLabels.configs]: '/configs', vendor: 'acme' },
    });
    expect(image.manifest.layers).toHaveLength(2);
    await rebuilt.close();
    expect(await readdir(temporaryDirectory)).toEqual([]);
  });

  it('makes a valid catalog that can be copied and read again', async () => {
    const { catalog, facts } = await prepare();
    const base = await baseImage();
    const rebuilt = await rebuildCatalog(catalog, partOf(facts), base, {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
    });
    const target = await openLayout(path.join(await directoryWith(), 'out'), { create: true });
    const { descriptor } = await copyImage(rebuilt.repository, rebuilt.digest, target, 'v1');
    await rebuilt.close();
    expect(descriptor.digest).toBe(rebuilt.digest);
    const again = await prepare(await textsOf(target, 'v1', 'configs'));
    expect(validateCatalog(again.facts)).toMatchObject({ passed: true, problems: [] });
    expect(again.facts.bundles.map(({ name }) => name)).toEqual(['widget.v1.1.0', 'widget.v1.2.0']);
  });

  it('gives equal images for equal catalogs, wherever and in whatever files they stand', async () => {
    const base = await baseImage();
    const rebuild = async (files: Record<string, string>): Promise<string> => {
      const { catalog, facts } = await prepare(files);
      const rebuilt = await rebuildCatalog(catalog, partOf(facts), base, {
        temporaryDirectory: await directoryWith(),
      });
      await rebuilt.close();
      return rebuilt.digest;
    };
    const digest = await rebuild(sources);
    expect(await rebuild(sources)).toBe(digest);
    const all = Object.values(sources).join('').trimEnd().split('\n').reverse().join('\n');
    expect(await rebuild({ 'all.json': all })).toBe(digest);
  });

  it('writes entries, default channels and related images as they have become', async () => {
    const { catalog, facts } = await prepare();
    const ofWidget = (name: string) => facts.channels.find((one) => one.name === name) as ChannelFacts;
    const entries = [
      { name: 'widget.v1.0.0', replaces: '', skips: [], skipRange: '' },
      { name: 'widget.v1.2.0', replaces: 'widget.v1.0.0', skips: ['widget.v1.1.0'], skipRange: '<1.2.0' },
    ];
    const part: CatalogFacts = {
      packages: [{ name: 'widget', defaultChannel: 'beta' }],
      channels: [{ ...ofWidget('stable'), entries }, ofWidget('beta')],
      bundles: facts.bundles.filter(({ name }) => /^widget.v1.[02]/.test(name)),
      deprecations: [],
    };
    const rebuilt = await rebuildCatalog(catalog, part, await baseImage(), {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
      withoutImages: new Set(['quay.io/acme/widget:v1.0.0', 'quay.io/acme/widget-bundle:v1.2.0', 'else']),
    });
    const blobs = (await blobsOf(rebuilt.repository, rebuilt.digest))['widget/catalog.json'] ?? [];
    await rebuilt.close();
    expect(blobs[0]).toContain('"defaultChannel":"beta"');
    expect(blobs[2]).toBe(
      '{"schema":"olm.channel","name":"stable","package":"widget","entries":[{"name":"widget.v1.0.0"},' +
        '{"name":"widget.v1.2.0","replaces":"widget.v1.0.0","skips":["widget.v1.1.0"],"skipRange":"<1.2.0",' +
        '"x-note":"second"}],"x-lane":7}',
    );
    expect(
      blobs.slice(3, 5).map((blob) => (JSON.parse(blob) as { relatedImages: object }).relatedImages),
    ).toEqual([
      [{ name: '', image: 'quay.io/acme/widget-bundle:v1.0.0' }],
      [{ name: 'operator', image: 'quay.io/acme/widget:v1.2.0' }],
    ]);
    // No deprecations are left.
    expect(blobs).toHaveLength(6);
  });

  it.each([
    ['a path with a slash', '/opt/olm/configs/', 'opt/olm/configs'],
    ['a path that is not absolute', './configs', 'configs'],
  ])('takes the old catalog away at %s', async (_, label, directory) => {
    const { catalog, facts } = await prepare();
    const base = await baseImage({
      files: { [`${directory}/old/deep/catalog.json`]: '{}', [`${directory}-not/x`]: '1', 'bin/opm': 'opm' },
      labels: { [imageLabels.configs]: label },
    });
    const { repository, digest, close } = await rebuildCatalog(catalog, facts, base, {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
    });
    const { files, directories } = await filesOf(repository, digest);
    expect([...files.keys()].filter((name) => name !== 'bin/opm')).toEqual([
      `${directory}-not/x`,
      `${directory}/catalog.json`,
      `${directory}/gadget/catalog.json`,
      `${directory}/widget/catalog.json`,
    ]);
    expect(directories).not.toContain(`${directory}/old`);
    const image = await open(repository, digest);
    expect(image.config.config?.Cmd).toEqual(['serve', `/${directory}`]);
    expect(image.labels[imageLabels.configs]).toBe(label);
    await close();
  });

  it('replaces a catalog directory that is a link', async () => {
    const { catalog, facts } = await prepare();
    const base = await baseImage({
      raw: [
        { name: 'data/catalog.json', content: '{}' },
        { name: 'configs', flag: '2', linkName: '/data' },
      ],
    });
    const { repository, digest, close } = await rebuildCatalog(catalog, partOf(facts), base, {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
    });
    const { files } = await filesOf(repository, digest);
    expect([...files.keys()]).toEqual([
      'configs/catalog.json',
      'configs/widget/catalog.json',
      'data/catalog.json',
    ]);
    await close();
  });

  it('writes a layer of plain owners, modes and times, its markers first', async () => {
    const { catalog, facts } = await prepare();
    const { repository, digest, close } = await rebuildCatalog(catalog, partOf(facts), await baseImage(), {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
    });
    const layer = (await open(repository, digest)).manifest.layers[1] as Descriptor;
    const archive = path.join(
      await directoryWith({ 'layer.tar.gz': await readAll(await repository.openBlob(layer)) }),
      'layer.tar.gz',
    );
    await close();
    const listing = execFileSync('tar', ['--numeric-owner', '-tvzf', archive], {
      env: { TZ: 'UTC' },
      encoding: 'utf8',
    });
    expect(
      listing
        .trim()
        .split('\n')
        .map((line) => line.replace(/ +/g, ' ')),
    ).toEqual([
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 configs/',
      '-rw-r--r-- 0/0 0 1970-01-01 00:00 configs/.wh..wh..opq',
      expect.stringMatching(/^-rw-r--r-- 0\/0 \d+ 1970-01-01 00:00 configs\/catalog.json$/),
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 configs/widget/',
      expect.stringMatching(/^-rw-r--r-- 0\/0 \d+ 1970-01-01 00:00 configs\/widget\/catalog.json$/),
      // Programs write there: it must not lose its mode.
      'drwxrwxrwt 0/0 0 1970-01-01 00:00 tmp/',
      '-rw-r--r-- 0/0 0 1970-01-01 00:00 tmp/.wh.cache',
    ]);
  });

  it.each([
    ['no cache', ['serve', '/configs'], []],
    ['a cache of its own', ['serve', '/configs', '--cache-dir', '/var/lib/cache'], ['var/lib/.wh.cache']],
    ['a cache in the working directory', ['serve', '/configs', '--cache-dir=cache'], ['work/.wh.cache']],
    ['a cache in the catalog', ['serve', '/configs', '--cache-dir=/configs/.cache'], []],
    ['a cache around the catalog', ['serve', '/configs', '--cache-dir=/'], []],
    ['a cache around the program', ['serve', '/configs', '--cache-dir=/bin'], []],
    ['all of /tmp', ['serve', '/configs', '--cache-dir=/tmp'], ['tmp/.wh..wh..opq']],
  ])('drops caches of a command with %s', async (_, cmd, whiteouts) => {
    const { catalog, facts } = await prepare();
    const base = await baseImage({ cmd });
    const withDirectory = await inDirectory(base, '/work');
    const { repository, digest, close } = await rebuildCatalog(catalog, partOf(facts), withDirectory, {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
    });
    const image = await open(repository, digest);
    const names: string[] = [];
    const layer = await repository.openBlob(image.manifest.layers[1] as Descriptor);
    for await (const { path: name } of readTar(layer, {
      label: 'layer',
      meter: new ArchiveMeter(defaultArchiveLimits),
    })) {
      if (name.includes('.wh.') && !name.startsWith('configs/')) names.push(name);
    }
    await close();
    expect(names).toEqual(whiteouts);
    expect(image.config.config).toMatchObject({
      Entrypoint: ['/bin/opm'],
      Cmd: ['serve', '/configs'],
      WorkingDir: '/work',
    });
    // Of no use to opmate, but of the image.
    expect(await configTextOf(image)).toContain('"StopSignal":"SIGINT"');
  });

  it.each([
    ['no cache', 'serve /configs', []],
    ['a cache of its own', 'serve /configs --cache-dir /var/lib/cache', ['var/lib/cache/digest']],
    ['a cache in the working directory', 'serve /configs --cache-dir=cache', ['work/cache/digest']],
    ['a cache that must fit', 'serve /configs --cache-dir=/c --cache-enforce-integrity', ['c/digest']],
    ['all of /tmp', 'serve /configs --cache-dir=/tmp', ['tmp/digest']],
    ['a cache in the catalog', 'serve /configs --cache-dir=/configs/.cache', [], 'serve /configs'],
    ['a cache around the program', 'serve /configs --cache-dir=/bin', [], 'serve /configs'],
  ])('writes the cache for a command with %s', async (_, cmd, digests, made = cmd) => {
    const { catalog, facts } = await prepare();
    const withDirectory = await inDirectory(await baseImage({ cmd: cmd.split(' ') }), '/work');
    const { repository, digest, close } = await rebuildCatalog(catalog, partOf(facts), withDirectory, {
      temporaryDirectory: await directoryWith(),
    });
    const { files } = await filesOf(repository, digest);
    expect([...files.keys()].filter((name) => name.endsWith('digest'))).toEqual(digests);
    const image = await open(repository, digest);
    expect(image.config.config?.Cmd).toEqual(made.split(' '));
    await close();
  });

  it('drops a cache that only the history tells of', async () => {
    const { catalog, facts } = await prepare();
    const base = await baseImage({ cmd: undefined, entrypoint: undefined });
    const history = [{ created_by: 'COPY /tmp/cache /tmp/cache # buildkit' }];
    const changed = await withConfig(base, (config) => ({
      ...config,
      config: { Labels: config.config.Labels },
      history,
    }));
    const { repository, digest, close } = await rebuildCatalog(catalog, partOf(facts), changed, {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
    });
    const image = await open(repository, digest);
    expect(image.config.history).toEqual([
      ...history,
      { created: '1970-01-01T00:00:00Z', created_by: 'opmate' },
    ]);
    // It starts nothing, as before.
    expect(image.config.config?.Cmd).toBeUndefined();
    const { files } = await filesOf(repository, digest);
    expect([...files.keys()]).toContain('configs/catalog.json');
    await close();
  });

  const platforms = ['amd64', 's390x', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));

  it('rebuilds every platform of an index, or those that are wanted', async () => {
    const { catalog, facts } = await prepare();
    const base = await baseImage({}, platforms);
    const rebuild = async (wanted?: Platform[]) =>
      rebuildCatalog(catalog, partOf(facts), base, {
        temporaryDirectory: await directoryWith(),
        withoutCache: true,
        platforms: wanted,
      });
    const all = await rebuild();
    const contents = await readContents(all.repository, all.digest);
    expect(contents.manifests).toHaveLength(4);
    const layers = await Promise.all(
      platforms.map(
        async (platform) => (await open(all.repository, all.digest, platform)).manifest.layers[1],
      ),
    );
    expect(new Set(layers.map((layer) => layer?.digest)).size).toBe(1);
    const target = await openLayout(path.join(await directoryWith(), 'out'), { create: true });
    await copyImage(all.repository, all.digest, target, 'v1');
    expect((await open(target, 'v1', platforms[1])).platform.architecture).toBe('s390x');
    await all.close();
    const some = await rebuild([platforms[2] as Platform, platforms[1] as Platform]);
    const index = await some.repository.getManifest(some.digest);
    expect(JSON.parse(String(index.bytes))).toMatchObject({
      manifests: [{ platform: { architecture: 's390x' } }, { platform: { architecture: 'arm64' } }],
    });
    await some.close();
    const failure = await failureOf(rebuild([{ os: 'linux', architecture: 'ppc64le' }]));
    expect(failure).toMatchObject({ code: 'NOT_FOUND' });
    expect(failure.message).toContain(
      'no image for linux/ppc64le, only linux/amd64, linux/s390x, linux/arm64',
    );
  });

  it('makes a file-based catalog of a database, and says so', async () => {
    const { catalog, facts } = await prepare();
    const base = await baseImage({
      files: { 'database/index.db': 'rows', 'database/other': '1', 'bin/opm': 'opm' },
      labels: { [imageLabels.database]: '/database/index.db' },
      cmd: ['registry', 'serve', '--database', '/database/index.db'],
    });
    const logged: string[] = [];
    const logger = {
      log: (level: string, text: string) => void logged.push(`${level}: ${text}`),
      progress: () => undefined,
    };
    const { repository, digest, close } = await rebuildCatalog(catalog, partOf(facts), base, {
      temporaryDirectory: await directoryWith(),
      withoutCache: true,
      logger,
    });
    const { files } = await filesOf(repository, digest);
    expect([...files.keys()]).toEqual([
      'bin/opm',
      'configs/catalog.json',
      'configs/widget/catalog.json',
      'database/other',
    ]);
    const image = await open(repository, digest);
    expect({ ...image.labels }).toEqual({ [imageLabels.configs]: '/configs' });
    expect(image.config.config?.Cmd).toEqual(['serve', '/configs']);
    expect(logged).toEqual([
      expect.stringMatching(
        /^warn: .*: its database "\/database\/index.db" becomes a file-based catalog, which the opm/,
      ),
    ]);
    await close();
  });

  it('refuses what it cannot rebuild, and leaves nothing behind', async () => {
    const { catalog, facts } = await prepare();
    const temporaryDirectory = await directoryWith();
    const rebuild = async (options: BaseOptions, part = facts) =>
      failureOf(rebuildCatalog(catalog, part, await baseImage(options), { temporaryDirectory }));
    expect(await rebuild({ labels: {} })).toMatchObject({ code: 'INVALID' });
    expect(await rebuild({ labels: { [imageLabels.configs]: '/' } })).toMatchObject({ code: 'UNSUPPORTED' });
    expect(await rebuild({ labels: { [imageLabels.configs]: '/../x' } })).toMatchObject({ code: 'UNSAFE' });
    const lost = {
      ...facts,
      bundles: [...facts.bundles, { ...(facts.bundles[0] as BundleFacts), name: 'lost' }],
    };
    expect(await rebuild({}, lost)).toMatchObject({
      code: 'IO',
      message: expect.stringContaining('gadget/lost') as string,
    });
    const signal = AbortSignal.abort();
    const cancelled = rebuildCatalog(catalog, facts, await baseImage(), { temporaryDirectory, signal });
    expect(await failureOf(cancelled)).toMatchObject({ code: 'CANCELLED' });
    expect(await readdir(temporaryDirectory)).toEqual([]);
    const missing = rebuildCatalog(catalog, facts, await baseImage(), {
      temporaryDirectory: path.join(temporaryDirectory, 'missing'),
    });
    expect(await failureOf(missing)).toMatchObject({
      code: 'IO',
      message: expect.stringContaining('cannot create a temporary directory') as string,
    });
  });
});

async function configTextOf({ repository, manifest }: Image): Promise<string> {
  return String(await readAll(await repository.openBlob(manifest.config)));
}

interface WholeConfig {
  config: Record<string, unknown>;
  [key: string]: unknown;
}

/** The same image with another configuration. */
async function withConfig(
  { repository, digest }: { repository: LayoutRepository; digest: string },
  change: (config: WholeConfig) => WholeConfig,
) {
  const image = await open(repository, digest);
  const config = bytesOf(change(JSON.parse(await configTextOf(image)) as WholeConfig));
  const descriptor = descriptorOf(config, mediaTypes.ociConfig);
  await repository.putBlob(descriptor, () => streamOf(config));
  const manifest = bytesOf({ ...image.manifest, config: descriptor });
  await repository.putManifest('v2', manifest, mediaTypes.ociManifest);
  return { repository, digest: descriptorOf(manifest).digest };
}

/** The same image with a working directory, and a field that opmate does not know. */
function inDirectory(base: { repository: LayoutRepository; digest: string }, directory: string) {
  return withConfig(base, (whole) => ({
    ...whole,
    config: { ...whole.config, WorkingDir: directory, StopSignal: 'SIGINT' },
  }));
}

function orderedBundle(version: string): object {
  const { relatedImages, ...rest } = bundleBlob('widget', version) as Record<string, object[]>;
  const [bundle, operator] = relatedImages as [object, object];
  // As `opm` has them: by image, where the blob has nothing else that would be lost.
  return { ...rest, relatedImages: [bundle, operator] };
}
