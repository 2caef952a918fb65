import { OpmateError } from '../../core/errors.js';
import type { Database } from './database.js';
import { refuseBytesAsNames } from './schema.js';

/** An index beyond the schema, without which each lookup reads the whole table. */
interface HelperIndex {
  name: string;
  on: string;
}

const apiTables = ['api_provider', 'api_requirer'] as const;

/** Rewriting packages: finds their entries and, for foreign keys, what replaces each. */
const entries: readonly HelperIndex[] = [
  { name: 'opmate_entry_package', on: 'channel_entry (package_name, channel_name)' },
  { name: 'opmate_entry_replaces', on: 'channel_entry (replaces)' },
];
/** Finds entries by bundle name. */
const names: readonly HelperIndex[] = [
  { name: 'opmate_entry_bundle', on: 'channel_entry (operatorbundle_name)' },
];
/** Finds bundles by what they replace and substitute for. */
const substitutions: readonly HelperIndex[] = [
  { name: 'opmate_bundle_substitutesfor', on: 'operatorbundle (substitutesfor)' },
  { name: 'opmate_bundle_replaces', on: 'operatorbundle (replaces)' },
];
/** Lookups for every deleted row, by foreign keys and by opmate. */
const deletions: readonly HelperIndex[] = [
  ...entries,
  ...names,
  { name: 'opmate_channel_head', on: 'channel (head_operatorbundle_name)' },
  { name: 'opmate_image_bundle', on: 'related_image (operatorbundle_name)' },
  ...['dependencies', 'properties', ...apiTables].map((table) => ({
    name: `opmate_${table}_bundle`,
    on: `${table} (operatorbundle_name, operatorbundle_version, operatorbundle_path)`,
  })),
  ...apiTables.map((table) => ({
    name: `opmate_${table}_api`,
    on: `${table} (group_name, version, kind)`,
  })),
];
const indexSets = { entries, names, substitutions, deletions };

/**
 * Runs `work` while the tables have a set of indexes, which are dropped afterwards, even if `work` throws: the schema
 * stays compatible with other tools. Runs in the caller's transaction; may be nested, like `withEditIndexes`.
 */
export async function withIndexes<T>(
  database: Database,
  set: keyof typeof indexSets,
  work: () => T | Promise<T>,
): Promise<T> {
  const known = "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?";
  const made = indexSets[set].filter(({ name }) => !database.has(known, name));
  for (const { name, on } of made) database.execute(`CREATE INDEX ${name} ON ${on}`);
  try {
    return await work();
  } finally {
    // A full disk ends the transaction, and drops the indexes with it.
    if (database.inTransaction) for (const { name } of made) database.execute(`DROP INDEX IF EXISTS ${name}`);
  }
}

/** Databases being edited with indexes, so that edits can be nested. */
const edited = new WeakSet<Database>();

/**
 * Runs an edit with indexes for lookups by bundle, package, channel and API. It is one transaction, or a part of the
 * caller's. The schema is the same afterwards, even if `work` throws. Throws OpmateError INVALID for an index whose
 * names cannot be looked up.
 */
export async function withEditIndexes<T>(database: Database, work: () => T | Promise<T>): Promise<T> {
  if (edited.has(database)) return work();
  const edit = async (): Promise<T> => {
    refuseBytesAsNames(database);
    edited.add(database);
    try {
      const restoreTriggers = quickenTriggers(database);
      const result = await work();
      restoreTriggers();
      return result;
    } finally {
      edited.delete(database);
    }
  };
  return database.transaction(() => withIndexes(database, 'deletions', edit));
}

/**
 * Replaces the triggers that drop unused APIs by equivalent ones that use indexes. The originals look for a pair of
 * rows of both tables, so that an API is dropped also when one table has no row left, and read every pair. Returns a
 * function that restores them.
 */
function quickenTriggers(database: Database): () => void {
  const originals: { name: string; sql: string }[] = [];
  for (const table of apiTables) {
    const name = `${table}_cleanup`;
    const find = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?";
    const trigger = database.get<{ sql: string }>(find, name);
    if (trigger === undefined) continue;
    if (!/^create\s+trigger\s/i.test(trigger.sql)) {
      throw new OpmateError('INVALID', `trigger ${name} is not readable`, { subject: database.name });
    }
    originals.push({ name, sql: trigger.sql });
    const unused = apiTables.map(
      (item) =>
        `NOT EXISTS (SELECT 1 FROM ${item} WHERE group_name = OLD.group_name AND version = OLD.version AND kind = OLD.kind)`,
    );
    const empty = apiTables.map((item) => `NOT EXISTS (SELECT 1 FROM ${item})`);
    database.run(`DROP TRIGGER ${name}`);
    database.run(
      `CREATE TRIGGER ${name} AFTER DELETE ON ${table} WHEN ${empty.join(' OR ')} OR (${unused.join(' AND ')}) ` +
        'BEGIN DELETE FROM api WHERE group_name = OLD.group_name AND version = OLD.version AND kind = OLD.kind; END',
    );
  }
  return () => {
    for (const { name, sql } of originals) {
      database.run(`DROP TRIGGER ${name}`);
      // Only one statement, whatever the file holds after it.
      database.run(sql);
    }
  };
}
