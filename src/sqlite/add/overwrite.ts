import type { Database } from '../schema/database.js';
import { readPackage } from '../schema/package-state.js';
import { removeBundle } from '../schema/remove-bundle.js';

/**
 * Removes the head of channels, to add another bundle of that name. Its channels get the bundle it replaced as the
 * head; empty channels are removed, except the default channel, which has no head then. No bundle may replace the
 * removed one. Within `withEditIndexes`.
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
        entry.replaces,
        packageName,
        channel,
        name,
      );
    } else if (channel === defaultChannel) {
      // A channel is removed with its head, and a package with its default channel.
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

/** Returns the packages in which a name has an entry, as a bundle or as a skipped name. */
export function findPackages(database: Database, name: string): string[] {
  return database.texts(
    `SELECT name FROM package WHERE name IN (
       SELECT package_name FROM channel_entry WHERE operatorbundle_name = ?) ORDER BY name`,
    name,
  );
}
