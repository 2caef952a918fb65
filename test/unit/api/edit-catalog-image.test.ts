import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type Session,
  addFragmentsToImage,
  buildCatalogImage,
  deprecateInImage,
  inspectImage,
  openSession,
  parseReference,
  removePackagesFromImage,
} from '../../../src/index.js';
import { pullImage } from '../../../src/api/images/pull-image.js';
import { layerOf } from '../../../src/archive/tar-writer.js';
import { readTar } from '../../../src/archive/tar-reader.js';
import { ArchiveMeter } from '../../../src/archive/limits.js';
import { type ImageOutput, putImages } from '../../../src/api/images/image-output.js';
import { buildImage, openBases, readWholeConfig } from '../../../src/oci/image/image-builder.js';
import { openReference } from '../../../src/oci/image/open.js';
import type { Descriptor } from '../../../src/oci/image/types.js';
import { silentLogger } from '../../../src/core/log.js';
import { failureOf } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';

/** Returns the blobs of a package with a chain of versions. */
function catalogOf(name: string, versions: string[]): string {
  return [
    { schema: 'olm.package', name, defaultChannel: 'stable' },
    {
      schema: 'olm.channel',
      package: name,
      name: 'stable',
      entries: versions.map((version, index) => ({
        name: `${name}.v${version}`,
        ...(index > 0 && { replaces: `${name}.v${versions[index - 1]}` }),
      })),
    },
    ...versions.map((version) => ({
      schema: 'olm.bundle',
      package: name,
      name: `${name}.v${version}`,
      image: `registry.example.com/${name}:v${version}`,
      properties: [{ type: 'olm.package', value: { packageName: name, version } }],
    })),
  ]
    .map((blob) => JSON.stringify(blob))
    .join('\n');
}

interface World {
  session: Session;
  root: string;
  index: string;
  output(tag: string): { outputs: { to: ReturnType<typeof parseReference> }[] };
  /** Returns the files of the catalog in an image. */
  list(tag: string): Promise<string[]>;
  reference(tag: string): string;
}

async function openWorld(cache = false, more: Record<string, string> = {}): Promise<World> {
  const session = await openSession();
  onTestFinished(() => session.close());
  const root = await directoryWith({
    'index/widget/catalog.json': catalogOf('widget', ['1.0.0', '1.1.0']),
    'index/widget/old.yaml': '',
    'index/gadget/catalog.json': catalogOf('gadget', ['1.0.0']),
    'fragment/widget/catalog.yaml': catalogOf('widget', ['1.0.0', '1.1.0', '1.2.0']).replaceAll(
      '\n',
      '\n---\n',
    ),
    'fragment/new/catalog.json': catalogOf('new', ['0.1.0']),
    'breaking/widget/catalog.json': catalogOf('widget', ['2.0.0']),
    'copy/other/catalog.json': catalogOf('gadget', ['1.0.0']),
    'empty/README.md': '',
    ...more,
  });
  const reference = (tag: string): string => `oci:${path.join(root, 'layout')}:${tag}`;
  const output: World['output'] = (tag) => ({ outputs: [{ to: parseReference(reference(tag)) }] });
  await buildCatalogImage(path.join(root, 'index'), session, {
    ...output('from'),
    baseImage: 'scratch',
    cache,
    skipValidation: true,
  });
  const list: World['list'] = async (tag) => {
    const { files } = await pullImage(reference(tag), session, { roots: ['configs'] });
    return [...files.files.keys()].map((file) => file.replace('configs/', '')).sort();
  };
  return { session, root, index: reference('from'), output, list, reference };
}

interface CachedWorld extends World {
  /** Returns the paths of files in the top layer of an image. */
  listLayer(tag: string): Promise<string[]>;
}

/** Makes an index with a cache, and a layer above it with other files. */
async function openCachedWorld(
  above?: Record<string, string>,
  links: Record<string, string> = {},
): Promise<CachedWorld> {
  const world = await openWorld(true, {
    'index/widget/note.json': JSON.stringify({
      schema: 'com.example.note',
      package: 'widget',
      text: 'hello',
    }),
  });
  const { session, root, reference, output } = world;
  const listLayer = async (tag: string): Promise<string[]> => {
    const opened = await openReference(parseReference(reference(tag)), session);
    onTestFinished(() => opened.close());
    const [image] = await openBases(opened.repository, opened.reference, session);
    const stream = await opened.repository.openBlob(image?.manifest.layers.at(-1) as Descriptor);
    const names: string[] = [];
    for await (const { path: name, type } of readTar(stream, { label: tag, meter: new ArchiveMeter() }))
      if (type === 'file') names.push(name);
    return names.sort();
  };
  if (above !== undefined) {
    const opened = await openReference(parseReference(world.index), session);
    onTestFinished(() => opened.close());
    const bases = await openBases(opened.repository, opened.reference, session);
    const layer = await layerOf([
      ...Object.entries(above).map(([name, text]) => ({ path: name, content: Buffer.from(text) })),
      ...Object.entries(links).map(([name, target]) => ({ path: name, type: 'symlink' as const, target })),
    ]);
    const images = await Promise.all(
      bases.map(async (base) =>
        buildImage({
          layers: [layer],
          base,
          baseConfig: await readWholeConfig(base, {}),
          platform: base.platform,
        }),
      ),
    );
    await putImages(session, output('from').outputs[0] as ImageOutput, images, root);
  }
  return { ...world, listLayer };
}

