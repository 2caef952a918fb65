import { OpmateError } from '../core/errors.js';
import type { Database } from './database.js';

/**
 * What is looked up for every row that is deleted, by the foreign keys and by ourselves. An index database
 * has none of these, so that each deletion would read whole tables.
 */
const indexedColumns: readonly (readonly [table: string, columns: string])[] = [
  ['channel_entry', 'operatorbundle_name'],
  ['channel_entry', 'package_name'],
  ['channel_entry', 'replaces'],
  ['channel_entry', 'channel_name, package_name'],
  ['channel', 'head_operatorbundle_name'],
  ['related_image', 'operatorbundle_name'],
  ...['dependencies', 'properties', 'api_provider', 'api_requirer'].map(
    (table) => [table, 'operatorbundle_name, operatorbundle_version, operatorbundle_path'] as const,
  ),
  ...['api_provider', 'api_requirer'].map((table) => [table, 'group_name, version, kind'] as const),
];

const apiTables = ['api_provider', 'api_requirer'] as const;

/** The databases that are being edited with indexes, so that an edit can be a part of another. */
const edited = new WeakSet<Database>();

/**
 * Runs an edit that looks rows up by bundle, package, channel and API, with indexes for that. It is one
 * transaction, or a part of the caller's. The schema is the same afterwards, also when `work` throws.
 */
export async function withEditIndexes<T>(database: Database, work: () => T | Promise<T>): Promise<T> {
  if (edited.has(database)) return work();
  return database.transaction(async () => {
    edited.add(database);
    try {
      indexedColumns.forEach(([table, columns], index) =>
        database.run(`CREATE INDEX opmate_edit_${index} ON ${table} (${columns})`),
      );
      const triggers = quickenTriggers(database);
      const result = await work();
      triggers.restore();
      indexedColumns.forEach((_, index) => database.run(`DROP INDEX opmate_edit_${index}`));
      return result;
    } finally {
      edited.delete(database);
    }
  });
}

/**
 * Puts triggers that do the same by index in the place of those that drop the APIs which nobody provides or
 * requires. Theirs ask for a pair of rows of both tables, so that an API goes also when one of the tables has
 * no row left, and they read every pair to find that there is none.
 */
function quickenTriggers(database: Database): { restore: () => void } {
  const originals: { name: string; sql: string }[] = [];
  for (const table of apiTables) {
    const name = `${table}_cleanup`;
    const found = database.get<{ sql: string }>(
      "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?",
      name,
    );
    if (found === undefined) continue;
    if (!/^create\s+trigger\s/i.test(found.sql)) {
      throw new OpmateError('INVALID', `${database.name}: trigger ${name} is not readable`);
    }
    originals.push({ name, sql: found.sql });
    const unused = apiTables.map(
      (one) =>
        `NOT EXISTS (SELECT 1 FROM ${one} WHERE group_name = OLD.group_name AND version = OLD.version AND kind = OLD.kind)`,
    );
    const empty = apiTables.map((one) => `NOT EXISTS (SELECT 1 FROM ${one})`);
    database.run(`DROP TRIGGER ${name}`);
    database.run(
      `CREATE TRIGGER ${name} AFTER DELETE ON ${table} WHEN ${empty.join(' OR ')} OR (${unused.join(' AND ')}) ` +
        'BEGIN DELETE FROM api WHERE group_name = OLD.group_name AND version = OLD.version AND kind = OLD.kind; END',
    );
  }
  return {
    restore() {
      for (const { name, sql } of originals) {
        database.run(`DROP TRIGGER ${name}`);
        // One statement only, whatever the file may hold after it.
        database.run(sql);
      }
    },
  };
}
