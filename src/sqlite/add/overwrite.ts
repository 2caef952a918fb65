import { type ColumnValue, type Database, toText } from '../schema/database.js';
import { readPackage } from '../schema/package-state.js';
import { removeBundle } from '../schema/remove-bundle.js';

/**
 * Removes the bundle that heads its channels, for another one of that name to be added in its place. A channel
 * is headed by what it replaced until then; one that has nothing left goes, but for the default channel, which
 * stays without a head. Nothing may replace the bundle. Within `withEditIndexes`.
 */
export function removeOverwritten(database: Database, packageName: string, name: string): void {
  const state = readPackage(database, packageName);
  const byId = new Map(state.entries.map((entry) => [entry.id, entry]));
  const own = state.entries.filter((entry) => entry.name === name);
  for (const channel of new Set(own.map((entry) => entry.channel))) {
    // The entry of the lowest depth is the one in the chain of replaces; the others are skips.
    const [first] = own.filter((entry) => entry.channel === channel).sort((a, b) => a.depth - b.depth);
    const below = first?.replaces === undefined ? undefined : byId.get(first.replaces);
    if (below !== undefined && state.bundles.has(below.name)) {
      database.run(
        `UPDATE channel SET head_operatorbundle_name = ?
         WHERE package_name = ? AND name = ? AND head_operatorbundle_name = ?`,
        below.name,
        packageName,
        channel,
        name,
      );
    } else if (channel === state.defaultChannel) {
      // A channel goes with its head, and a package with its default channel.
      database.run(
        'UPDATE channel SET head_operatorbundle_name = NULL WHERE package_name = ? AND name = ?',
        packageName,
        channel,
      );
    }
  }
  removeBundle(database, name, []);
  database.run('DELETE FROM deprecated WHERE operatorbundle_name = ?', name);
}

/** The packages of the index in which a name has an entry, of a bundle or of one that is only skipped. */
export function findPackages(database: Database, name: string): string[] {
  return database
    .all<{ name: ColumnValue }>(
      `SELECT name FROM package WHERE name IN (
         SELECT package_name FROM channel_entry WHERE operatorbundle_name = ?) ORDER BY name`,
      name,
    )
    .map((row) => toText(row.name) ?? '');
}
