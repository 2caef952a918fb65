import { readFile, readdir } from 'node:fs/promises';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readDisplayNames, collectFacts } from '../../../../src/catalog/facts.js';
import type { Meta } from '../../../../src/catalog/meta.js';
import { OpmateError } from '../../../../src/core/errors.js';
import { validateCatalog } from '../../../../src/graph/validate.js';
import { type SqliteCatalog, openSqliteCatalog } from '../../../../src/sqlite/read/catalog.js';
import { indexFile } from '../../../support/index-file.js';
import { directoryWith } from '../../../support/temporary.js';

async function catalogOf(file: string): Promise<SqliteCatalog> {
  const temporaryDirectory = await directoryWith();
  const catalog = await openSqliteCatalog(
    file,
    { temporaryDirectory, now: () => new Date() },
    { name: 'db' },
  );
  onTestFinished(async () => {
    await catalog.close();
    expect(await readdir(temporaryDirectory)).toEqual([]);
  });
  return catalog;
}

async function metasOf(catalog: SqliteCatalog, options = {}): Promise<Meta[]> {
  const metas: Meta[] = [];
  for await (const meta of catalog.metas(options)) metas.push(meta);
  return metas;
}

async function failureOf(...statements: string[]): Promise<OpmateError> {
  const catalog = await catalogOf(await indexFile(...statements));
  const error: unknown = await metasOf(catalog).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(OpmateError);
  expect((error as OpmateError).message).toMatch(/^db: /);
  return error as OpmateError;
}

const edit = (set: string, version = '1.2.0'): string =>
  `UPDATE operatorbundle SET ${set} WHERE name = 'widget.v${version}'`;
const property = (type: string, value: string, version = '1.2.0'): string =>
  `INSERT INTO properties (type, value, operatorbundle_name) VALUES ('${type}', '${value}', 'widget.v${version}')`;
const dependency = (type: string, value: string): string =>
  property(type, value).replace('properties', 'dependencies');

