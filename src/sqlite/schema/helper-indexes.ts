import { OpmateError } from '../../core/errors.js';
import type { Database } from './database.js';
import { refuseBytesAsNames } from './schema.js';

/** An index that the schema does not have; without it each look-up would read the whole table. */
interface HelperIndex {
  name: string;
  on: string;
}

/** Indexes by what they are for. */
const indexSets = {
  /** Rewriting packages: to find their entries, and for the foreign keys what replaces each. */
  entries: [
    { name: 'opmate_entry_package', on: 'channel_entry (package_name, channel_name)' },
    { name: 'opmate_entry_replaces', on: 'channel_entry (replaces)' },
  ],
  /** Looking entries up by the names of bundles. */
  names: [{ name: 'opmate_entry_bundle', on: 'channel_entry (operatorbundle_name)' }],
  /** Looking bundles up by what they replace and substitute for. */
  substitutions: [
    { name: 'opmate_bundle_substitutesfor', on: 'operatorbundle (substitutesfor)' },
    { name: 'opmate_bundle_replaces', on: 'operatorbundle (replaces)' },
  ],
} as const satisfies Record<string, readonly HelperIndex[]>;

const apiTables = ['api_provider', 'api_requirer'] as const;

/** What is looked up for every row that is deleted, by the foreign keys and by ourselves. */
const editIndexes: readonly HelperIndex[] = [
  ...indexSets.entries,
  ...indexSets.names,
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

/**
 * Runs `work` while the tables have a set of indexes. These are gone afterwards, also when `work` throws: the schema
 * stays the one that other tools know. Runs in the caller's transaction; may be nested, as `withEditIndexes` may.
 */
export function withIndexes<T>(
  database: Database,
  set: keyof typeof indexSets,
  work: () => T | Promise<T>,
): Promise<T> {
  return whileIndexed(database, indexSets[set], work);
}

async function whileIndexed<T>(
  database: Database,
  indexes: readonly HelperIndex[],
  work: () => T | Promise<T>,
): Promise<T> {
  const made = indexes.filter(({ name }) => !hasIndex(database, name));
  for (const { name, on } of made) database.execute(`CREATE INDEX ${name} ON ${on}`);
  try {
    return await work();
  } finally {
    // A full disk ends the transaction, and takes the indexes with it.
    if (database.inTransaction) for (const { name } of made) database.execute(`DROP INDEX IF EXISTS ${name}`);
  }
}

function hasIndex(database: Database, name: string): boolean {
  return database.has("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", name);
}

/** The databases that are being edited with indexes, so that an edit can be a part of another. */
const edited = new WeakSet<Database>();

/**
 * Runs an edit that looks rows up by bundle, package, channel and API, with indexes for that. It is one
 * transaction, or a part of the caller's. The schema is the same afterwards, also when `work` throws. Throws
 * OpmateError INVALID for an index whose names are not found by that.
 */
export async function withEditIndexes<T>(database: Database, work: () => T | Promise<T>): Promise<T> {
  if (edited.has(database)) return work();
  const edit = async (): Promise<T> => {
    refuseBytesAsNames(database);
    edited.add(database);
    try {
      const triggers = quickenTriggers(database);
      const result = await work();
      triggers.restore();
      return result;
    } finally {
      edited.delete(database);
    }
  };
  return database.transaction(() => whileIndexed(database, editIndexes, edit));
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
    const trigger = database.get<{ sql: string }>(
      "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?",
      name,
    );
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
