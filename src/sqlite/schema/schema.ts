import { systemCode, OpmateError } from '../../core/errors.js';
import { type ColumnValue, type Database, notAnIndex } from './database.js';
import { latestColumns, triggers, versionTable } from './migration-tables.js';
import { completeBundles, migrations } from './migrations.js';

/** Schema version that opmate reads and writes: the latest. */
export const latestVersion = 13;

/** Constant time of the version row, so that equal inputs make equal files. */
const timestamp = '1970-01-01 00:00:00';

/**
 * Returns the schema version of a database: the stored one or, without one, that of its tables; -1 for an empty
 * database. Indexes of late 2019 have dates as versions, for which the tables are used too. Throws OpmateError:
 * INVALID for an invalid version or another database, UNSUPPORTED for a newer version.
 */
export function readVersion(database: Database): number {
  const tables = getTables(database);
  if (tables.has('schema_migrations')) {
    const row = database.get<{ version: ColumnValue }>('SELECT version FROM schema_migrations LIMIT 1');
    if (row !== undefined) {
      const version = row.version;
      if (!Number.isSafeInteger(version) || Number(version) < -1) {
        throw new OpmateError('INVALID', 'invalid schema version', {
          subject: database.name,
          hint: notAnIndex,
        });
      }
      const isDate = /^20(?:19|20)\d{8}(?:\d\d)?$/.test(String(version));
      if (!isDate && Number(version) <= latestVersion) return Number(version);
      if (!isDate) {
        throw new OpmateError('UNSUPPORTED', `schema version ${version} is not supported`, {
          subject: database.name,
          hint: `use an index of schema version 0 to ${latestVersion}, or an unversioned one`,
        });
      }
    }
  }
  const others = [...tables.keys()].filter((name) => name !== 'schema_migrations');
  if (others.length > 0 && !tables.has('operatorbundle')) {
    throw new OpmateError('INVALID', 'a sqlite database, but not an operator index', {
      subject: database.name,
      hint: 'specify the file of an index, which has a table operatorbundle',
    });
  }
  return versionOfTables(database, tables);
}

/** Returns the columns of every table by table name. */
export function getTables(database: Database): Map<string, Set<string>> {
  const tables = new Map<string, Set<string>>();
  for (const { name } of database.all<{ name: string }>(
    "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
  )) {
    const columns = database.all<{ name: string }>(
      'SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0',
      name,
    );
    tables.set(name, new Set(columns.map((column) => column.name)));
  }
  return tables;
}

/** Returns the newest version whose table changes are present. Changes of rows may be repeated. */
function versionOfTables(database: Database, tables: ReadonlyMap<string, ReadonlySet<string>>): number {
  const has = (table: string, column: string): boolean => tables.get(table)?.has(column) === true;
  if (has('deprecated', 'operatorbundle_name')) return 12;
  if (has('operatorbundle', 'substitutesfor')) return 11;
  if (has('properties', 'value')) return 9;
  if (has('dependencies', 'value')) return 8;
  if (has('operatorbundle', 'replaces')) return 7;
  if (has('api_provider', 'operatorbundle_name')) return 6;
  if (has('operatorbundle', 'version')) return 5;
  const cascades = database.get(
    "SELECT 1 FROM pragma_foreign_key_list('channel') WHERE on_delete = 'CASCADE'",
  );
  if (cascades !== undefined) return 4;
  if (tables.has('api_requirer')) return 3;
  if (has('operatorbundle', 'bundlepath')) return 2;
  if (tables.has('related_image')) return 1;
  return tables.has('operatorbundle') ? 0 : -1;
}

/**
 * Migrates a database to the latest schema, or to version `to`. Runs in the caller's transaction. Throws OpmateError:
 * UNSUPPORTED for a newer one and for a downgrade; INVALID for tables, columns or triggers other than those of an
 * index.
 */
export function migrateDatabase(database: Database, to: number = latestVersion): void {
  const from = readVersion(database);
  if (from > to) {
    throw new OpmateError('UNSUPPORTED', `schema version ${from} cannot go back to ${to}`, {
      subject: database.name,
    });
  }
  refuseViews(database);
  settleTriggers(database, from);
  if (from < to) {
    if (from === -1) migrations[0]?.(database);
    makeNamesUnique(database);
    if (from >= 5) completeBundles(database);
    for (let version = Math.max(from, 0) + 1; version <= to; version++) {
      try {
        migrations[version]?.(database);
      } catch (error) {
        throw migrationError(database, version, error);
      }
    }
    database.execute('DROP TABLE IF EXISTS schema_migrations');
    database.execute(versionTable);
    database.run('INSERT INTO schema_migrations (version, timestamp) VALUES (?, ?)', to, timestamp);
  }
  if (to === latestVersion) checkTables(database);
}