describe('sqlite/catalog', () => {
  it('makes the blobs of an index, package by package, and each again when it is asked for', async () => {
    const file = await indexFile();
    const before = await readFile(file);
    const catalog = await catalogOf(file);
    const metas = await metasOf(catalog);
    expect(metas.map(({ schema, name }) => `${schema} ${name}`)).toEqual([
      'olm.package ',
      'olm.channel beta',
      'olm.channel stable',
      'olm.bundle widget.v1.0.0',
      'olm.bundle widget.v1.1.0',
      'olm.bundle widget.v1.2.0',
    ]);
    expect(metas[0]?.value).toEqual({
      schema: 'olm.package',
      name: 'widget',
      defaultChannel: 'stable',
      icon: { base64data: 'aWNvbg==', mediatype: 'image/png' },
    });
    expect(metas[2]?.value['entries']).toEqual([
      { name: 'widget.v1.0.0' },
      { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' },
      {
        name: 'widget.v1.2.0',
        replaces: 'widget.v1.1.0',
        skips: ['widget.v1.1.1'],
        skipRange: '<1.2.0',
      },
    ]);
    const bundle = metas[5]?.value as unknown as Record<'properties' | 'relatedImages', object[]>;
    expect(bundle.properties.map((one) => (one as { type: string }).type)).toEqual([
      'olm.bundle.object',
      'olm.bundle.object',
      'olm.gvk',
      'olm.package',
    ]);
    expect(bundle.relatedImages).toEqual([
      { name: '', image: 'quay.io/widget/bundle:1.2.0' },
      { name: 'operand', image: 'quay.io/widget/operand:1.2.0' },
    ]);
    for (const meta of metas.reverse()) {
      expect(await catalog.read(meta.origin)).toEqual(meta.value);
      expect(JSON.parse(String(await catalog.readText(meta.origin)))).toEqual(meta.value);
    }
    expect(await readFile(file)).toEqual(before);
  });

  it('gives facts that validate, without manifests, and the names that manifests know', async () => {
    const catalog = await catalogOf(await indexFile(edit("csv = 'no manifest'")));
    const facts = await collectFacts(catalog);
    expect(validateCatalog(facts).passed).toBe(true);
    expect(facts.bundles.map(({ objectCount }) => objectCount)).toEqual([2, 0, 0]);
    const names = await readDisplayNames(catalog, facts);
    expect([...names]).toEqual([['widget', 'Widget']]);
    await expect(collectFacts(catalog, { withoutManifests: false })).rejects.toThrow(/not JSON/);
  });

  it('leaves deprecated bundles out', async () => {
    const catalog = await catalogOf(await indexFile(property('olm.deprecated', '{}', '1.0.0')));
    const metas = await metasOf(catalog);
    expect(metas.filter(({ schema }) => schema === 'olm.bundle')).toHaveLength(2);
    const gone = await failureOf(property('olm.deprecated', '{}'));
    expect(gone.message).toContain('invalid channel "beta":\n        └── channel must contain at least one');
  });

  it('keeps constraints and labels, and values as they are written', async () => {
    const catalog = await catalogOf(
      await indexFile(
        dependency('olm.constraint', '{"failureMessage":"f","cel":{"rule":"a \\u003e b"}}'),
        dependency('olm.label', '{"label":"l"}'),
        dependency('olm.package', '{"packageName":"p","version":"\\u003e1.0.0"}'),
        dependency('olm.gvk', '{"group":"g","kind":"k","version":"v"}'),
        property('custom', '{ "b": 1, "a": [2] }'),
      ),
    );
    const [bundle] = (await metasOf(catalog)).filter(({ name }) => name === 'widget.v1.2.0');
    const text = String(await catalog.readText((bundle as Meta).origin)).replace(/\s+/g, ' ');
    expect(text).toContain('{ "failureMessage": "f", "cel": { "rule": "a \\u003e b" } }');
    expect(text).toContain('{ "type": "olm.label", "value": { "label": "l" } }');
    expect(text).toContain('{ "packageName": "p", "versionRange": ">1.0.0" }');
    expect(text).toContain('"olm.gvk.required"');
    expect(text).toContain('{ "b": 1, "a": [ 2 ] }');
  });

  it('counts the package of a bundle once, with or without a release', async () => {
    const value = '{"packageName":"widget","version":"1.2.0","release":"2"}';
    const catalog = await catalogOf(await indexFile(property('olm.package', value)));
    const facts = await collectFacts(catalog);
    expect(facts.bundles[2]?.packageProperties).toMatchObject([{ version: '1.2.0', release: '2' }]);
  });

  it('finds what old migrations have lost', async () => {
    const catalog = await catalogOf(
      await indexFile(
        'UPDATE operatorbundle SET version = NULL, skiprange = NULL',
        "UPDATE operatorbundle SET bundlepath = NULL WHERE name = 'widget.v1.0.0'",
        "DELETE FROM properties WHERE operatorbundle_name = 'widget.v1.2.0'",
      ),
    );
    const facts = await collectFacts(catalog);
    expect(facts.bundles.map(({ packageProperties }) => packageProperties[0]?.version)).toEqual([
      '1.0.0',
      '1.1.0',
      '1.2.0',
    ]);
  });

  it.each([
    ["UPDATE package SET default_channel = 'x'", 'default channel "x" not found in channels list'],
    ['UPDATE package SET default_channel = NULL', 'default channel must be set'],
    ['DELETE FROM channel; DELETE FROM channel_entry', 'package must contain at least one channel'],
    ['DELETE FROM channel_entry WHERE entry_id = 6', 'channel must contain at least one bundle'],
    ['UPDATE channel_entry SET replaces = 1 WHERE entry_id = 5', 'no channel head found in graph'],
    ['DELETE FROM channel_entry WHERE entry_id = 4', 'multiple channel heads found in graph'],
    ['UPDATE channel_entry SET replaces = 4 WHERE entry_id = 5', 'detected cycle in replaces chain'],
    [
      edit("version = '1.1.0'"),
      'duplicate versions found in bundles: [{1.1.0: [widget.v1.1.0, widget.v1.2.0]}]',
    ],
    [edit("skiprange = '^1'"), 'invalid skipRange "^1"'],
    [edit("bundlepath = ''", '1.1.0'), 'bundle image must be set'],
    [property('olm.package', '{"packageName":"other","version":"1.2.0"}'), 'must be exactly one property'],
    [property('olm.package', '[]'), 'parse property['],
    [property('x', '{bad'), 'parse property['],
    ["UPDATE channel_entry SET operatorbundle_name = '' WHERE entry_id = 2", 'skip[0] is empty'],
  ])('refuses %s', async (statement, message) => {
    const { message: text } = await failureOf(statement);
    expect(text).toMatch(/^db: invalid index:\n└── invalid package "widget":\n/);
    expect(text).toContain(message);
  });

  it.each([
    [edit("version = 'x'"), 'package "widget", bundle "widget.v1.2.0": parse version "x": '],
    [edit('bundle = \'{"kind":\''), 'package "widget", bundle "widget.v1.2.0": its manifests are not JSON: '],
    [edit("bundle = x'7bff7d'"), 'package "widget", bundle "widget.v1.2.0": its manifests are not JSON: '],
    [edit("bundle = '[] 1'"), 'package "widget", bundle "widget.v1.2.0": no csv in bundle'],
    [edit("csv = '{'"), 'package "widget", bundle "widget.v1.2.0": its manifests are not JSON: '],
    [property('olm.gvk', '{"group":1}'), 'package "widget", bundle "widget.v1.2.0": convert properties: '],
    ["UPDATE channel SET name = NULL WHERE name = 'beta'", 'package "widget": unknown channel "beta"'],
    ['DELETE FROM package', 'unknown package "widget" for bundle "widget.v1.2.0"'],
    ['UPDATE channel_entry SET package_name = NULL', 'unknown package "" for bundle "widget.v1.2.0"'],
  ])('names the place of %s', async (statement, message) => {
    expect((await failureOf(statement)).message).toContain(message);
  });

  it.each([
    ['numbers for names', "UPDATE operatorbundle SET substitutesfor = 0, replaces = 1.5, skips = x'00'"],
    ['texts for bytes', 'UPDATE operatorbundle SET csv = CAST(csv AS TEXT), bundle = CAST(bundle AS TEXT)'],
    ['bytes for texts', 'UPDATE properties SET type = CAST(type AS BLOB), value = CAST(value AS BLOB)'],
    ['a head without manifests', edit('csv = NULL, bundle = NULL')],
    ['an entry that refers to nothing', 'UPDATE channel_entry SET replaces = 99 WHERE entry_id = 5'],
    ['objects across lines', edit("bundle = replace(CAST(bundle AS TEXT), ',', ', ' || char(10))")],
    ['an icon that is none', edit(`csv = '{"spec":{"icon":[{"base64data":"%%%"}]}}'`)],
    [
      'bundles without names',
      "INSERT INTO operatorbundle (name, version) VALUES (NULL, '1.0.0'), (NULL, NULL)",
    ],
  ])('reads %s', async (_what, statement) => {
    const metas = await metasOf(await catalogOf(await indexFile(statement)));
    expect(metas).toHaveLength(6);
  });

  it('hands faults of blobs to who takes them, and leaves the graph to validation', async () => {
    const statements = [property('x', '{bad'), "UPDATE package SET default_channel = 'x'"];
    const catalog = await catalogOf(await indexFile(...statements));
    const faults: string[] = [];
    const metas = await metasOf(catalog, { onFault: ({ message }: OpmateError) => faults.push(message) });
    expect(metas).toHaveLength(5);
    expect(faults).toEqual([
      expect.stringContaining('bundle "widget.v1.2.0": parse property[4] of type "x"'),
    ]);
  });

  it('notices that the index changes between reads', async () => {
    const file = await indexFile();
    const catalog = await catalogOf(file);
    const [first] = await metasOf(catalog);
    const other = new Sqlite(file);
    other.exec("UPDATE package SET default_channel = 'beta'");
    other.close();
    await expect(catalog.read((first as Meta).origin)).rejects.toMatchObject({
      code: 'IO',
      message: 'db: changed by another process while reading',
    });
  });

  it('stops when cancelled', async () => {
    const catalog = await catalogOf(await indexFile());
    await expect(metasOf(catalog, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'CANCELLED',
    });
  });
});
