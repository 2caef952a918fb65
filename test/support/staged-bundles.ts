import path from 'node:path';
import { onTestFinished } from 'vitest';
import { type AddOptions, type AddReport, addBundles } from '../../src/sqlite/add/add.js';
import type { BundleRecord } from '../../src/sqlite/schema/bundle-record.js';
import { type Database, openDatabase } from '../../src/sqlite/schema/database.js';
import { migrateDatabase } from '../../src/sqlite/schema/schema.js';
import { Stage } from '../../src/sqlite/add/stage.js';
import { directoryWith } from './temporary.js';

/** An empty index of the latest schema, closed when the running test is done. */
export async function emptyIndex(): Promise<Database> {
  const database = await openDatabase(path.join(await directoryWith(), 'index.db'), { access: 'create' });
  onTestFinished(() => database.close());
  await database.transaction(() => migrateDatabase(database));
  return database;
}

/** A bundle `p.vVERSION` of the package p in the channel `stable`, changed as told. */
export function bundleRecord(version: string, change: Partial<BundleRecord> = {}): BundleRecord {
  const packageName = change.packageName ?? 'p';
  return {
    name: `${packageName}.v${version}`,
    packageName,
    channels: ['stable'],
    defaultChannel: '',
    version,
    skipRange: '',
    replaces: '',
    skips: [],
    substitutesFor: '',
    image: `quay.io/${packageName}:v${version.replace('+', '_')}`,
    relatedImages: [],
    dependencies: [],
    properties: [],
    providedApis: [],
    requiredApis: [],
    ...change,
  };
}

/** Adds bundles as one transaction, by the mode `replaces` unless told. */
export async function addRecords(
  database: Database,
  records: readonly BundleRecord[],
  options: Partial<AddOptions> & { manifestSize?: number } = {},
): Promise<AddReport> {
  const { manifestSize = 0, ...addOptions } = options;
  const stage = new Stage(await directoryWith());
  try {
    for (const record of records) {
      const text = Buffer.from(
        `{"name":"${record.name}","image":"${record.image}"}${' '.repeat(manifestSize)}\n`,
      );
      await stage.add(record, { csv: text, objects: text }, record.image || `./${record.name}`);
    }
    return await database.transaction(() =>
      addBundles(database, stage.bundles, { mode: 'replaces', ...addOptions }),
    );
  } finally {
    await stage.close();
  }
}

/** The entries of a channel, `bundle@depth`, or `bundle@depth > replaced@depth`. */
export function entriesOf(database: Database, channel: string, packageName = 'p'): string[] {
  return database
    .all<{ line: string }>(
      `SELECT e.operatorbundle_name || '@' || e.depth
         || ifnull(' > ' || r.operatorbundle_name || '@' || r.depth, '') AS line
       FROM channel_entry e LEFT JOIN channel_entry r ON r.entry_id = e.replaces
       WHERE e.channel_name = ? AND e.package_name = ? ORDER BY e.entry_id`,
      channel,
      packageName,
    )
    .map(({ line }) => line);
}

/** The packages as `name (default channel): channel=head, …`. */
export function packagesIn(database: Database): string[] {
  return database
    .all<{ line: string }>(
      `SELECT p.name || ' (' || ifnull(p.default_channel, '') || '): ' ||
         (SELECT group_concat(line, ', ') FROM (
            SELECT c.name || '=' || ifnull(c.head_operatorbundle_name, '') AS line FROM channel c
            WHERE c.package_name = p.name ORDER BY c.name)) AS line
       FROM package p ORDER BY p.name`,
    )
    .map(({ line }) => line);
}

/** Names of the bundles that an index has, in channels or not. */
export function bundlesIn(database: Database): string[] {
  return database
    .all<{ name: string }>('SELECT name FROM operatorbundle ORDER BY name')
    .map(({ name }) => name);
}
