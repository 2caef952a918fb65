import { LimitError } from '../../core/errors.js';
import type { Database } from '../schema/database.js';
import { latestColumns } from '../schema/migration-tables.js';

/** Maximum length of a value: manifests of a bundle are at most a few megabytes. */
const maxValueLength = 64 * 1024 * 1024;

type IndexTable = keyof typeof latestColumns;

interface Lookup {
  table: IndexTable;
  column: string;
  type?: string;
}

/** Unindexed columns for lookups of rows. */
const lookups = {
  entriesOfPackage: { table: 'channel_entry', column: 'package_name' },
  entriesOfBundle: { table: 'channel_entry', column: 'operatorbundle_name' },
  /** Lookup by replaced entry. */
  entriesByReplaced: { table: 'channel_entry', column: 'replaces', type: 'INTEGER' },
  properties: { table: 'properties', column: 'operatorbundle_name' },
  dependencies: { table: 'dependencies', column: 'operatorbundle_name' },
  related_image: { table: 'related_image', column: 'operatorbundle_name' },
} as const satisfies Record<string, Lookup>;

/** Name of the temporary table of APIs. */
const apis = 'opmate_provided';

/**
 * Temporary tables for lookups of rows, for which the schema has no indexes: each is created on first use, in a
 * temporary file of the connection. Its functions throw OpmateError that starts with the database's name: INVALID for a
 * missing or invalid table, LIMIT for a value above 64 MiB.
 */
export class LookupTables {
  readonly #database: Database;
  readonly #checked = new Set<IndexTable>();
  readonly #made = new Set<string>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Throws if tables hold values that are too long; their length is known without reading them. */
  check(...tables: IndexTable[]): void {
    const { name } = this.#database;
    for (const table of tables) {
      if (this.#checked.has(table)) continue;
      const names = latestColumns[table].split(' ');
      const limit = names.map((column) => `octet_length(${column}) > ${maxValueLength}`).join(' OR ');
      const row = this.#database.get<{ length: number }>(
        `SELECT max(0, ${names.map((column) => `coalesce(octet_length(${column}), 0)`).join(', ')}) AS length
         FROM main.${table} WHERE ${limit} LIMIT 1`,
      );
      if (row !== undefined) {
        throw new LimitError(
          `table ${table} holds a value of ${row.length} bytes, above the limit of ${maxValueLength}`,
          { about: name, hint: 'check the database: no valid value of an index is that large' },
        );
      }
      this.#checked.add(table);
    }
  }

  /** Returns the temporary table that finds rows, as `id`, by the value of the column, as `owner`. */
  table(lookup: keyof typeof lookups): string {
    const { table, column, type = '' }: Lookup = lookups[lookup];
    const name = `opmate_${lookup}`;
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
   * Returns the temporary table that finds bundle names, as `owner`, by the APIs of their properties: `group_name`,
   * `version`, `kind`. Compares values, whatever their encoding.
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

  /** Drops all tables: the database has changed, or a transaction that created tables was rolled back. */
  clear(): void {
    for (const name of [apis, ...Object.keys(lookups).map((lookup) => `opmate_${lookup}`)])
      this.#database.execute(`DROP TABLE IF EXISTS temp.${name}`);
    this.#made.clear();
    this.#checked.clear();
  }
}
