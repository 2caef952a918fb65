import type { Database } from './database.js';

/**
 * What an edit of upgrade graphs looks entries up by. The schema has no index for any of it, so that each
 * look-up, and each deletion with its foreign keys, would read the whole table.
 */
const indexes = [
  { name: 'opmate_entry_package', on: 'channel_entry (package_name, channel_name)' },
  { name: 'opmate_entry_replaces', on: 'channel_entry (replaces)' },
  { name: 'opmate_entry_bundle', on: 'channel_entry (operatorbundle_name)' },
] as const;

/**
 * Runs `work` while the entries of channels have indexes, which are gone afterwards: the schema stays the one
 * that other tools know. Runs in the caller's transaction; may be nested.
 */
export async function withEntryIndexes<T>(database: Database, work: () => T | Promise<T>): Promise<T> {
  if (hasIndex(database, indexes[0].name)) return work();
  for (const { name, on } of indexes) database.execute(`CREATE INDEX ${name} ON ${on}`);
  const drop = (): void => {
    for (const { name } of indexes) database.execute(`DROP INDEX ${name}`);
  };
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // A full disk ends the transaction by itself, and takes the indexes with it.
    if (database.inTransaction && hasIndex(database, indexes[0].name)) drop();
    throw error;
  }
  drop();
  return result;
}

function hasIndex(database: Database, name: string): boolean {
  return database.get("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", name) !== undefined;
}
