import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type ColumnValue,
  type Database,
  openDatabase,
  getNullableText,
} from '../../../../src/sqlite/schema/database.js';
import { latestVersion, migrateDatabase, readVersion } from '../../../../src/sqlite/schema/schema.js';
import { type OldBundle, type OldChannel, csvOf, fillOldIndex } from '../../../support/old-index.js';
import { directoryWith } from '../../../support/temporary.js';

const bundles: OldBundle[] = [
  {
    name: 'a.v1',
    package: 'a',
    version: '1.0.0',
    image: 'quay.io/a:1',
    provides: ['Foo'],
    images: ['img/a1', 'img/shared'],
  },
  {
    name: 'a.v2',
    package: 'a',
    version: '2.0.0',
    image: 'quay.io/a:2',
    provides: ['Bar', 'Foo'],
    requires: ['Baz'],
    skipRange: '>=1.0.0 <2.0.0',
    images: ['img/a2', 'img/shared'],
  },
  { name: 'b.v1', package: 'b', version: '1.0.0', provides: ['Baz'], requires: ['Foo'], images: ['img/b'] },
  { name: 'c.v1', package: 'c', version: '0.1.0', image: 'quay.io/c:1' },
];
const channels: OldChannel[] = [
  { package: 'a', name: 'old', chain: [{ name: 'a.v1' }] },
  {
    package: 'a',
    name: 'stable',
    default: true,
    chain: [{ name: 'a.v2', skips: ['a.v1.8', 'a.v1.9'] }, { name: 'a.v1' }],
  },
  { package: 'b', name: 'only', default: true, chain: [{ name: 'b.v1' }] },
  { package: 'c', name: 'only', default: true, chain: [{ name: 'c.v1' }] },
];
const versions = Array.from({ length: latestVersion }, (_, version) => version);

async function newDatabase(): Promise<Database> {
  return openDatabase(path.join(await directoryWith(), 'index.db'), { access: 'create' });
}

async function oldIndex(version: number, added = bundles, inChannels = channels): Promise<Database> {
  const database = await newDatabase();
  await database.transaction(() => {
    migrateDatabase(database, version);
    fillOldIndex(database, version, added, inChannels);
  });
  return database;
}

async function migrated(database: Database): Promise<Database> {
  await database.transaction(() => migrateDatabase(database));
  expect(database.all('PRAGMA foreign_key_check')).toEqual([]);
  expect(database.get('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' });
  return database;
}

const rows = (database: Database, sql: string): string[] =>
  database
    .all(sql)
    .map((row) => Object.values(row).map((value) => (value === null ? 'NULL' : getNullableText(value))))
    .map((values) => values.join(' '));

const definitions = (database: Database): string[] =>
  rows(database, "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name");

