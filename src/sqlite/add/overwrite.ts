import type { Database } from '../schema/database.js';
import { readPackage } from '../schema/package-state.js';
import { removeBundle } from '../schema/remove-bundle.js';

/**
 * Removes the bundle that heads its channels, for another one of that name to be added in its place. A channel
 * is headed by what it replaced until then; one that has nothing left goes, but for the default channel, which
 * stays without a head. Nothing may replace the bundle. Within `withEditIndexes`.
 */
export function removeOverwritten(database: Database, packageName: string, name: string): void {
  const { channels, bundles, defaultChannel } = readPackage(database, packageName);
  for (const [channel, entries] of channels) {
    const entry = entries.find((own) => own.name === name);
    if (entry === undefined) continue;
    if (bundles.has(entry.replaces)) {
      database.run(
        `UPDATE channel SET head_operatorbundle_name = ?
         WHERE package_name = ? AND name = ? AND head_operatorbundle_name = ?`,
        ...[entry.replaces, packageName, channel, name],
      );
    } else if (channel === defaultChannel) {
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
  return database.texts(
    `SELECT name FROM package WHERE name IN (
       SELECT package_name FROM channel_entry WHERE operatorbundle_name = ?) ORDER BY name`,
    name,
  );
}
