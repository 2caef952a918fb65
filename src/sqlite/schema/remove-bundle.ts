import { type ColumnValue, type Database, getColumnText } from './database.js';

/**
 * Removes a bundle with all dependent rows: the channels that it heads, its entries in others, unless `keepsEntries`, as
 * of a skipped name, and, if it heads a default channel, the package. Also removes rows of its name without a bundle.
 * Appends its name to `removed`. Within `withEditIndexes`.
 */
export function removeBundle(
  database: Database,
  name: ColumnValue,
  removed: string[],
  keepsEntries = false,
): void {
  const { changes } = database.run('DELETE FROM operatorbundle WHERE name = ?', name);
  if (changes > 0) removed.push(getColumnText(name));
  // If version or path is null, foreign keys do not connect the row to the bundle.
  const tables = ['api_provider', 'api_requirer', 'dependencies', 'properties'];
  for (const table of keepsEntries ? tables : [...tables, 'channel_entry'])
    database.run(`DELETE FROM ${table} WHERE operatorbundle_name = ?`, name);
}
