import { type ColumnValue, type Database, text } from './database.js';

/** Names of bundles that were removed, to which removals add. */
export type RemovedBundles = string[];

/**
 * Removes a bundle with all that hangs on it: the channels that it heads, its entries in all others, and, when
 * it heads a default channel, that package. Also rows of its name that belong to no bundle. Within
 * `withEditIndexes`.
 */
export function removeBundle(database: Database, name: ColumnValue, removed: RemovedBundles): void {
  removeBundleRows(database, name, removed);
  database.run('DELETE FROM channel_entry WHERE operatorbundle_name = ?', name);
}

/**
 * Removes the rows of a bundle but leaves the entries of its name, which then are those of one that is only
 * skipped. What it still heads goes, as with `removeBundle`. Within `withEditIndexes`.
 */
export function removeBundleRows(database: Database, name: ColumnValue, removed: RemovedBundles): void {
  const { changes } = database.run('DELETE FROM operatorbundle WHERE name = ?', name);
  if (changes > 0) removed.push(text(name));
  // Where version or path is null, the foreign keys see no connection to the bundle.
  for (const table of ['api_provider', 'api_requirer', 'dependencies', 'properties']) {
    database.run(`DELETE FROM ${table} WHERE operatorbundle_name = ?`, name);
  }
}
