import { type ColumnValue, type Database, text } from './database.js';

/** Names of removed bundles, which removals append to. */
export type RemovedBundles = string[];

/**
 * Removes a bundle with all dependent rows: the channels that it heads, its entries in others and, if it heads a
 * default channel, the package. Also removes rows of its name without a bundle. Within `withEditIndexes`.
 */
export function removeBundle(database: Database, name: ColumnValue, removed: RemovedBundles): void {
  removeBundleRows(database, name, removed);
  database.run('DELETE FROM channel_entry WHERE operatorbundle_name = ?', name);
}

/**
 * Removes the rows of a bundle but keeps the entries of its name, as of a skipped name. What it heads is removed, as
 * in `removeBundle`. Within `withEditIndexes`.
 */
export function removeBundleRows(database: Database, name: ColumnValue, removed: RemovedBundles): void {
  const { changes } = database.run('DELETE FROM operatorbundle WHERE name = ?', name);
  if (changes > 0) removed.push(text(name));
  // If version or path is null, foreign keys do not connect the row to the bundle.
  for (const table of ['api_provider', 'api_requirer', 'dependencies', 'properties']) {
    database.run(`DELETE FROM ${table} WHERE operatorbundle_name = ?`, name);
  }
}
