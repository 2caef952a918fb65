import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../../src/sqlite/schema/database.js';
import {
  checkTables,
  latestVersion,
  migrateDatabase,
  readVersion,
} from '../../../../src/sqlite/schema/schema.js';
import { directoryWith } from '../../../support/temporary.js';

async function empty(): Promise<{ file: string; database: Database }> {
  const file = path.join(await directoryWith(), 'index.db');
  return { file, database: await openDatabase(file, { access: 'create' }) };
}

async function latest(): Promise<{ file: string; database: Database }> {
  const made = await empty();
  await made.database.transaction(() => migrateDatabase(made.database));
  return made;
}

const column = (database: Database, sql: string): unknown[] =>
  database.all(sql).map((row) => Object.values(row).join(' '));

describe('sqlite/schema', () => {
  it('has the columns of opm v1.73, in its order', async () => {
    const { database } = await latest();
    const columns = (table: string): unknown[] =>
      column(
        database,
        `SELECT name, type, "notnull", coalesce(dflt_value, '-'), pk FROM pragma_table_info('${table}')`,
      );
    expect(columns('operatorbundle')).toEqual([
      'name TEXT 0 - 1',
      'csv TEXT 0 - 0',
      'bundle TEXT 0 - 0',
      'bundlepath TEXT 0 - 0',
      'skiprange TEXT 0 - 0',
      'version TEXT 0 - 0',
      'replaces TEXT 0 - 0',
      'skips TEXT 0 - 0',
      'substitutesfor TEXT 0 - 0',
    ]);
    expect(columns('api')).toEqual([
      'group_name TEXT 0 - 1',
      'version TEXT 0 - 2',
      'kind TEXT 0 - 3',
      'plural TEXT 1 - 0',
    ]);
    expect(columns('channel')).toEqual([
      'name TEXT 0 - 1',
      'package_name TEXT 0 - 2',
      'head_operatorbundle_name TEXT 0 - 0',
    ]);
    expect(columns('deprecated')).toEqual(['operatorbundle_name TEXT 0 - 1']);
    expect(columns('schema_migrations')).toEqual([
      'version bigint 1 - 0',
      'timestamp DATETIME 0 CURRENT_TIMESTAMP 0',
    ]);
  });

  it('has its foreign keys, indexes and triggers', async () => {
    const { database } = await latest();
    const keys = (table: string): unknown[] =>
      column(
        database,
        `SELECT "from", "table", "to", on_delete FROM pragma_foreign_key_list('${table}') ORDER BY id, seq`,
      );
    expect(keys('package')).toEqual([
      'name channel package_name CASCADE',
      'default_channel channel name CASCADE',
    ]);
    expect(keys('channel')).toEqual(['head_operatorbundle_name operatorbundle name CASCADE']);
    expect(keys('channel_entry')).toEqual([
      'channel_name channel name CASCADE',
      'package_name channel package_name CASCADE',
      'replaces channel_entry entry_id NO ACTION',
    ]);
    const bundle = [
      'operatorbundle_name operatorbundle name CASCADE',
      'operatorbundle_version operatorbundle version CASCADE',
      'operatorbundle_path operatorbundle bundlepath CASCADE',
    ];
    const api = ['group_name api group_name CASCADE', 'version api version CASCADE', 'kind api kind CASCADE'];
    for (const table of ['api_provider', 'api_requirer']) expect(keys(table)).toEqual([...api, ...bundle]);
    for (const table of ['properties', 'dependencies']) expect(keys(table)).toEqual(bundle);
    expect(keys('related_image')).toEqual(['operatorbundle_name operatorbundle name CASCADE']);
    expect(keys('deprecated')).toEqual([]);
    expect(
      column(database, "SELECT type, name FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL"),
    ).toEqual(['index pk', 'trigger api_provider_cleanup', 'trigger api_requirer_cleanup']);
  });

  it('drops an API with the last that names it, and with any while nothing is required', async () => {
    const { database } = await latest();
    const add = (table: string, bundle: string): unknown =>
      database.run(
        `INSERT INTO ${table} (group_name, version, kind, operatorbundle_name) VALUES ('g', 'v', 'K', ?)`,
        bundle,
      );
    const left = (): unknown[] => column(database, 'SELECT operatorbundle_name FROM api_provider');
    database.run("INSERT INTO api VALUES ('g', 'v', 'K', 'ks')");
    add('api_provider', 'a');
    add('api_provider', 'b');
    add('api_requirer', 'c');
    database.run("DELETE FROM api_provider WHERE operatorbundle_name = 'a'");
    expect(left()).toEqual(['b']);
    database.run('DELETE FROM api_requirer');
    // As upstream has it: b still provides it.
    expect(left()).toEqual([]);
    expect(column(database, 'SELECT kind FROM api')).toEqual([]);
  });

  it('makes equal files of equal inputs', async () => {
    const one = await latest();
    const other = await latest();
    one.database.close();
    other.database.close();
    expect((await readFile(one.file)).equals(await readFile(other.file))).toBe(true);
  });

  it('does nothing to a database of the version asked for', async () => {
    const { database } = await latest();
    const changes = (): unknown => database.get('SELECT total_changes() AS n');
    const before = changes();
    await database.transaction(() => migrateDatabase(database));
    expect(changes()).toEqual(before);
    expect(readVersion(database)).toBe(latestVersion);
  });

  it.each([
    [
      14,
      'schema version 14 is not supported',
      'use an index of schema version 0 to 13, or an unversioned one',
    ],
    [
      20210101,
      'schema version 20210101 is not supported',
      'use an index of schema version 0 to 13, or an unversioned one',
    ],
  ])('refuses version %s', async (version, message, hint) => {
    const { file, database } = await latest();
    database.run('UPDATE schema_migrations SET version = ?', version);
    expect(() => migrateDatabase(database)).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED', message: `${file}: ${message}`, hint }),
    );
  });

  it.each([['13.5'], ['many'], [Buffer.from('13')], [-7], [2n ** 62n]])(
    'refuses %s, which is no version',
    async (version) => {
      const { database } = await latest();
      database.run('UPDATE schema_migrations SET version = ?', version);
      expect(() => migrateDatabase(database)).toThrow(/invalid schema version/);
    },
  );

  it('goes to a version in between, and not back', async () => {
    const { file, database } = await empty();
    expect(readVersion(database)).toBe(-1);
    migrateDatabase(database, 6);
    expect(column(database, 'SELECT version, timestamp FROM schema_migrations')).toEqual([
      '6 1970-01-01 00:00:00',
    ]);
    expect(() => migrateDatabase(database, 5)).toThrow(`${file}: schema version 6 cannot go back to 5`);
    migrateDatabase(database);
    checkTables(database);
    expect(readVersion(database)).toBe(13);
  });

  it.each([
    ['CREATE TABLE bookmarks (url TEXT); CREATE INDEX pk ON bookmarks (url)', 'index pk already exists'],
    ['CREATE TABLE pk (url TEXT)', 'there is already a table named pk'],
    ['ALTER TABLE operatorbundle RENAME COLUMN csv TO other', 'table operatorbundle has no column csv'],
  ])('says that a database is no index where another has made this: %s', async (statements, problem) => {
    const { file, database } = await empty();
    migrateDatabase(database, 5);
    database.execute(statements);
    await expect(database.transaction(() => migrateDatabase(database))).rejects.toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining(`${file}: ${problem}`) as string,
      hint: expect.stringContaining('not an operator index') as string,
    });
  });

  it('leaves a database of another kind alone', async () => {
    const { file, database } = await empty();
    database.execute('CREATE TABLE bookmarks (url TEXT)');
    const message = `${file}: a sqlite database, but not an operator index`;
    expect(() => migrateDatabase(database)).toThrow(message);
    database.execute(`CREATE TABLE schema_migrations (version TEXT);
      INSERT INTO schema_migrations VALUES (20200101123456)`);
    database.execute('UPDATE schema_migrations SET version = CAST(version AS INTEGER)');
    expect(() => migrateDatabase(database)).toThrow(/not an index|invalid schema version/);
    database.run('DELETE FROM schema_migrations');
    expect(() => migrateDatabase(database)).toThrow(message);
  });

  it('refuses triggers that no index has, as they would run with every edit', async () => {
    const { file, database } = await latest();
    database.execute('CREATE TRIGGER surprise AFTER INSERT ON operatorbundle BEGIN DELETE FROM package; END');
    expect(() => migrateDatabase(database)).toThrow(
      expect.objectContaining({
        code: 'INVALID',
        message: `${file}: the trigger surprise does not belong to an index`,
      }),
    );
  });

  it('puts its own triggers in the place of others with their names', async () => {
    const { database } = await latest();
    database.execute(`DROP TRIGGER api_requirer_cleanup; DROP TRIGGER api_provider_cleanup;
      CREATE TRIGGER api_provider_cleanup AFTER DELETE ON api_provider BEGIN DELETE FROM package; END`);
    migrateDatabase(database);
    const other = await latest();
    const sql = "SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name";
    expect(column(database, sql)).toEqual(column(other.database, sql));
  });

  it.each([
    ['ALTER TABLE channel RENAME COLUMN package_name TO nope', 'table channel has no column package_name'],
    ['DROP TABLE related_image', 'table related_image not found'],
    [
      'DROP TABLE deprecated; CREATE VIEW deprecated AS WITH RECURSIVE c(operatorbundle_name) AS (SELECT 1 UNION ALL SELECT operatorbundle_name FROM c) SELECT * FROM c',
      'deprecated is a view, not a table',
    ],
    [
      'DROP TABLE deprecated; CREATE TABLE deprecated (x, operatorbundle_name TEXT GENERATED ALWAYS AS (upper(x)) VIRTUAL)',
      'table deprecated has no column operatorbundle_name',
    ],
    [
      'DROP TABLE deprecated; CREATE VIRTUAL TABLE deprecated USING fts5(operatorbundle_name)',
      'table deprecated not found',
    ],
  ])('refuses wrong tables: %s', async (sql, message) => {
    const { file, database } = await latest();
    database.execute(sql);
    expect(() => migrateDatabase(database)).toThrow(`${file}: ${message}`);
  });

  it('can be read by others', async () => {
    const { file, database } = await latest();
    database.close();
    const other = new Sqlite(file, { readonly: true });
    expect(other.pragma('integrity_check', { simple: true })).toBe('ok');
    other.close();
  });
});
