import { chmod, copyFile, mkdir, readFile, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import type { Logger } from '../../../../src/core/log.js';
import {
  type CatalogQueriesOptions,
  openCatalogQueries,
} from '../../../../src/serve/grpc/catalog-queries.js';
import { type FileCatalogQueries } from '../../../../src/serve/grpc/catalog-queries.js';
import { startRegistryServer } from '../../../../src/serve/grpc/server.js';
import { type RegistryClient, registryClient } from '../../../support/registry-client.js';
import { directoryWith } from '../../../support/temporary.js';

const now = () => new Date('2026-01-01T00:00:00Z');
const widget = { group: 'example.com', version: 'v1', kind: 'Widget' };

/** A package with two channels that share a bundle, deprecations, and blobs of other schemas. */
const gadget = [
  {
    schema: 'olm.package',
    name: 'gadget',
    defaultChannel: 'stable',
    description: 'Makes gadgets',
    icon: { base64data: 'PHN2Zy8+', mediatype: 'image/svg+xml' },
  },
  {
    schema: 'olm.channel',
    package: 'gadget',
    name: 'stable',
    entries: [
      { name: 'gadget.v1' },
      { name: 'gadget.v2', replaces: 'gadget.v1', skips: ['gadget.v0', 'gadget.v1'], skipRange: '<2.0.0' },
      { name: 'gadget.v3', replaces: 'gadget.v2', skips: ['gadget.v1', 'gone'] },
    ],
  },
  { schema: 'olm.channel', package: 'gadget', name: 'alpha', entries: [{ name: 'gadget.v2' }] },
  ...['v1', 'v2', 'v3'].map((version) => ({
    schema: 'olm.bundle',
    package: 'gadget',
    name: `gadget.${version}`,
    image: version === 'v1' ? '' : `example.com/gadget:${version}`,
    relatedImages: [{ name: '', image: 'example.com/operator:1' }],
    properties: [
      { type: 'olm.package', value: { packageName: 'gadget', version: `${version.slice(1)}.0.0` } },
      { type: 'olm.gvk', value: { group: 'example.com', version: 'v1', kind: 'Widget' } },
      { type: 'olm.gvk.required', value: { group: 'other.com', version: 'v2', kind: 'Thing' } },
      { type: 'olm.package.required', value: { packageName: 'base', versionRange: '>=1.0.0 <2.0.0' } },
      { type: 'custom', value: { b: '<&>', a: [1, 'ü'] } },
      ...(version === 'v1'
        ? ['{"kind":"Service"}', 'kind: ClusterServiceVersion\nspec: {b: 1, a: "<"}\n'].map((text) => ({
            type: 'olm.bundle.object',
            value: { data: Buffer.from(text).toString('base64') },
          }))
        : [
            {
              type: 'olm.csv.metadata',
              value: { displayName: 'Gadget <&>', annotations: { b: '1', a: '2' } },
            },
          ]),
    ],
  })),
  {
    schema: 'olm.deprecations',
    package: 'gadget',
    entries: [
      { reference: { schema: 'olm.package' }, message: 'package is old' },
      { reference: { schema: 'olm.channel', name: 'alpha' }, message: 'alpha is old' },
      { reference: { schema: 'olm.bundle', name: 'gadget.v2' }, message: 'v2 is old' },
    ],
  },
  { schema: 'com.example', package: 'gadget', name: 'one', n: 1.5, list: [null, true, { deep: 'x' }] },
  { schema: 'com.example', package: 'gadget', name: 'two' },
  { schema: 'com.example', name: 'of no package' },
];

const filesOf = (blobs: object[]): Record<string, string> => ({
  'gadget/catalog.json': blobs.map((blob) => JSON.stringify(blob)).join('\n'),
});

async function open(
  directory: string,
  options: Partial<CatalogQueriesOptions> = {},
): Promise<FileCatalogQueries> {
  const catalog = new DirectoryCatalog(directory);
  onTestFinished(() => catalog.close());
  const temporaryDirectory = options.temporaryDirectory ?? (await directoryWith());
  const answers = await openCatalogQueries(catalog, { temporaryDirectory, now, ...options });
  onTestFinished(() => answers.close());
  return answers;
}

async function clientOf(answers: FileCatalogQueries, service?: string): Promise<RegistryClient> {
  const server = await startRegistryServer({ queries: answers, host: '127.0.0.1', port: 0 });
  const client = registryClient(server.port, service === undefined ? {} : { service });
  onTestFinished(async () => {
    client.close();
    await server.close();
  });
  return client;
}

async function serveGadget(options: Partial<CatalogQueriesOptions> = {}): Promise<RegistryClient> {
  return clientOf(await open(await directoryWith(filesOf(gadget)), options));
}

describe('serve/grpc/catalog-queries', () => {
  it('returns packages with channels, heads and deprecations', async () => {
    const client = await serveGadget();
    expect(await client.call('ListPackages')).toEqual([{ name: 'gadget' }]);
    expect(await client.call('GetPackage', { name: 'gadget' })).toEqual([
      {
        name: 'gadget',
        channels: [
          { name: 'alpha', csvName: 'gadget.v2', deprecation: { message: 'alpha is old' } },
          { name: 'stable', csvName: 'gadget.v3', deprecation: null },
        ],
        defaultChannelName: 'stable',
        deprecation: { message: 'package is old' },
      },
    ]);
  });

  it('returns all of a bundle except its upgrades', async () => {
    const client = await serveGadget();
    const request = { pkgName: 'gadget', channelName: 'stable', csvName: 'gadget.v2' };
    const [bundle] = await client.call('GetBundle', request);
    expect(bundle).toMatchObject({
      csvName: 'gadget.v2',
      packageName: 'gadget',
      channelName: 'stable',
      bundlePath: 'example.com/gadget:v2',
      version: '2.0.0',
      skipRange: '<2.0.0',
      replaces: '',
      skips: [],
      deprecation: { message: 'v2 is old' },
      providedApis: [{ ...widget, plural: '' }],
      requiredApis: [{ group: 'other.com', version: 'v2', kind: 'Thing', plural: '' }],
      dependencies: [
        { type: 'olm.gvk', value: '{"group":"other.com","kind":"Thing","version":"v2"}' },
        { type: 'olm.package', value: '{"packageName":"base","version":">=1.0.0 <2.0.0"}' },
      ],
    });
    expect((bundle?.['properties'] as { type: string }[]).map(({ type }) => type)).toEqual([
      'olm.package',
      'olm.gvk',
      'olm.gvk.required',
      'olm.package.required',
      'custom',
    ]);
    expect(bundle?.['properties']).toContainEqual({ type: 'custom', value: '{"a":[1,"ü"],"b":"<&>"}' });
  });

  it('synthesizes a ClusterServiceVersion from metadata, as upstream encodes it', async () => {
    const client = await serveGadget();
    const [bundle] = await client.call('GetBundle', {
      pkgName: 'gadget',
      channelName: 'alpha',
      csvName: 'gadget.v2',
    });
    const csv =
      '{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1",' +
      '"metadata":{"name":"gadget.v2","annotations":{"a":"2","b":"1"}},' +
      '"spec":{"install":{"strategy":"deployment","spec":{"deployments":null}},"version":"2.0.0",' +
      '"customresourcedefinitions":{},"apiservicedefinitions":{},' +
      '"displayName":"Gadget \\u003c\\u0026\\u003e","description":"Makes gadgets","provider":{},' +
      '"icon":[{"base64data":"PHN2Zy8+","mediatype":"image/svg+xml"}],"cleanup":{"enabled":false},' +
      '"relatedImages":[{"name":"","image":"example.com/operator:1"}]},"status":{"cleanup":{}}}';
    expect(bundle).toMatchObject({ csvJson: csv, object: [csv] });
  });

  it('sends the manifests of a bundle, YAML as JSON, and lists them only for bundles without an image', async () => {
    const client = await serveGadget();
    const csv = '{"kind":"ClusterServiceVersion","spec":{"a":"\\u003c","b":1}}';
    const manifests = { csvJson: csv, object: ['{"kind":"Service"}', csv] };
    const request = { pkgName: 'gadget', channelName: 'stable', csvName: 'gadget.v1' };
    expect((await client.call('GetBundle', request))[0]).toMatchObject(manifests);
    const listed = await client.call('ListBundles');
    expect(listed.map(({ channelName, csvName }) => [channelName, csvName])).toEqual([
      ['alpha', 'gadget.v2'],
      ['stable', 'gadget.v1'],
      ['stable', 'gadget.v2'],
      ['stable', 'gadget.v3'],
    ]);
    expect(listed[1]).toMatchObject(manifests);
    expect(listed[2]).toMatchObject({
      csvJson: '',
      object: [],
      replaces: 'gadget.v1',
      skips: ['gadget.v0', 'gadget.v1'],
    });
  });

  it('finds the bundles that replace a bundle', async () => {
    const client = await serveGadget();
    const entry = { packageName: 'gadget', channelName: 'stable' };
    expect(await client.call('GetChannelEntriesThatReplace', { csvName: 'gadget.v1' })).toEqual([
      { ...entry, bundleName: 'gadget.v2', replaces: 'gadget.v1' },
      { ...entry, bundleName: 'gadget.v3', replaces: 'gadget.v2' },
    ]);
    const request = { csvName: 'gadget.v2', pkgName: 'gadget', channelName: 'stable' };
    expect((await client.call('GetBundleThatReplaces', request))[0]).toMatchObject({ csvName: 'gadget.v3' });
  });

  it('finds the bundles that provide an API', async () => {
    const client = await serveGadget();
    const entry = (channelName: string, bundleName: string, replaces: string) => ({
      packageName: 'gadget',
      channelName,
      bundleName,
      replaces,
    });
    const all = await client.call('GetChannelEntriesThatProvide', { ...widget, plural: 'ignored' });
    expect(all).toEqual([
      entry('alpha', 'gadget.v2', ''),
      entry('stable', 'gadget.v1', ''),
      entry('stable', 'gadget.v2', 'gadget.v1'),
      entry('stable', 'gadget.v2', 'gadget.v0'),
      entry('stable', 'gadget.v3', 'gadget.v2'),
      entry('stable', 'gadget.v3', 'gadget.v1'),
      entry('stable', 'gadget.v3', 'gone'),
    ]);
    expect(await client.call('GetLatestChannelEntriesThatProvide', widget)).toEqual([
      entry('alpha', 'gadget.v2', ''),
      entry('stable', 'gadget.v3', 'gadget.v2'),
      entry('stable', 'gadget.v3', 'gadget.v1'),
    ]);
    const [bundle] = await client.call('GetDefaultBundleThatProvides', widget);
    expect(bundle).toMatchObject({ csvName: 'gadget.v3', channelName: 'stable' });
  });

  it.each([
    ['GetPackage', { name: 'x"' }, 'package "x\\"" not found'],
    ['GetBundle', { pkgName: 'x' }, 'package "x" not found'],
    ['GetBundle', { pkgName: 'gadget', channelName: 'x' }, 'package "gadget", channel "x" not found'],
    [
      'GetBundle',
      { pkgName: 'gadget', channelName: 'alpha', csvName: 'gadget.v1' },
      'package "gadget", channel "alpha", bundle "gadget.v1" not found',
    ],
    ['GetBundleForChannel', { pkgName: 'gadget', channelName: '' }, 'package "gadget", channel "" not found'],
    ['GetBundleThatReplaces', { pkgName: 'x' }, 'package x not found'],
    [
      'GetBundleThatReplaces',
      { csvName: 'x', pkgName: 'gadget', channelName: 'alpha' },
      'no entry found for package "gadget", channel "alpha"',
    ],
    ['GetChannelEntriesThatReplace', { csvName: 'x' }, 'no channel entries found that replace x'],
    [
      'GetChannelEntriesThatProvide',
      { group: 'g', kind: 'k' },
      'no channel entries found that provide group:"g" version:"" kind:"k"',
    ],
    [
      'GetDefaultBundleThatProvides',
      { group: 'g', version: 'v', kind: 'k' },
      'no channel entries found that provide group:"g" version:"v" kind:"k"',
    ],
  ])('%s of what is not there is unknown: %j', async (method, request, message) => {
    const client = await serveGadget();
    expect(await client.failure(method, request)).toBe(`2: ${message}`);
  });

  it('returns custom schemas to clients that acknowledge the experimental API', async () => {
    const answers = await open(await directoryWith(filesOf(gadget)));
    const client = await clientOf(answers, 'api.ExperimentalRegistry');
    const method = 'ExperimentalListPackageCustomSchemas';
    const known = { 'x-acknowledge-experimental': 'true' };
    const request = { schema: 'com.example', packageName: 'gadget' };
    const found = await client.call(method, request, known);
    expect(found).toHaveLength(2);
    const text = (value: string) => ({ stringValue: value });
    expect(found[0]).toMatchObject({
      fields: {
        schema: text('com.example'),
        package: text('gadget'),
        name: text('one'),
        n: { numberValue: 1.5 },
        list: {
          listValue: {
            values: [
              { nullValue: 'NULL_VALUE' },
              { boolValue: true },
              { structValue: { fields: { deep: text('x') } } },
            ],
          },
        },
      },
    });
    expect(await client.call(method, { schema: 'com.example' }, known)).toHaveLength(1);
    expect(await client.call(method, { schema: 'olm.package' }, known)).toEqual([]);
    expect(await client.call(method, request)).toEqual([]);
    expect(await client.call(method, request, { 'x-acknowledge-experimental': 'yes' })).toEqual([]);
    expect(await client.failure(method, {}, known)).toBe('3: schema is required');
    expect(await client.failure(method, { schema: 'a/b' }, known)).toMatch(
      /^3: invalid custom schema query: invalid schema "a\/b"/,
    );
    expect(await client.failure(method, { schema: 'a', packageName: 'b c' }, known)).toMatch(
      /^3: invalid custom schema query: invalid packageName "b c"/,
    );
  });

  it('refuses an invalid catalog with all of its faults', async () => {
    const blobs = [...gadget, { schema: 'olm.bundle', name: 1 }, { schema: 'olm.channel', entries: 'x' }];
    const opening = open(await directoryWith(filesOf(blobs)));
    const error: unknown = await opening.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'INVALID' });
    expect((error as { cause: AggregateError }).cause.errors).toHaveLength(2);
    const headless = gadget.filter(({ schema }) => schema !== 'olm.channel');
    await expect(open(await directoryWith(filesOf(headless)))).rejects.toMatchObject({ code: 'INVALID' });
  });

  it('refuses a bundle with two olm.csv.metadata, which upstream cannot serve', async () => {
    const twice = gadget.map((blob) =>
      'properties' in blob && blob.name === 'gadget.v3'
        ? { ...blob, properties: [...blob.properties, { type: 'olm.csv.metadata', value: {} }] }
        : blob,
    );
    await expect(open(await directoryWith(filesOf(twice)))).rejects.toThrow(
      'package "gadget", bundle "gadget.v3": expected at most 1 property of type "olm.csv.metadata", got 2',
    );
  });

  it('keeps serving after the catalog is removed, once all bundles are encoded', async () => {
    const directory = await directoryWith(filesOf(gadget));
    const answers = await open(directory);
    expect(await answers.encoded).toMatchObject({ isCached: false });
    await rm(directory, { recursive: true });
    expect((await answers.getBundle('gadget', 'stable', 'gadget.v1')).length).toBeGreaterThan(100);
  });

  it('needs no directory for temporary files', async () => {
    const client = await serveGadget({ temporaryDirectory: '/nonexistent/directory' });
    expect(await client.call('ListBundles')).toHaveLength(4);
    const request = { pkgName: 'gadget', channelName: 'stable', csvName: 'gadget.v3' };
    expect((await client.call('GetBundle', request))[0]).toMatchObject({ csvName: 'gadget.v3' });
  });
});

