/** Indexes of a few bundles, written as `registry add` writes them. */
import { onTestFinished } from 'vitest';
import type { BundleRecord } from '../../src/sqlite/schema/bundle-record.js';
import { type Database, openDatabase } from '../../src/sqlite/schema/database.js';
import { insertBundle } from '../../src/sqlite/schema/insert-bundle.js';
import { writePackageChannels } from '../../src/sqlite/schema/package-channels.js';
import { migrateDatabase } from '../../src/sqlite/schema/schema.js';
import { directoryWith } from './temporary.js';

/** A bundle of version 1.MINOR.0, named `PACKAGE.v1.MINOR.0`. */
export interface IndexBundle {
  minor: number;
  /** Minor versions. */
  replaces?: number;
  skips?: number[];
  channels?: string[];
  /** No image: what refers to the bundle has a null path then. */
  isLocal?: boolean;
}

export function nameOf(packageName: string, minor: number): string {
  return `${packageName}.v1.${minor}.0`;
}

export function imageOf(packageName: string, minor: number): string {
  return `quay.io/${packageName}/bundle:1.${minor}.0`;
}

function recordOf(packageName: string, bundle: IndexBundle): BundleRecord {
  const { minor, replaces, skips = [], channels = ['stable'], isLocal = false } = bundle;
  const version = `1.${minor}.0`;
  return {
    name: nameOf(packageName, minor),
    packageName,
    channels,
    defaultChannel: channels[0] as string,
    version,
    skipRange: '',
    replaces: replaces === undefined ? '' : nameOf(packageName, replaces),
    skips: skips.map((one) => nameOf(packageName, one)),
    substitutesFor: '',
    image: isLocal ? '' : imageOf(packageName, minor),
    relatedImages: [`quay.io/${packageName}/operator:${version}`],
    dependencies: [{ type: 'olm.gvk', value: '{"group":"shared.io","kind":"Shared","version":"v1"}' }],
    properties: [{ type: 'olm.package', value: JSON.stringify({ packageName, version }) }],
    providedApis: [{ group: `${packageName}.io`, version: 'v1', kind: 'Own', plural: 'owns' }],
    requiredApis: [{ group: 'shared.io', version: 'v1', kind: 'Shared', plural: 'shareds' }],
  };
}

/**
 * An open index of packages, closed when the running test is done. Each channel is headed by its newest bundle;
 * the first channel of the newest bundle is the default one.
 */
export async function smallIndex(packages: Record<string, IndexBundle[]>): Promise<Database> {
  const directory = await directoryWith();
  const database = await openDatabase(`${directory}/index.db`, { access: 'create', name: 'index.db' });
  onTestFinished(() => database.close());
  await database.transaction(async () => {
    migrateDatabase(database);
    for (const [packageName, bundles] of Object.entries(packages)) {
      const heads = new Map<string, string>();
      const sorted = [...bundles].sort((a, b) => a.minor - b.minor);
      for (const bundle of sorted) {
        const record = recordOf(packageName, bundle);
        const csv = Buffer.from(`{"name":"${record.name}"}\n`);
        insertBundle(database, record, { csv, objects: Buffer.from('{}\n') });
        for (const channel of record.channels) heads.set(channel, record.name);
      }
      await writePackageChannels(database, {
        packageName,
        channels: [...heads].map(([name, head]) => ({ name, head })),
        defaultChannel: sorted.at(-1)?.channels?.[0] ?? 'stable',
      });
    }
  });
  return database;
}

/** Names of the bundles whose rows are there, sorted. */
export function bundleNames(database: Database): string[] {
  return database
    .all<{ name: string }>('SELECT name FROM operatorbundle ORDER BY name')
    .map(({ name }) => name);
}

/** Heads by package and channel. */
export function headsOf(database: Database): Record<string, string> {
  const rows = database.all<Record<'package' | 'channel' | 'head', string>>(
    'SELECT package_name AS package, name AS channel, head_operatorbundle_name AS head FROM channel ORDER BY 1, 2',
  );
  return Object.fromEntries(rows.map((row) => [`${row.package}/${row.channel}`, row.head]));
}

/** The edges of a channel, as `UPPER > LOWER`, from the head down. */
export function edgesOf(database: Database, packageName: string, channel: string): string[] {
  const rows = database.all<Record<'upper' | 'lower', string>>(
    `SELECT upper.operatorbundle_name AS upper, lower.operatorbundle_name AS lower FROM channel_entry AS upper
      JOIN channel_entry AS lower ON lower.entry_id = upper.replaces
      WHERE upper.package_name = ? AND upper.channel_name = ? ORDER BY upper.depth, upper.entry_id`,
    packageName,
    channel,
  );
  const short = (name: string): string => name.replace(`${packageName}.v`, '').replace(/\.0$/, '');
  return rows.map(({ upper, lower }) => `${short(upper)} > ${short(lower)}`);
}

/** Rows that refer to bundles which are not there, by table; the schema; and what sqlite says of both. */
export function leftovers(database: Database): Record<string, unknown> {
  const count = (table: string): number =>
    database.get<{ n: number }>(
      `SELECT count(*) AS n FROM ${table} WHERE operatorbundle_name NOT IN (SELECT name FROM operatorbundle WHERE name IS NOT NULL)`,
    )?.n ?? -1;
  const tables = [
    'properties',
    'dependencies',
    'related_image',
    'api_provider',
    'api_requirer',
    'deprecated',
  ];
  const helpers = database.all<{ name: string }>("SELECT name FROM sqlite_master WHERE name LIKE 'opmate%'");
  return {
    rows: tables.filter((table) => count(table) !== 0),
    helpers,
    violations: database.all('PRAGMA foreign_key_check').length,
  };
}

/** What `leftovers` is when all is as it should be. */
export const noLeftovers = { rows: [], helpers: [], violations: 0 };
