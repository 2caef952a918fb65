import type { Database } from './database.js';

/** An index that the schema does not have; without it each look-up would read the whole table. */
interface HelperIndex {
  name: string;
  on: string;
}

/** What rewriting a package needs: to find its entries, and for the foreign keys what replaces each. */
const graphIndexes: readonly HelperIndex[] = [
  { name: 'opmate_entry_package', on: 'channel_entry (package_name, channel_name)' },
  { name: 'opmate_entry_replaces', on: 'channel_entry (replaces)' },
];

const nameIndexes: readonly HelperIndex[] = [
  { name: 'opmate_entry_bundle', on: 'channel_entry (operatorbundle_name)' },
];

/**
 * Runs `work`, which rewrites packages, while the entries of channels have indexes for that. These are gone
 * afterwards: the schema stays the one that other tools know. Runs in the caller's transaction; may be nested.
 */
export function withEntryIndexes<T>(database: Database, work: () => T | Promise<T>): Promise<T> {
  return withIndexes(database, graphIndexes, work);
}

/** The same for `work` that looks entries up by the names of bundles, and writes none. */
export function withEntryNames<T>(database: Database, work: () => T | Promise<T>): Promise<T> {
  return withIndexes(database, nameIndexes, work);
}

async function withIndexes<T>(
  database: Database,
  indexes: readonly HelperIndex[],
  work: () => T | Promise<T>,
): Promise<T> {
  const made = indexes.filter(({ name }) => !hasIndex(database, name));
  for (const { name, on } of made) database.execute(`CREATE INDEX ${name} ON ${on}`);
  const drop = (): void => {
    for (const { name } of made) database.execute(`DROP INDEX IF EXISTS ${name}`);
  };
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // A full disk ends the transaction by itself, and takes the indexes with it.
    if (database.inTransaction) drop();
    throw error;
  }
  drop();
  return result;
}

function hasIndex(database: Database, name: string): boolean {
  return database.get("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", name) !== undefined;
}
