import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import { writeOpmCache } from '../../../../src/catalog/content/opm-cache.js';
import type { CacheFile } from '../../../../src/catalog/content/opm-cache-names.js';
import type { OtherBlob } from '../../../../src/catalog/content/previous-cache.js';
import { collectFacts } from '../../../../src/catalog/facts.js';
import { directoryWith } from '../../../support/temporary.js';

const bundle = (name: string, version: string, more: object = {}): object => ({
  schema: 'olm.bundle',
  name,
  package: 'widget',
  image: `quay.io/example/widget:v${version}`,
  properties: [
    { type: 'olm.package', value: { packageName: 'widget', version } },
    { type: 'olm.gvk', value: { group: 'example.com', kind: 'Widget', version: 'v1' } },
    { type: 'olm.gvk.required', value: { group: 'example.com', kind: 'Gadget', version: 'v2' } },
    { type: 'olm.package.required', value: { packageName: 'gadget', versionRange: '>1.0.0' } },
  ],
  ...more,
});

const blobs: object[] = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
  {
    schema: 'olm.channel',
    package: 'widget',
    name: 'stable',
    entries: [
      { name: 'widget.v1.0.0' },
      { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0', skips: ['widget.v1.0.1'], skipRange: '<1.1.0' },
    ],
  },
  bundle('widget.v1.0.0', '1.0.0'),
  bundle('widget.v1.1.0', '1.1.0'),
  {
    schema: 'olm.deprecations',
    package: 'widget',
    entries: [
      { reference: { schema: 'olm.package' }, message: 'the package is old' },
      { reference: { schema: 'olm.bundle', name: 'widget.v1.0.0' }, message: 'it is old' },
    ],
  },
];
const custom = { schema: 'com.example.note', package: 'widget', text: 'hello' };

async function write(
  content: readonly object[],
  text = content.map((blob) => `${JSON.stringify(blob)}\n`).join(''),
): Promise<{ files: CacheFile[]; read(name: string): Promise<string> }> {
  const root = await directoryWith({ 'catalog/catalog.json': text });
  const catalogFile = path.join(root, 'catalog', 'catalog.json');
  const catalog = new DirectoryCatalog(path.join(root, 'catalog'), 'catalog');
  const files = await writeOpmCache(catalog, {
    catalogFiles: [{ path: 'catalog.json', file: catalogFile, size: Buffer.byteLength(text) }],
    file: path.join(root, 'cache'),
  }).finally(() => catalog.close());
  const read = async (name: string): Promise<string> => {
    const { file, offset = 0, size } = files.find(({ path: other }) => other === name) as CacheFile;
    return String((await readFile(file)).subarray(offset, offset + size));
  };
  return { files, read };
}

describe('catalog/content/opm-cache', () => {
  it('has each bundle of each channel with all its fields', async () => {
    const { files, read } = await write([...blobs, custom]);
    expect(files.map((file) => file.path)).toEqual([
      'cache/packages.json',
      'cache/widget_stable_widget.v1.0.0.json',
      'cache/widget_stable_widget.v1.1.0.json',
      expect.stringMatching(/^cache\/metas\/com\.example\.note\/widget\/[0-9a-f]{1,16}\.json$/),
      'digest',
    ]);
    expect(JSON.parse(await read('cache/widget_stable_widget.v1.1.0.json'))).toEqual({
      csvName: 'widget.v1.1.0',
      packageName: 'widget',
      channelName: 'stable',
      bundlePath: 'quay.io/example/widget:v1.1.0',
      providedApis: [{ group: 'example.com', version: 'v1', kind: 'Widget' }],
      requiredApis: [{ group: 'example.com', version: 'v2', kind: 'Gadget' }],
      version: '1.1.0',
      skipRange: '<1.1.0',
      dependencies: [
        { type: 'olm.gvk', value: '{"group":"example.com","kind":"Gadget","version":"v2"}' },
        { type: 'olm.package', value: '{"packageName":"gadget","version":">1.0.0"}' },
      ],
      properties: expect.arrayContaining([
        { type: 'olm.package', value: '{"packageName":"widget","version":"1.1.0"}' },
      ]),
      replaces: 'widget.v1.0.0',
      skips: ['widget.v1.0.1'],
    });
    expect(JSON.parse(await read('cache/widget_stable_widget.v1.0.0.json'))).toMatchObject({
      deprecation: { message: 'it is old' },
    });
    expect(JSON.parse(await read('cache/packages.json'))).toMatchObject({
      widget: {
        name: 'widget',
        defaultChannel: 'stable',
        deprecation: { message: 'the package is old' },
        Channels: {
          stable: {
            Name: 'stable',
            Head: 'widget.v1.1.0',
            Bundles: { 'widget.v1.0.0': { package: 'widget', channel: 'stable', name: 'widget.v1.0.0' } },
          },
        },
      },
    });
    expect(JSON.parse(await read(files[3]?.path as string))).toEqual(custom);
  });

  /** The value is what opm 1.73 computes of these trees. */
  it('is the same for the same catalog, with the digest that opm looks for', async () => {
    const [one, two] = [await write(blobs), await write(blobs)];
    expect(await one.read('digest')).toBe('0b831a09f2423a8d');
    expect(await two.read('digest')).toBe(await one.read('digest'));
    const other = await write(blobs, `${blobs.map((blob) => JSON.stringify(blob)).join('\n')}\n\n`);
    expect(await other.read('digest')).not.toBe(await one.read('digest'));
  });

  it('refuses blobs that opm cannot store in files where an earlier cache stays too', async () => {
    const content = [...blobs, { ...custom, schema: '..', package: '' }];
    const text = content.map((blob) => `${JSON.stringify(blob)}\n`).join('');
    const root = await directoryWith({ 'catalog/catalog.json': text });
    const catalog = new DirectoryCatalog(path.join(root, 'catalog'), 'catalog');
    const others: OtherBlob[] = [];
    const facts = await collectFacts(catalog, { onOther: (meta) => void others.push(meta) });
    const changed = { packages: new Set<string>(), directories: new Set<string>() };
    const previous = { files: new Map<string, CacheFile>(), changed, facts, others };
    const options = { catalogFiles: [], file: path.join(root, 'cache'), previous };
    await expect(writeOpmCache(catalog, options)).rejects.toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining('not supported by opm'),
    });
    await catalog.close();
  });

  it('refuses catalogs that opm cannot serve or store in files', async () => {
    const failure = (extra: object[]): Promise<unknown> =>
      write([...blobs, ...extra]).then(
        () => 'none',
        (error: unknown) => error,
      );
    expect(await failure([{ ...custom, schema: '../../etc' }])).toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining('not supported by opm'),
    });
    const name = `widget.${'x'.repeat(250)}`;
    const entries = [{ name }];
    expect(
      await failure([
        { schema: 'olm.channel', package: 'widget', name: 'long', entries },
        bundle(name, '2.0.0'),
      ]),
    ).toMatchObject({ code: 'INVALID', hint: 'build the image without options.cache' });
    expect(await failure([bundle('widget.v9', '9.0.0')])).toMatchObject({ code: 'INVALID' });
  });
});