/** Expects that the cache of an image is that of its catalog. */
async function expectBuilt({ session, output, reference }: World, tag: string): Promise<void> {
  const read = async (of: string, directory: string): Promise<Record<string, string>> => {
    const { files } = await pullImage(reference(of), session, { roots: [directory] });
    const contents: Record<string, string> = {};
    for (const [name, file] of files.files)
      contents[path.relative(directory, name)] = String(await file.read());
    return contents;
  };
  const catalog = await directoryWith(await read(tag, 'configs'));
  const built = `built-${tag}`;
  await buildCatalogImage(catalog, session, { ...output(built), baseImage: 'scratch', cache: true });
  expect(await read(tag, 'tmp/cache')).toEqual(await read(built, 'tmp/cache'));
}

describe('edits of index images', () => {
  it('replaces whole packages in one new layer, on all platforms, reproducibly', async () => {
    const { session, root, index, output, list, reference } = await openWorld();
    const fragment = path.join(root, 'fragment');
    const { changes } = await addFragmentsToImage(index, [fragment], session, output('to'));
    expect(changes.sort()).toEqual(['added package new', 'replaced package widget']);
    expect(await list('to')).toEqual(['gadget/catalog.json', 'new/catalog.json', 'widget/catalog.yaml']);
    const [before, after] = [
      await inspectImage(index, session),
      await inspectImage(reference('to'), session),
    ];
    expect(after.layers.length).toBe(before.layers.length + 1);
    expect(after.labels).toEqual(before.labels);
    const again = await addFragmentsToImage(index, [fragment], session, output('to'));
    expect(again.images[0]?.isUnchanged).toBe(true);
    expect(again.images[0]?.platforms.length).toBe(4);
  });

  it('refuses a fragment that strands installed bundles, unless its package is allowed', async () => {
    const { session, root, index, output, list } = await openWorld();
    const fragment = path.join(root, 'breaking');
    const refused = await failureOf(addFragmentsToImage(index, [fragment], session, output('to')));
    expect(refused.message).toContain('"widget.v1.0.0", "widget.v1.1.0"');
    await expect(list('to')).rejects.toThrow();
    const allowed = { ...output('to'), allowPruning: ['widget'] };
    await addFragmentsToImage(index, [fragment], session, allowed);
    expect(await list('to')).toContain('widget/catalog.json');
  });

  it('refuses a fragment whose directory lacks the package of the index, unless it is allowed', async () => {
    const { session, root, index, output } = await openWorld(false, { 'lost/gadget/README.md': '' });
    const lost = [path.join(root, 'lost')];
    const failure = await failureOf(addFragmentsToImage(index, lost, session, output('to')));
    expect(failure).toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining('packages would be removed: "gadget"'),
    });
    const options = { ...output('to'), allowPruning: ['gadget'] };
    const { changes } = await addFragmentsToImage(index, lost, session, options);
    expect(changes).toEqual(['removed package gadget']);
  });

  it('refuses a package that is in two directories, and fragments without packages', async () => {
    const { session, root, index, output } = await openWorld();
    const copy = addFragmentsToImage(index, [path.join(root, 'copy')], session, output('to'));
    expect((await failureOf(copy)).message).toContain('gadget');
    const empty = addFragmentsToImage(index, [path.join(root, 'empty')], session, output('to'));
    expect((await failureOf(empty)).message).toContain('"README.md"');
  });

  it('removes packages and rewrites the cache of the image', async () => {
    const { session, index, output, list, reference } = await openWorld(true);
    await removePackagesFromImage(index, ['widget', 'none'], session, output('to'));
    expect(await list('to')).toEqual(['gadget/catalog.json']);
    const { files } = await pullImage(reference('to'), session, { roots: ['tmp/cache'] });
    const packages = await files.files.get('tmp/cache/cache/packages.json')?.read();
    expect(packages?.toString()).not.toContain('widget');
  });

  it('warns of a package that the index lacks, with the nearest name', async () => {
    const { session, index, output, list } = await openWorld();
    const lines: string[] = [];
    const log = (level: string, message: string): void => void lines.push(`${level}: ${message}`);
    const logged = { ...session, logger: { ...silentLogger, log } };
    await removePackagesFromImage(index, ['widgte'], logged, output('to'));
    expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
      `warn: ${index}: package "widgte" not found (did you mean "widget"?)`,
    ]);
    expect(await list('to')).toEqual(await list('from'));
  });

  describe('of an image with the cache of opm', () => {
    it('write only the files of changed packages, as a build of the whole catalog has them', async () => {
      const world = await openCachedWorld();
      const { session, root, index, output } = world;
      await addFragmentsToImage(index, [path.join(root, 'fragment')], session, output('to'));
      await expectBuilt(world, 'to');
      expect(await world.listLayer('to')).toEqual([
        'configs/new/.wh..wh..opq',
        'configs/new/catalog.json',
        'configs/widget/.wh..wh..opq',
        'configs/widget/catalog.yaml',
        'tmp/cache/cache/.wh.metas',
        'tmp/cache/cache/new_stable_new.v0.1.0.json',
        'tmp/cache/cache/packages.json',
        'tmp/cache/cache/widget_stable_widget.v1.0.0.json',
        'tmp/cache/cache/widget_stable_widget.v1.1.0.json',
        'tmp/cache/cache/widget_stable_widget.v1.2.0.json',
        'tmp/cache/digest',
      ]);
    });

    it('build on a cache that an edit wrote', async () => {
      const world = await openCachedWorld();
      const { session, root, index, output, reference } = world;
      await addFragmentsToImage(index, [path.join(root, 'fragment')], session, output('first'));
      await removePackagesFromImage(reference('first'), ['widget'], session, output('second'));
      await expectBuilt(world, 'second');
      expect(await world.listLayer('second')).not.toContain('tmp/cache/cache/new_stable_new.v0.1.0.json');
    });

    it('write the files of packages whose deprecations go', async () => {
      const world = await openCachedWorld();
      const { session, index, output, reference } = world;
      const entries = [{ reference: { schema: 'olm.bundle', name: 'gadget.v1.0.0' }, message: 'old' }];
      const text = JSON.stringify({ schema: 'olm.deprecations', package: 'gadget', entries });
      await deprecateInImage(index, { text, file: 'schema.json' }, session, output('old'));
      await expectBuilt(world, 'old');
      const fragment = await directoryWith({
        '_operator-deprecations-content/widget/widget.json': text
          .replaceAll('gadget', 'widget')
          .replace('old', 'older'),
      });
      await addFragmentsToImage(reference('old'), [fragment], session, output('to'));
      await expectBuilt(world, 'to');
      const layer = await world.listLayer('to');
      expect(layer).toContain('tmp/cache/cache/gadget_stable_gadget.v1.0.0.json');
    });

    it('refuse a link in place of a directory, which the layer would replace', async () => {
      for (const name of ['configs', 'tmp', 'tmp/cache']) {
        const { session, index, output } = await openCachedWorld({}, { [name]: '/elsewhere' });
        const failure = await failureOf(removePackagesFromImage(index, ['widget'], session, output('to')));
        expect(failure).toMatchObject({
          code: 'UNSUPPORTED',
          message: expect.stringContaining(`/${name}: symbolic link`),
        });
      }
    });

    it('replace a cache of another catalog', async () => {
      const world = await openCachedWorld({ 'tmp/cache/digest': '0123456789abcdef' });
      const { session, index, output } = world;
      await removePackagesFromImage(index, ['widget'], session, output('to'));
      await expectBuilt(world, 'to');
      expect(await world.listLayer('to')).toContain('tmp/cache/.wh..wh..opq');
    });
  });

  it('writes deprecations of a package, and refuses those of missing bundles', async () => {
    const { session, root, index, output, list } = await openWorld();
    const deprecate = async (bundle: string): Promise<string[]> => {
      const file = path.join(root, 'schema.json');
      const entries = [{ reference: { schema: 'olm.bundle', name: bundle }, message: 'old' }];
      const text = JSON.stringify({ schema: 'olm.deprecations', package: 'gadget', entries });
      await writeFile(file, text);
      await deprecateInImage(index, { text, file }, session, output('to'));
      return list('to');
    };
    expect((await failureOf(deprecate('gadget.v9.9.9'))).message).toContain('gadget.v9.9.9');
    expect(await deprecate('gadget.v1.0.0')).toContain('_operator-deprecations-content/gadget/gadget.json');
  });
});
