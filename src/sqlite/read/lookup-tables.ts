import { LimitError } from '../../core/errors.js';
import type { Database } from '../schema/database.js';

/** The longest value that is read: the manifests of a bundle are at most a few megabytes. */
const maxValueLength = 64 * 1024 * 1024;

/** What is read of each table. */
const columns = {
  operatorbundle: [
    'name',
    'csv',
    'bundle',
    'bundlepath',
    'skiprange',
    'version',
    'replaces',
    'skips',
    'substitutesfor',
  ],
  package: ['name', 'default_channel'],
  channel: ['name', 'package_name', 'head_operatorbundle_name'],
  channel_entry: ['channel_name', 'package_name', 'operatorbundle_name'],
  properties: ['type', 'value', 'operatorbundle_name'],
  dependencies: ['type', 'value', 'operatorbundle_name'],
  related_image: ['image', 'operatorbundle_name'],
  api: ['group_name', 'version', 'kind', 'plural'],
} as const;

type TableName = keyof typeof columns;

/** The columns without an index by which rows are looked up. */
const lookups = {
  entriesOfPackage: { table: 'channel_entry', column: 'package_name' },
  entriesOfBundle: { table: 'channel_entry', column: 'operatorbundle_name' },
  /** By the entries that are replaced. */
  entriesByReplaced: { table: 'channel_entry', column: 'replaces', type: 'INTEGER' },
  properties: { table: 'properties', column: 'operatorbundle_name' },
  dependencies: { table: 'dependencies', column: 'operatorbundle_name' },
  related_image: { table: 'related_image', column: 'operatorbundle_name' },
} as const satisfies Record<string, { table: TableName; column: string; type?: string }>;

type LookupName = keyof typeof lookups;

/** The name of the temporary table of APIs. */
const apis = 'opmate_provided';

/**
 * Temporary tables by which the rows of an index are found: its schema has no indexes for that, so they are made
 * beside it, each when it is first asked for, in a temporary file that goes with the connection. All methods throw
 * OpmateError that begins with the database's name: INVALID where a table is missing or is none, LIMIT for a value
 * above 64 MiB.
 */
export class LookupTables {
  readonly #database: Database;
  readonly #checked = new Set<TableName>();
  readonly #made = new Set<string>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Throws where tables hold values that are too long to be read; their length is known unread. */
  check(...tables: TableName[]): void {
    const { name } = this.#database;
    for (const table of tables) {
      if (this.#checked.has(table)) continue;
      const names: readonly string[] = columns[table];
      const limit = names.map((column) => `octet_length(${column}) > ${maxValueLength}`).join(' OR ');
      const row = this.#database.get<{ length: number }>(
        `SELECT max(0, ${names.map((column) => `coalesce(octet_length(${column}), 0)`).join(', ')}) AS length
         FROM main.${table} WHERE ${limit} LIMIT 1`,
      );
      if (row !== undefined) {
        throw new LimitError(
          `table ${table} holds a value of ${row.length} bytes, above the limit of ${maxValueLength}`,
          { subject: name, file: name, hint: 'check the database: no valid value of an index is that large' },
        );
      }
      this.#checked.add(table);
    }
  }

  /** The name of the temporary table that finds rows, as `id`, by what the column holds, as `owner`. */
  table(lookup: LookupName): string {
    const { table, column, type = '' }: { table: TableName; column: string; type?: string } = lookups[lookup];
    const name = getName(lookup);
    if (!this.#made.has(name)) {
      this.check(table);
      this.#database.execute(
        `CREATE TEMP TABLE ${name} (owner ${type}, id INTEGER, PRIMARY KEY (owner, id)) WITHOUT ROWID;
         INSERT INTO temp.${name} SELECT ${column}, rowid FROM main.${table}
         WHERE ${column} IS NOT NULL ORDER BY 1, 2`,
      );
      this.#made.add(name);
    }
    return `temp.${name}`;
  }

  /**
   * The name of the temporary table that finds the names of bundles, as `owner`, by the APIs of their properties:
   * `group_name`, `version`, `kind`. What counts is what a property says, however it was written down.
   */
  providedApis(): string {
    if (!this.#made.has(apis)) {
      this.check('properties');
      const field = (name: string): string => `coalesce(json_extract(value, '$.${name}'), '')`;
      this.#database.execute(
        `CREATE TEMP TABLE ${apis} (group_name, version, kind, owner, PRIMARY KEY (group_name, version, kind, owner))
           WITHOUT ROWID;
         INSERT OR IGNORE INTO temp.${apis}
         SELECT ${field('group')}, ${field('version')}, ${field('kind')}, owner FROM (
           SELECT CAST(value AS TEXT) AS value, operatorbundle_name AS owner FROM main.properties
           WHERE CAST(type AS TEXT) = 'olm.gvk' AND operatorbundle_name IS NOT NULL)
         WHERE CASE WHEN json_valid(value) THEN json_type(value) END = 'object'`,
      );
      this.#made.add(apis);
    }
    return `temp.${apis}`;
  }

  /** Forgets all that was found: the database has changed, or a transaction that made tables was undone. */
  clear(): void {
    for (const name of [apis, ...Object.keys(lookups).map(getName)]) {
      this.#database.execute(`DROP TABLE IF EXISTS temp.${name}`);
    }
    this.#made.clear();
    this.#checked.clear();
  }
}

function getName(lookup: string): string {
  return `opmate_${lookup}`;
}