/** Rejects views: one in place of a table could compute endlessly. */
function refuseViews(database: Database): void {
  for (const { name } of database.all<{ name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'view'",
  )) {
    if (!Object.hasOwn(latestColumns, name)) continue;
    throw new OpmateError('INVALID', `${name} is a view, not a table`, {
      subject: database.name,
      hint: notAnIndex,
    });
  }
}

/** Rejects other triggers than those of the schema, as triggers run with every edit. */
function settleTriggers(database: Database, version: number): void {
  const definitions = new Map<string, ColumnValue>();
  for (const { name, sql } of database.all<{ name: string; sql: ColumnValue }>(
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name",
  )) {
    if (!triggers.has(name)) {
      throw new OpmateError('INVALID', `the trigger ${name} does not belong to an index`, {
        subject: database.name,
        hint: `remove it with: DROP TRIGGER "${name}"`,
      });
    }
    definitions.set(name, sql);
  }
  for (const [name, sql] of triggers) {
    if (version >= 7 && inOneForm(definitions.get(name)) === inOneForm(sql)) continue;
    if (definitions.has(name)) database.execute(`DROP TRIGGER ${name}`);
    if (version >= 7) database.execute(sql);
  }
}

function inOneForm(sql: ColumnValue | undefined): string {
  return String(sql).replace(/\s+/g, '').toLowerCase();
}

/**
 * Adds the missing key of some early indexes, which foreign keys refer to. The index created here is dropped with the
 * table in version 4.
 */
function makeNamesUnique(database: Database): void {
  const isKey = database.get(
    "SELECT 1 FROM pragma_table_info('operatorbundle') WHERE name = 'name' AND pk = 1",
  );
  if (isKey === undefined)
    database.execute('CREATE UNIQUE INDEX IF NOT EXISTS operatorbundle_name ON operatorbundle (name)');
}

/** Returns the error of a failed migration, with the row that breaks a foreign key, if that is the cause. */
function migrationError(database: Database, version: number, error: unknown): unknown {
  if (!(error instanceof OpmateError) || systemCode(error.cause) !== 'SQLITE_CONSTRAINT_FOREIGNKEY')
    return error;
  const broken = database.get<{ table: string; parent: string }>('PRAGMA foreign_key_check');
  const where =
    broken === undefined
      ? ''
      : `: a row of ${withoutOld(broken.table)} refers to a missing row of ${withoutOld(broken.parent)}`;
  return new OpmateError('INVALID', `cannot be brought to schema version ${version}${where}`, {
    subject: database.name,
    cause: error,
  });
}

function withoutOld(table: string): string {
  return table.replace(/_old$/, '');
}

/**
 * Requires the tables of the latest version with their columns; views, which compute, do not count. Throws
 * OpmateError INVALID.
 */
export function checkTables(database: Database): void {
  const tables = getTables(database);
  for (const [table, columns] of Object.entries(latestColumns)) {
    const present = tables.get(table);
    const missing = columns.split(' ').find((column) => present?.has(column) !== true);
    if (missing === undefined) continue;
    const what =
      present === undefined ? `table ${table} not found` : `table ${table} has no column ${missing}`;
    throw new OpmateError('INVALID', what, { subject: database.name, hint: notAnIndex });
  }
}

/** Name columns that connect rows. */
const nameColumns: readonly (readonly [table: string, columns: readonly string[]])[] = [
  ['package', ['name', 'default_channel']],
  ['channel', ['package_name', 'name', 'head_operatorbundle_name']],
  ['channel_entry', ['package_name', 'channel_name', 'operatorbundle_name']],
  ['operatorbundle', ['name']],
];

/**
 * Throws OpmateError INVALID for names stored as bytes. No tool stores them so; they equal no text, so that bundles
 * would look stranded and be removed.
 */
export function refuseBytesAsNames(database: Database): void {
  for (const [table, columns] of nameColumns) {
    const row = database.get(
      `SELECT 1 FROM ${table} WHERE ${columns.map((column) => `typeof(${column}) = 'blob'`).join(' OR ')} LIMIT 1`,
    );
    if (row === undefined) continue;
    const column = columns.find(
      (name) => database.get(`SELECT 1 FROM ${table} WHERE typeof(${name}) = 'blob' LIMIT 1`) !== undefined,
    );
    throw new OpmateError('INVALID', `table ${table} has a ${column} that is not text`, {
      subject: database.name,
      hint: `fix it with: UPDATE ${table} SET ${column} = CAST(${column} AS TEXT)`,
    });
  }
}
