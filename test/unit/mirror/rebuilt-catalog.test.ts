import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FileTree, readLayers } from '../../../src/archive/layers.js';
import { layerOf } from '../../../src/archive/tar-writer.js';
import { DirectoryCatalog } from '../../../src/catalog/catalog.js';
import { collectFacts } from '../../../src/catalog/facts.js';
import { rebuildCatalog } from '../../../src/mirror/rebuilt-catalog.js';
import type { CatalogFacts } from '../../../src/model/facts.js';
import { imageLabels } from '../../../src/model/image-labels.js';
import { validateCatalog } from '../../../src/model/validate.js';
import { copyImage } from '../../../src/oci/copy.js';
import {
  type BuildImageOptions,
  buildImage,
  pushImage,
  pushImageIndex,
} from '../../../src/oci/image-builder.js';
import { layersOf, openImage } from '../../../src/oci/image.js';
import { openLayout } from '../../../src/oci/layout.js';
import type { Repository } from '../../../src/oci/repository.js';
import type { Platform } from '../../../src/oci/types.js';
import { directoryWith } from '../../support/temporary.js';
import { type RawEntry, rawTar } from '../../support/tar.js';

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
  return readLayers(layersOf(image, undefined), { roots: [''] });
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
    const rebuilt = await rebuildCatalog(catalog, partOf(facts), base, { temporaryDirectory });
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
});

function orderedBundle(version: string): object {
  const { relatedImages, ...rest } = bundleBlob('widget', version) as Record<string, object[]>;
  const [bundle, operator] = relatedImages as [object, object];
  // As `opm` has them: by image, where the blob has nothing else that would be lost.
  return { ...rest, relatedImages: [bundle, operator] };
}