describe('sqlite/migrations', () => {
  it.each(versions)('bring version %i to the tables of a new index, with every row', async (version) => {
    const database = await migrated(await oldIndex(version));
    const columns = (of: Database): string[] =>
      rows(
        of,
        `SELECT m.name, c.cid, c.name, c.type, c."notnull", c.pk
         FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2`,
      );
    expect(columns(database)).toEqual(columns(await migrated(await newDatabase())));

    const list = rows(
      database,
      'SELECT name, version, bundlepath, skiprange, replaces, skips FROM operatorbundle ORDER BY name',
    );
    // Paths came with version 2.
    const at = (image: string): string => (version < 2 ? '' : image);
    expect(list).toEqual([
      `a.v1 1.0.0 ${at('quay.io/a:1')}   `,
      `a.v2 2.0.0 ${at('quay.io/a:2')} >=1.0.0 <2.0.0 a.v1 a.v1.8,a.v1.9`,
      'b.v1 1.0.0    ',
      `c.v1 0.1.0 ${at('quay.io/c:1')}   `,
    ]);
    expect(rows(database, 'SELECT csv FROM operatorbundle ORDER BY name')).toEqual(bundles.map(csvOf));
    expect(rows(database, 'SELECT * FROM package ORDER BY name')).toEqual(['a stable', 'b only', 'c only']);
    expect(rows(database, 'SELECT name, package_name, head_operatorbundle_name FROM channel')).toEqual([
      'old a a.v1',
      'stable a a.v2',
      'only b b.v1',
      'only c c.v1',
    ]);
    expect(
      rows(
        database,
        `SELECT entry.channel_name, entry.operatorbundle_name, entry.depth, target.operatorbundle_name AS target
         FROM channel_entry entry LEFT JOIN channel_entry target ON target.entry_id = entry.replaces
         WHERE entry.package_name = 'a' ORDER BY entry.entry_id`,
      ),
    ).toEqual([
      'old a.v1 0 NULL',
      'stable a.v2 0 a.v1',
      'stable a.v1.8 1 NULL',
      'stable a.v2 1 a.v1.8',
      'stable a.v1.9 2 NULL',
      'stable a.v2 2 a.v1.9',
      'stable a.v1 3 NULL',
    ]);
    expect(rows(database, 'SELECT operatorbundle_name, image FROM related_image ORDER BY 1, 2')).toEqual([
      'a.v1 img/a1',
      'a.v1 img/shared',
      'a.v2 img/a2',
      'a.v2 img/shared',
      'b.v1 img/b',
    ]);
    expect(rows(database, 'SELECT operatorbundle_name, kind FROM api_provider ORDER BY 1, 2')).toEqual([
      'a.v1 Foo',
      'a.v2 Bar',
      'a.v2 Foo',
      'b.v1 Baz',
    ]);
    expect(rows(database, 'SELECT operatorbundle_name, kind FROM api_requirer ORDER BY 1, 2')).toEqual([
      'a.v2 Baz',
      'b.v1 Foo',
    ]);
    expect(rows(database, 'SELECT operatorbundle_name, type, value FROM dependencies ORDER BY 1')).toEqual([
      'a.v2 olm.gvk {"group":"example.com","kind":"Baz","version":"v1"}',
      'b.v1 olm.gvk {"group":"example.com","kind":"Foo","version":"v1"}',
    ]);
    expect(
      rows(
        database,
        'SELECT operatorbundle_name, type, value FROM properties ORDER BY 1, 2, CAST(value AS TEXT)',
      ),
    ).toEqual([
      'a.v1 olm.gvk {"group":"example.com","kind":"Foo","version":"v1"}',
      'a.v1 olm.package {"packageName":"a","version":"1.0.0"}',
      'a.v2 olm.gvk {"group":"example.com","kind":"Bar","version":"v1"}',
      'a.v2 olm.gvk {"group":"example.com","kind":"Foo","version":"v1"}',
      'a.v2 olm.package {"packageName":"a","version":"2.0.0"}',
      'b.v1 olm.gvk {"group":"example.com","kind":"Baz","version":"v1"}',
      'b.v1 olm.package {"packageName":"b","version":"1.0.0"}',
      'c.v1 olm.package {"packageName":"c","version":"0.1.0"}',
    ]);
  });

  it('stop at every version on the way, with the same end', async () => {
    const database = await oldIndex(0);
    for (let version = 1; version <= latestVersion; version++) {
      await database.transaction(() => migrateDatabase(database, version));
      expect(readVersion(database)).toBe(version);
    }
    const atOnce = await migrated(await oldIndex(0));
    for (const table of ['operatorbundle', 'properties', 'dependencies', 'api_provider', 'related_image'])
      expect(rows(database, `SELECT * FROM ${table}`)).toEqual(rows(atOnce, `SELECT * FROM ${table}`));
    expect(definitions(database)).toEqual(definitions(atOnce));
  });

  it.each(versions)('know version %i by its tables, when none is named', async (version) => {
    const expected = await migrated(await oldIndex(version));
    const database = await oldIndex(version);
    database.execute(version % 2 === 0 ? 'DROP TABLE schema_migrations' : 'DELETE FROM schema_migrations');
    await migrated(database);
    for (const table of ['operatorbundle', 'dependencies', 'api_provider', 'related_image'])
      expect(rows(database, `SELECT * FROM ${table}`)).toEqual(rows(expected, `SELECT * FROM ${table}`));
    // What completes paths runs once more on version 10, and says '' where there was NULL.
    const properties = `SELECT type, value, operatorbundle_name, operatorbundle_version,
      coalesce(operatorbundle_path, '') FROM properties`;
    expect(rows(database, properties)).toEqual(rows(expected, properties));
    expect(definitions(database)).toEqual(definitions(expected));
  });

  it.each([
    ['201909251211', 0],
    ['20191021125829', 2],
  ])('know an index numbered %s by its tables', async (number, version) => {
    const database = await oldIndex(version);
    database.execute(`DROP TABLE schema_migrations;
      CREATE TABLE schema_migrations (version uint64, dirty bool);
      CREATE UNIQUE INDEX version_unique ON schema_migrations (version);
      INSERT INTO schema_migrations VALUES (${number}, 0)`);
    expect(readVersion(database)).toBe(version);
    await migrated(database);
    expect(definitions(database)).toEqual(definitions(await migrated(await newDatabase())));
    expect(rows(database, 'SELECT * FROM schema_migrations')).toEqual(['13 1970-01-01 00:00:00']);
  });

  it('take an index whose bundles were made anew without a key', async () => {
    const database = await oldIndex(2);
    database.execute('PRAGMA foreign_keys = OFF');
    database.execute(`CREATE TABLE copy (name TEXT, csv TEXT, bundle TEXT, bundlepath TEXT);
      INSERT INTO copy SELECT * FROM operatorbundle; DROP TABLE operatorbundle;
      ALTER TABLE copy RENAME TO operatorbundle; PRAGMA foreign_keys = ON`);
    await migrated(database);
    expect(rows(database, 'SELECT name FROM operatorbundle ORDER BY 1')).toHaveLength(4);
    expect(rows(database, "SELECT name FROM sqlite_master WHERE name = 'operatorbundle_name'")).toEqual([]);
  });

  it('replace the rows that opm left without a name, version or path', async () => {
    const database = await oldIndex(5);
    database.run('UPDATE operatorbundle SET version = NULL, skiprange = NULL, bundlepath = NULL');
    database.run("INSERT INTO operatorbundle (version, skiprange) VALUES ('1.0.0', ''), ('2.0.0', '')");
    await migrated(database);
    expect(
      rows(database, 'SELECT name, version, bundlepath, skiprange FROM operatorbundle ORDER BY name'),
    ).toEqual(['a.v1 1.0.0  ', 'a.v2 2.0.0  >=1.0.0 <2.0.0', 'b.v1 1.0.0  ', 'c.v1 0.1.0  ']);
  });

  it('do what can be done for bundles whose CSV is gone, broken or wrong', async () => {
    const odd: [string, string | null][] = [
      ['gone', null],
      ['broken', '{'],
      ['list', '[]'],
      ['empty', '{}'],
      ['number', '{"metadata":{"annotations":7},"spec":{"version":7,"relatedImages":7}}'],
      ['crd', '{"spec":{"customresourcedefinitions":{"required":[{"name":"nodot"}]}}}'],
    ];
    const added = odd.map(([name, csv]) => ({ name, package: 'p', csv }));
    const chain = [{ package: 'p', name: 'c', default: true, chain: added.map(({ name }) => ({ name })) }];
    const database = await migrated(await oldIndex(0, added, chain));
    expect(rows(database, 'SELECT name, version, bundlepath, skiprange FROM operatorbundle')).toEqual(
      odd.map(([name]) => `${name}   `),
    );
    expect(rows(database, 'SELECT value FROM properties')).toEqual(
      odd.map(() => '{"packageName":"p","version":""}'),
    );
  });

  it('escape values as Go does, and store those of properties as bytes', async () => {
    const database = await oldIndex(8);
    database.run('UPDATE channel_entry SET package_name = package_name');
    database.execute(`PRAGMA defer_foreign_keys = ON`);
    database.run("UPDATE operatorbundle SET version = '1<2&3>4\"' || char(8232) WHERE name = 'c.v1'");
    await migrated(database);
    const stored = database.all<{ value: ColumnValue }>(
      "SELECT value FROM properties WHERE operatorbundle_name = 'c.v1'",
    );
    expect(stored).toEqual([
      {
        value: Buffer.from('{"packageName":"c","version":"1\\u003c2\\u00263\\u003e4\\"\\u2028"}'),
      },
    ]);
    expect(rows(database, 'SELECT DISTINCT typeof(value) FROM dependencies')).toEqual(['text']);
  });

  it('take replaced and skipped names in order of depth, first seen', async () => {
    const database = await oldIndex(
      6,
      bundles.slice(0, 2),
      [
        {
          package: 'a',
          name: 'x',
          chain: [{ name: 'top' }, { name: 'a.v2', skips: ['s1'] }, { name: 'a.v1' }],
        },
        { package: 'a', name: 'y', chain: [{ name: 'a.v2', skips: ['s2'] }, { name: 'other' }] },
      ].map((channel) => ({ ...channel, chain: channel.chain.filter(({ name }) => name !== 'top') })),
    );
    await migrated(database);
    // a.v1 and other are both replaced at depth 0; the one of the first channel counts.
    expect(rows(database, "SELECT replaces, skips FROM operatorbundle WHERE name = 'a.v2'")).toEqual([
      'a.v1 other,s1,s2',
    ]);
  });

  it('keep what was deprecated, for bundles that are there', async () => {
    const database = await oldIndex(11);
    const insert =
      "INSERT INTO properties (type, value, operatorbundle_name) VALUES ('olm.deprecated', '{}', ?)";
    for (const name of ['a.v1', 'a.v1', 'gone.v1']) database.run(insert, name);
    await migrated(database);
    expect(rows(database, 'SELECT * FROM deprecated')).toEqual(['a.v1']);
  });

  it('say which row breaks a foreign key', async () => {
    const database = await oldIndex(3);
    database.execute('PRAGMA foreign_keys = OFF');
    database.run("INSERT INTO channel VALUES ('edge', 'a', 'missing.v1')");
    database.execute('PRAGMA foreign_keys = ON');
    await expect(database.transaction(() => migrateDatabase(database))).rejects.toThrow(
      `${database.name}: cannot be brought to schema version 4: a row of channel refers to a missing row of operatorbundle`,
    );
    expect(readVersion(database)).toBe(3);
    expect(rows(database, 'SELECT name FROM operatorbundle')).toHaveLength(4);
  });

  it('refuse an index whose views stand for tables, without asking them', async () => {
    const database = await oldIndex(6);
    database.execute(`DROP TABLE api_requirer; CREATE VIEW api_requirer AS
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
      SELECT x AS group_name, x AS version, x AS kind, x AS operatorbundle_name, x AS operatorbundle_version, x AS operatorbundle_path FROM n`);
    expect(() => migrateDatabase(database)).toThrow(`${database.name}: api_requirer is a view, not a table`);
  });

  it.each([
    [8, 'DROP TABLE api_provider', 'no such table: main.api_provider'],
    [4, 'ALTER TABLE operatorbundle ADD COLUMN version TEXT', 'duplicate column name: version'],
  ])('refuse version %i with other tables than it has', async (version, sql, message) => {
    const database = await oldIndex(version);
    database.execute(sql);
    await expect(database.transaction(() => migrateDatabase(database))).rejects.toThrow(
      `${database.name}: ${message}`,
    );
    expect(readVersion(database)).toBe(version);
  });
});