describe('serve/grpc/catalog-queries with a cache', () => {
  const messages = (): { logger: Logger; said: string[] } => {
    const said: string[] = [];
    return {
      logger: { log: (level, text) => void said.push(`${level}: ${text}`), progress: () => undefined },
      said,
    };
  };
  const cachesIn = async (directory: string): Promise<string[]> =>
    (await readdir(directory)).filter((name) => name.endsWith('.cache'));

  /** A catalog and a cache of it. */
  async function cached(): Promise<{ catalog: string; cache: string; file: string; list: Uint8Array[] }> {
    const catalog = await directoryWith(filesOf(gadget));
    const cache = path.join(await directoryWith(), 'new', 'cache');
    const answers = await open(catalog, { cacheDirectory: cache });
    expect(await answers.encoded).toEqual({ isCached: true });
    const [name] = await cachesIn(cache);
    return { catalog, cache, file: path.join(cache, name as string), list: await all(answers) };
  }

  async function all(answers: FileCatalogQueries): Promise<Uint8Array[]> {
    const rows: Uint8Array[] = [];
    for await (const row of answers.listBundles()) rows.push(row);
    for (const name of ['gadget.v1', 'gadget.v2', 'gadget.v3']) {
      rows.push(await answers.getBundle('gadget', 'stable', name));
    }
    for await (const blob of answers.listCustomSchemas?.('com.example', 'gadget') ?? []) {
      rows.push(Buffer.from(JSON.stringify(blob)));
    }
    return rows;
  }

  it('returns the same from the cache, which every user can read', async () => {
    const { catalog, cache, file, list } = await cached();
    const { logger, said } = messages();
    const again = await open(catalog, { cacheDirectory: cache, requireCache: true, logger });
    expect(await all(again)).toEqual(list);
    expect(said).toEqual([]);
    expect((await stat(file)).mode & 0o777).toBe(0o644);
    expect((await readdir(cache)).length).toBe(1);
  });

  it('does not serve the cache of another content', async () => {
    const { catalog, cache } = await cached();
    await writeFile(
      path.join(catalog, 'more.json'),
      JSON.stringify({ schema: 'com.example', package: 'gadget' }),
    );
    const demanding = open(catalog, { cacheDirectory: cache, requireCache: true });
    await expect(demanding).rejects.toThrow('integrity check failed');
    const changed = await open(catalog, { cacheDirectory: cache });
    expect(await all(changed)).toHaveLength(10);
    expect(await changed.encoded).toEqual({ isCached: true });
    expect(await cachesIn(cache)).toHaveLength(2);
  });

  /** Long after the files of a test were written. */
  const later = () => new Date(Date.now() + 60_000);
  const statesIn = async (directory: string): Promise<string[]> =>
    (await readdir(directory)).filter((name) => name.endsWith('.state'));

  it('does not hash unchanged files again, unless integrity is enforced', async () => {
    const cache = await directoryWith();
    const [catalog, other] = [
      await directoryWith(filesOf(gadget)),
      await directoryWith(filesOf(gadget.slice(0, -1))),
    ];
    const expected: Uint8Array[][] = [];
    const states: string[] = [];
    for (const directory of [catalog, other]) {
      const answers = await open(directory, { cacheDirectory: cache, now: later });
      expect(await answers.encoded).toEqual({ isCached: true });
      expected.push(await all(answers));
      states.push((await statesIn(cache)).find((name) => !states.includes(name)) as string);
    }
    // A state beside the wrong cache shows that it is believed.
    await copyFile(path.join(cache, states[0] as string), path.join(cache, states[1] as string));
    await rm(path.join(cache, states[0] as string));
    expect(await all(await open(catalog, { cacheDirectory: cache }))).toEqual(expected[1]);
    const enforced = await open(catalog, { cacheDirectory: cache, requireCache: true });
    expect(await all(enforced)).toEqual(expected[0]);
  });

  it('hashes files again that changed without a change of size and time', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const cache = await directoryWith();
    const answers = await open(catalog, { cacheDirectory: cache, now: later });
    expect(await answers.encoded).toEqual({ isCached: true });
    expect(await statesIn(cache)).toHaveLength(1);
    const file = path.join(catalog, 'gadget/catalog.json');
    const { atime, mtime } = await stat(file);
    await writeFile(file, (await readFile(file, 'utf8')).replaceAll('gadget.v3', 'gadget.v9'));
    await utimes(file, atime, mtime);
    const changed = await open(catalog, { cacheDirectory: cache });
    expect((await changed.getBundle('gadget', 'stable', 'gadget.v9')).length).toBeGreaterThan(100);
  });

  it('does not record the state of files that have just changed', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const cache = await directoryWith();
    const answers = await open(catalog, { cacheDirectory: cache, now: () => new Date() });
    expect(await answers.encoded).toEqual({ isCached: true });
    expect(await statesIn(cache)).toEqual([]);
    await (await open(catalog, { cacheDirectory: cache, now: later })).close();
    expect(await statesIn(cache)).toHaveLength(1);
  });

  it('reads state files with any content', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const name = `opmate-${'0'.repeat(64)}.state`;
    const cache = await directoryWith({ [name]: `\n${'x'.repeat(100_000)}` });
    const answers = await open(catalog, { cacheDirectory: cache, now: later });
    expect(await answers.encoded).toEqual({ isCached: true });
    expect(await statesIn(cache)).toHaveLength(1);
    expect(await statesIn(cache)).not.toContain(name);
  });

  it('creates a truncated or changed cache again, and never serves damaged records', async () => {
    const { catalog, cache, file, list } = await cached();
    const whole = await readFile(file);
    const damages = [
      whole.subarray(0, whole.length - 1),
      whole.subarray(0, 10),
      Buffer.alloc(0),
      ...Array.from({ length: 12 }, (_, i) => {
        const bytes = Buffer.from(whole);
        const at = Math.floor((i * (whole.length - 1)) / 11);
        bytes[at] = (bytes[at] as number) ^ 1;
        return bytes;
      }),
    ];
    for (const bytes of damages) {
      await writeFile(file, bytes);
      const answers = await open(catalog, { cacheDirectory: cache });
      expect(await all(answers)).toEqual(list);
      await answers.encoded;
      await answers.close();
      const { logger, said } = messages();
      expect(await all(await open(catalog, { cacheDirectory: cache, requireCache: true, logger }))).toEqual(
        list,
      );
      expect(said).toEqual([]);
    }
  });

  it('creates the same cache for the same catalog', async () => {
    const files = [];
    for (let i = 0; i < 2; i++) {
      const cache = await directoryWith();
      const answers = await open(await directoryWith(filesOf(gadget)), { cacheDirectory: cache });
      expect(await answers.encoded).toEqual({ isCached: true });
      const [name] = await cachesIn(cache);
      files.push({ name, bytes: await readFile(path.join(cache, name as string)) });
    }
    expect(files[0]).toEqual(files[1]);
  });

  it('keeps caches of opm and other files', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const foreign = { 'pogreb.v1/digest': 'abc', digest: 'x', 'cache/a.json': '{}', 'opmate-x.cache': '?' };
    const cache = await directoryWith(foreign);
    expect(await (await open(catalog, { cacheDirectory: cache })).encoded).toEqual({ isCached: true });
    for (const [name, text] of Object.entries(foreign)) {
      expect(await readFile(path.join(cache, name), 'utf8')).toBe(text);
    }
  });

  it('serves without a cache and logs a warning if the directory is read-only', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const parent = await directoryWith({ file: '' });
    const { logger, said } = messages();
    const answers = await open(catalog, { cacheDirectory: path.join(parent, 'file'), logger });
    expect(await all(answers)).toHaveLength(9);
    expect(said.join('\n')).toMatch(/warn: cache .*file cannot be written/);
  });

  it('reads a cache in a read-only directory', async () => {
    const { catalog, cache, file, list } = await cached();
    await chmod(file, 0o444);
    await chmod(cache, 0o555);
    onTestFinished(() => chmod(cache, 0o755));
    expect(await all(await open(catalog, { cacheDirectory: cache, requireCache: true }))).toEqual(list);
  });

  it('can be created by two processes at the same time', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const cache = await directoryWith();
    const both = await Promise.all([1, 2].map(() => open(catalog, { cacheDirectory: cache })));
    const [one, two] = await Promise.all(both.map(all));
    expect(one).toEqual(two);
    for (const answers of both) expect(await answers.encoded).toEqual({ isCached: true });
    expect(await readdir(cache)).toHaveLength(1);
  });

  it('keeps no cache of a catalog that changes while it is read', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const cache = await directoryWith();
    const answers = await open(catalog, { cacheDirectory: cache });
    await mkdir(path.join(catalog, 'more'));
    await copyFile(path.join(catalog, 'gadget/catalog.json'), path.join(catalog, 'more/catalog.json'));
    expect(await answers.encoded).toMatchObject({ isCached: false });
    expect(await readdir(cache)).toEqual([]);
    expect(await all(answers)).toHaveLength(9);
  });

  it('keeps serving when the cache is removed', async () => {
    const { catalog, cache, list } = await cached();
    const answers = await open(catalog, { cacheDirectory: cache });
    await rm(cache, { recursive: true });
    expect(await all(answers)).toEqual(list);
  });

  it('keeps the cache of the previous content, and no older one', async () => {
    const catalog = await directoryWith(filesOf(gadget));
    const cache = await directoryWith();
    for (const name of ['a', 'b', 'c']) {
      await writeFile(path.join(catalog, 'more.json'), JSON.stringify({ schema: name }));
      const answers = await open(catalog, { cacheDirectory: cache });
      await answers.encoded;
      await answers.close();
    }
    expect(await cachesIn(cache)).toHaveLength(2);
  });
});
