import { chmod, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RegistryQueries } from '../../../../src/serve/grpc/registry-queries.js';
import { startRegistryServer } from '../../../../src/serve/grpc/server.js';
import { openSqliteQueries } from '../../../../src/serve/grpc/sqlite-queries.js';
import { openDatabase } from '../../../../src/sqlite/schema/database.js';
import { migrateDatabase } from '../../../../src/sqlite/schema/schema.js';
import { indexFile } from '../../../support/index-file.js';
import { fillOldIndex } from '../../../support/old-index.js';
import { type RegistryClient, registryClient } from '../../../support/registry-client.js';
import { directoryWith } from '../../../support/temporary.js';

const widget = { group: 'w.io', version: 'v1', kind: 'Widget' };
const stable = { pkgName: 'widget', channelName: 'stable' };
const newest = { ...stable, csvName: 'widget.v1.2.0' };

async function open(file: string): Promise<RegistryQueries> {
  const answers = await openSqliteQueries(
    file,
    {
      temporaryDirectory: await directoryWith(),
      now: () => new Date('2026-01-01T00:00:00Z'),
    },
    { name: 'index.db' },
  );
  onTestFinished(() => answers.close());
  return answers;
}

/** A client of a server of a database file. */
async function serveFile(file: string): Promise<RegistryClient> {
  const server = await startRegistryServer({ queries: await open(file), host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const client = registryClient(server.port);
  onTestFinished(() => client.close());
  return client;
}

/** A client of a server of the small index, changed by statements. */
async function serve(...statements: string[]): Promise<RegistryClient> {
  return serveFile(await indexFile(...statements));
}

type Row = Record<string, unknown>;

const shortEntry = (row: Row): string =>
  `${String(row['packageName'])} ${String(row['channelName'])} ${String(row['bundleName'])} > ${String(row['replaces'])}`;

/** What a list says of each bundle, without manifests. */
const shortBundle = (row: Row): string =>
  `${String(row['channelName'])} ${String(row['csvName'])} > ${String(row['replaces'])} [${String(row['skips'])}] ${(row['object'] as []).length}`;

describe('serve/grpc/sqlite-queries', () => {
  it('returns packages with their channels', async () => {
    const client = await serve("INSERT INTO package VALUES ('alone', 'x'), (NULL, 'y')");
    expect(await client.call('ListPackages')).toEqual([{ name: 'alone' }, { name: 'widget' }]);
    expect(await client.call('GetPackage', { name: 'widget' })).toEqual([
      {
        name: 'widget',
        channels: [
          { name: 'beta', csvName: 'widget.v1.2.0', deprecation: null },
          { name: 'stable', csvName: 'widget.v1.2.0', deprecation: null },
        ],
        defaultChannelName: 'stable',
        deprecation: null,
      },
    ]);
    expect(await client.failure('GetPackage', { name: 'alone' })).toBe('2: package alone not found');
    expect(await client.failure('GetPackage', { name: 'no' })).toBe('2: package no not found');
  });

  it('returns a bundle with its manifests, without its upgrades', async () => {
    const client = await serve(
      "INSERT INTO api VALUES ('w.io', 'v1', 'Widget', 'widgets')",
      `INSERT INTO dependencies VALUES ('olm.gvk', '{"group":"g","kind":"K","version":"v2"}', 'widget.v1.2.0', '1.2.0', 'quay.io/widget/bundle:1.2.0')`,
      "INSERT INTO dependencies VALUES ('olm.package', '{}', 'widget.v1.2.0', '1.2.0', 'quay.io/widget/bundle:1.2.0')",
    );
    const [bundle] = await client.call('GetBundle', newest);
    const object = bundle?.['object'] as string[];
    expect(object.map((text) => (JSON.parse(text) as Row)['kind'])).toEqual([
      'ClusterServiceVersion',
      'Service',
    ]);
    expect({ ...bundle, object: undefined }).toEqual({
      csvName: 'widget.v1.2.0',
      packageName: 'widget',
      channelName: 'stable',
      csvJson: object[0],
      object: undefined,
      bundlePath: 'quay.io/widget/bundle:1.2.0',
      providedApis: [{ ...widget, plural: 'widgets' }],
      requiredApis: [{ group: 'g', version: 'v2', kind: 'K', plural: '' }],
      version: '1.2.0',
      skipRange: '<1.2.0',
      dependencies: [
        { type: 'olm.gvk', value: '{"group":"g","kind":"K","version":"v2"}' },
        { type: 'olm.package', value: '{}' },
      ],
      properties: [
        { type: 'olm.package', value: '{"packageName":"widget","version":"1.2.0"}' },
        { type: 'olm.gvk', value: '{"group":"w.io","kind":"Widget","version":"v1"}' },
      ],
      replaces: '',
      skips: [],
      deprecation: null,
    });
  });

  it('returns a bundle without manifests by its image', async () => {
    const client = await serve();
    const [bundle] = await client.call('GetBundle', { ...stable, csvName: 'widget.v1.1.0' });
    expect(bundle).toMatchObject({ csvJson: '', object: [], bundlePath: 'quay.io/widget/bundle:1.1.0' });
    const emptied = await serve("UPDATE operatorbundle SET bundle = NULL WHERE name = 'widget.v1.2.0'");
    expect(await emptied.call('GetDefaultBundleThatProvides', widget)).toMatchObject([
      { csvName: 'widget.v1.2.0', csvJson: '', object: [], version: '1.2.0' },
    ]);
  });

  it('reports missing entries with the messages of opm', async () => {
    const client = await serve();
    const none = { group: 'a', version: 'v1', kind: 'X' };
    // Skipped, and not in the index; in another channel; in no package.
    for (const [request, said] of [
      [{ ...stable, csvName: 'widget.v1.1.1' }, 'widget stable widget.v1.1.1'],
      [{ ...stable, channelName: 'beta', csvName: 'widget.v1.1.0' }, 'widget beta widget.v1.1.0'],
      [{ pkgName: 'x', channelName: 'y', csvName: 'z' }, 'x y z'],
    ] as const) {
      expect(await client.failure('GetBundle', request)).toBe(`2: no entry found for ${said}`);
    }
    const noChannel = { pkgName: 'widget', channelName: 'x' };
    expect(await client.failure('GetBundleForChannel', noChannel)).toBe('2: no entry found for widget x');
    expect(await client.failure('GetBundleThatReplaces', newest)).toBe('2: no entry found for widget stable');
    expect(await client.failure('GetChannelEntriesThatReplace', { csvName: 'z' })).toBe(
      '2: no channel entries found that replace z',
    );
    for (const method of ['GetChannelEntriesThatProvide', 'GetLatestChannelEntriesThatProvide']) {
      expect(await client.failure(method, none)).toBe('2: no channel entries found that provide a v1 X');
    }
    expect(await client.failure('GetDefaultBundleThatProvides', none)).toBe(
      '2: no entry found that provides a v1 X',
    );
  });

  it('returns name and stored CSV of the channel head only', async () => {
    const client = await serve();
    const [head] = await client.call('GetBundleForChannel', stable);
    expect(head).toMatchObject({ csvName: 'widget.v1.2.0', packageName: '', bundlePath: '', properties: [] });
    expect(head?.['csvJson']).toMatch(/^\{.*\}\n$/);
    const without = await serve('UPDATE operatorbundle SET csv = NULL');
    expect(await without.call('GetBundleForChannel', stable)).toMatchObject([{ csvJson: '' }]);
    const headless = await serve("UPDATE channel SET head_operatorbundle_name = 'gone'");
    expect(await headless.failure('GetBundleForChannel', stable)).toBe('2: no entry found for widget stable');
  });

  it('returns the entries that replace or skip a bundle, in the index or not', async () => {
    const client = await serve();
    const replacing = async (csvName: string): Promise<string[]> =>
      (await client.call('GetChannelEntriesThatReplace', { csvName })).map(shortEntry);
    expect(await replacing('widget.v1.1.0')).toEqual(['widget stable widget.v1.2.0 > widget.v1.1.0']);
    expect(await replacing('widget.v1.1.1')).toEqual(['widget stable widget.v1.2.0 > widget.v1.1.1']);
    for (const csvName of ['widget.v1.1.0', 'widget.v1.1.1']) {
      expect(await client.call('GetBundleThatReplaces', { ...stable, csvName })).toMatchObject([
        { csvName: 'widget.v1.2.0', channelName: 'stable' },
      ]);
    }
  });

  it('returns the first stored of several bundles that replace a bundle', async () => {
    const second = "INSERT INTO channel_entry VALUES (0, 'stable', 'widget', 'widget.v1.0.0', 4, 9)";
    const client = await serve(second);
    expect(await client.call('GetBundleThatReplaces', { ...stable, csvName: 'widget.v1.1.0' })).toMatchObject(
      [{ csvName: 'widget.v1.0.0' }],
    );
  });

  it('returns the providers of an API: one entry per edge, or the nearest to the heads', async () => {
    const client = await serve();
    const all = await client.call('GetChannelEntriesThatProvide', widget);
    expect(all.map(shortEntry)).toEqual([
      'widget beta widget.v1.2.0 > ',
      'widget stable widget.v1.0.0 > ',
      'widget stable widget.v1.1.0 > widget.v1.0.0',
      'widget stable widget.v1.2.0 > widget.v1.1.0',
      'widget stable widget.v1.2.0 > widget.v1.1.1',
    ]);
    const latest = await client.call('GetLatestChannelEntriesThatProvide', { ...widget, plural: 'ignored' });
    expect(latest.map(shortEntry)).toEqual([
      'widget beta widget.v1.2.0 > ',
      'widget stable widget.v1.2.0 > widget.v1.1.0',
    ]);
    expect(await client.call('GetDefaultBundleThatProvides', widget)).toMatchObject([
      { csvName: 'widget.v1.2.0', channelName: 'stable' },
    ]);
  });

  it.each([
    ['stored as bytes', 'UPDATE properties SET value = CAST(value AS BLOB)'],
    [
      'written in another order',
      `UPDATE properties SET value = '{"version": "v1", "kind": "Widget", "group": "w.io"}' WHERE type = 'olm.gvk'`,
    ],
  ])('finds an API that is %s', async (_how, statement) => {
    const client = await serve(statement);
    const latest = await client.call('GetLatestChannelEntriesThatProvide', widget);
    expect(latest.map(shortEntry)).toHaveLength(2);
    const [bundle] = await client.call('GetBundle', newest);
    expect(bundle?.['providedApis']).toEqual([{ ...widget, plural: '' }]);
  });

  it('treats an invalid API as any other property', async () => {
    const values = ['{', '[1]', '{"group":1}', '{}', 'null'];
    const client = await serve(
      ...values.map(
        (value) => `INSERT INTO properties VALUES ('olm.gvk', '${value}', 'widget.v1.2.0', NULL, NULL)`,
      ),
      "INSERT INTO properties VALUES ('x', NULL, 'widget.v1.2.0', NULL, NULL)",
    );
    const [bundle] = await client.call('GetBundle', newest);
    expect(bundle?.['properties']).toHaveLength(2 + values.length + 1);
    const empty = { group: '', version: '', kind: '', plural: '' };
    expect(bundle?.['providedApis']).toEqual([{ ...widget, plural: '' }, empty, empty]);
  });

  it('lists every bundle of every channel, manifests only where there is no image', async () => {
    const client = await serve(
      `INSERT INTO dependencies VALUES ('olm.gvk', '{"group":"g","kind":"K","version":"v"}', 'widget.v1.2.0', '', '')`,
      `INSERT INTO dependencies VALUES ('olm.gvk', '{"group":"g","kind":"K","version":"v"}', 'widget.v1.2.0', '', '')`,
      "INSERT INTO api VALUES ('w.io', 'v1', 'Widget', 'widgets')",
    );
    const rows = await client.call('ListBundles');
    expect(rows.map(shortBundle)).toEqual([
      'stable widget.v1.0.0 >  [] 2',
      'stable widget.v1.1.0 > widget.v1.0.0 [] 0',
      'beta widget.v1.2.0 >  [] 0',
      'stable widget.v1.2.0 > widget.v1.1.0 [widget.v1.1.1] 0',
    ]);
    expect(rows[0]?.['csvJson']).toMatch(/^\{.*\}$/);
    const plain = { group: 'g', version: 'v', kind: 'K', plural: '' };
    expect(rows[3]).toMatchObject({
      packageName: 'widget',
      version: '1.2.0',
      skipRange: '<1.2.0',
      providedApis: [{ ...widget, plural: '' }],
      requiredApis: [plain, plain],
      dependencies: [{ type: 'olm.gvk' }],
      properties: [{ type: 'olm.package' }, { type: 'olm.gvk' }],
    });
  });

  it('lists many packages, more bundles than are read at once, and names with commas', async () => {
    const statements = ['a', 'b'].flatMap((name) => [
      `INSERT INTO operatorbundle (name, bundlepath) WITH RECURSIVE n(i) AS (SELECT 0 UNION SELECT i + 1 FROM n WHERE i < 149)
       SELECT printf('${name}.%03d', i), 'image' FROM n`,
      `INSERT INTO channel_entry (channel_name, package_name, operatorbundle_name, depth)
       SELECT 'c', '${name}', name, 0 FROM operatorbundle WHERE name LIKE '${name}.%'`,
    ]);
    const client = await serve(
      ...statements,
      "UPDATE channel_entry SET operatorbundle_name = 'x,y' WHERE operatorbundle_name = 'widget.v1.1.1'",
    );
    const rows = await client.call('ListBundles');
    expect(rows).toHaveLength(304);
    expect(rows.map((row) => String(row['csvName'])).slice(0, 300)).toEqual(
      ['a', 'b'].flatMap((name) =>
        Array.from({ length: 150 }, (_, i) => `${name}.${String(i).padStart(3, '0')}`),
      ),
    );
    expect(rows.at(-1)?.['skips']).toEqual(['x,y']);
  });

  it('returns bundles whose version, image or skip range is NULL', async () => {
    const client = await serve(
      "UPDATE operatorbundle SET version = NULL, bundlepath = NULL, skiprange = NULL WHERE name = 'widget.v1.2.0'",
    );
    const rows = await client.call('ListBundles');
    expect(rows.map(shortBundle)).toContain('beta widget.v1.2.0 >  [] 2');
    const [bundle] = await client.call('GetBundle', newest);
    expect(bundle).toMatchObject({ version: '', bundlePath: '', skipRange: '' });
    // Their rows are of another version and image.
    expect(bundle).toMatchObject({ properties: [], providedApis: [widget] });
  });

  it('returns properties and dependencies of the version and image of a bundle, but lists all of its name', async () => {
    const client = await serve(
      `INSERT INTO dependencies VALUES ('a', '1', 'widget.v1.2.0', '1.2.0', 'quay.io/widget/bundle:1.2.0'),
         ('b', '2', 'widget.v1.2.0', NULL, NULL), ('c', '3', 'widget.v1.2.0', '9.9.9', 'quay.io/widget/bundle:1.2.0'),
         ('d', '4', 'widget.v1.2.0', '1.2.0', 'other')`,
      "INSERT INTO properties VALUES ('e', '5', 'widget.v1.2.0', '1.2.0', ''), ('f', '6', 'widget.v1.2.0', '1.2.0', NULL)",
    );
    const types = (row: Row | undefined, field: string): unknown[] =>
      (row?.[field] as Row[]).map(({ type }) => type);
    const [bundle] = await client.call('GetBundle', newest);
    expect(types(bundle, 'dependencies')).toEqual(['a', 'b']);
    expect(types(bundle, 'properties')).toEqual(['olm.package', 'olm.gvk', 'f']);
    const listed = (await client.call('ListBundles')).find(({ csvName }) => csvName === 'widget.v1.2.0');
    expect(types(listed, 'dependencies')).toEqual(['a', 'b', 'c', 'd']);
    expect(types(listed, 'properties')).toEqual(['olm.package', 'olm.gvk', 'e', 'f']);
  });

  it('returns manifests without a ClusterServiceVersion, and several per line', async () => {
    const objects = '{ "kind" : "A" }{"kind":"ClusterServiceVersion","b":1.50}\n\n {"kind":"Z"}';
    const client = await serve(
      `UPDATE operatorbundle SET bundle = '${objects}' WHERE name = 'widget.v1.2.0'`,
    );
    expect(await client.call('GetBundle', newest)).toMatchObject([
      {
        csvJson: '{"kind":"ClusterServiceVersion","b":1.50}',
        object: ['{ "kind" : "A" }', '{"kind":"ClusterServiceVersion","b":1.50}', '{"kind":"Z"}'],
      },
    ]);
    const other = await serve(
      `UPDATE operatorbundle SET bundle = '{"kind":"A"}' WHERE name = 'widget.v1.2.0'`,
    );
    expect(await other.call('GetBundle', newest)).toMatchObject([{ csvJson: '', object: ['{"kind":"A"}'] }]);
  });

  it.each(['{"a":1}{"b', '[1] 2', 'plain'])('names a bundle whose manifests are %s', async (objects) => {
    const client = await serve(
      `UPDATE operatorbundle SET bundle = '${objects}' WHERE name <> 'widget.v1.1.0'`,
    );
    const subject = 'index.db: package "widget", bundle "widget.v1';
    expect(await client.failure('GetBundle', newest)).toContain(`13: ${subject}.2.0": its manifests are not`);
    expect(await client.failure('ListBundles')).toContain(
      `13: ${subject}.0.0": its manifests are not JSON: `,
    );
    // The others are still answered.
    expect(await client.call('GetBundle', { ...stable, csvName: 'widget.v1.1.0' })).toHaveLength(1);
  });

  it('replaces invalid UTF-8 in texts', async () => {
    const client = await serve(
      `UPDATE operatorbundle SET csv = x'7bff7d', bundle = CAST('{"kind":"' || CAST(x'ff' AS TEXT) || '"}' AS BLOB)`,
    );
    expect(await client.call('GetBundleForChannel', stable)).toMatchObject([{ csvJson: '{\ufffd}' }]);
    expect(await client.call('GetBundle', newest)).toMatchObject([{ object: ['{"kind":"\ufffd"}'] }]);
  });

  it('terminates for entries in a cycle, without a target or without depth', async () => {
    const circle = await serve('UPDATE channel_entry SET replaces = 1 WHERE entry_id = 5');
    expect(await circle.call('ListBundles')).toHaveLength(4);
    const nowhere = await serve('UPDATE channel_entry SET replaces = 99, depth = NULL');
    expect(await nowhere.call('ListBundles')).toHaveLength(4);
    expect(await nowhere.call('GetLatestChannelEntriesThatProvide', widget)).toHaveLength(2);
    expect(await nowhere.call('GetDefaultBundleThatProvides', widget)).toHaveLength(1);
  });

  it.each(['package', 'channel', 'channel_entry', 'operatorbundle', 'properties', 'dependencies', 'api'])(
    'refuses a database without the table %s, or with a view in its place',
    async (table) => {
      await expect(open(await indexFile(`DROP TABLE ${table}`))).rejects.toThrow(
        `index.db: table ${table} not found`,
      );
      const view = [`ALTER TABLE ${table} RENAME TO r`, `CREATE VIEW ${table} AS SELECT * FROM r`];
      await expect(open(await indexFile(...view))).rejects.toThrow(`index.db: table ${table} not found`);
    },
  );

  it('refuses names that are not text, and values that no index has', async () => {
    const bytes = await indexFile('UPDATE package SET name = CAST(name AS BLOB)');
    await expect(open(bytes)).rejects.toThrow('index.db: table package has a name that is not text');
    const huge = await indexFile('UPDATE properties SET value = zeroblob(67108865)');
    await expect(open(huge)).rejects.toMatchObject({ code: 'LIMIT' });
  });

  it('refuses a database with damaged pages', async () => {
    const file = await indexFile(
      "UPDATE operatorbundle SET bundle = zeroblob(200000) WHERE name = 'widget.v1.0.0'",
    );
    // The last pages hold the rest of that value; where they are said to go on is spoilt.
    const bytes = await readFile(file);
    await writeFile(file, bytes.fill(0xff, bytes.length - 20 * 4096));
    await expect(open(file)).rejects.toThrow('index.db: damaged database');
  });

  it('neither changes the file nor creates others, in a read-only directory', async () => {
    const file = await indexFile();
    const directory = path.dirname(file);
    const before = { bytes: await readFile(file), time: (await stat(file)).mtimeMs };
    await chmod(file, 0o444);
    await chmod(directory, 0o555);
    onTestFinished(() => chmod(directory, 0o755));
    const client = await serveFile(file);
    expect(await client.call('ListBundles')).toHaveLength(4);
    expect(await readdir(directory)).toEqual(['index.db']);
    expect({ bytes: await readFile(file), time: (await stat(file)).mtimeMs }).toEqual(before);
  });

  it.each([0, 4, 8, 12])('serves an index of schema version %d from a copy', async (version) => {
    const file = path.join(await directoryWith(), 'old.db');
    const database = await openDatabase(file, { access: 'create' });
    await database.transaction(() => {
      migrateDatabase(database, version);
      fillOldIndex(
        database,
        version,
        [
          { name: 'a.v1', package: 'a', version: '1.0.0', provides: ['Thing'] },
          { name: 'a.v2', package: 'a', version: '2.0.0', provides: ['Thing'] },
        ],
        [{ package: 'a', name: 'stable', default: true, chain: [{ name: 'a.v2' }, { name: 'a.v1' }] }],
      );
    });
    database.close();
    const before = await readFile(file);
    const client = await serveFile(file);
    expect((await client.call('ListBundles')).map(shortBundle)).toEqual([
      expect.stringMatching(/^stable a\.v1 > {2}\[\] /),
      expect.stringMatching(/^stable a\.v2 > a\.v1 \[\] /),
    ]);
    const api = { group: 'example.com', version: 'v1', kind: 'Thing' };
    expect(await client.call('GetDefaultBundleThatProvides', api)).toMatchObject([
      { csvName: 'a.v2', version: '2.0.0' },
    ]);
    expect(await readFile(file)).toEqual(before);
  });

  it('returns data that another process has committed, without waiting', async () => {
    const file = await indexFile();
    const client = await serveFile(file);
    const writer = new Sqlite(file);
    onTestFinished(() => void writer.close());
    writer.exec("BEGIN IMMEDIATE; UPDATE package SET default_channel = 'beta'");
    const channel = async (): Promise<unknown> =>
      (await client.call('GetPackage', { name: 'widget' }))[0]?.['defaultChannelName'];
    expect(await channel()).toBe('stable');
    writer.exec("DELETE FROM channel_entry WHERE channel_name = 'stable'; COMMIT");
    expect(await channel()).toBe('beta');
    expect(await client.call('ListBundles')).toHaveLength(1);
    expect(await client.failure('GetBundle', newest)).toMatch(/^2: /);
    // A file that is no index any more is told, until it is one again.
    writer.exec('ALTER TABLE channel RENAME TO other');
    expect(await client.failure('GetPackage', { name: 'widget' })).toContain('13: index.db: no such table');
    writer.exec('ALTER TABLE other RENAME TO channel');
    expect(await channel()).toBe('beta');
  });

  it('does not mix two states of the file in one list', async () => {
    const file = await indexFile(
      "INSERT INTO channel_entry VALUES (9, 'stable', 'zeta', 'widget.v1.0.0', NULL, 0)",
    );
    const answers = await open(file);
    const rows = answers.listBundles()[Symbol.asyncIterator]();
    await rows.next();
    const writer = new Sqlite(file);
    writer.exec("UPDATE operatorbundle SET skiprange = '<9'");
    writer.close();
    const rest = async (): Promise<void> => {
      while ((await rows.next()).done !== true);
    };
    await expect(rest()).rejects.toThrow('index.db: changed by another process while reading');
  });

  it('reports that another process has locked the file, and recovers afterwards', async () => {
    const file = await indexFile();
    const client = await serveFile(file);
    const writer = new Sqlite(file);
    onTestFinished(() => void writer.close());
    writer.exec('BEGIN EXCLUSIVE');
    expect(await client.failure('ListPackages')).toContain('13: index.db: locked by another process');
    writer.exec('COMMIT');
    expect(await client.call('ListPackages')).toHaveLength(1);
  });
});
