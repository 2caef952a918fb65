import type { CatalogImage } from '../../catalog/catalog.js';
import { pushTo } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import {
  type BundleManifests,
  type BundleRecord,
  type TypedValue,
  withoutRepeats,
} from '../schema/bundle-record.js';
import { type EntryRow, toChannelEntries } from '../schema/channel-entries.js';
import {
  type ColumnValue,
  type Database,
  type Row,
  getColumnText,
  getNullableText,
} from '../schema/database.js';
import { LookupTables } from './lookup-tables.js';

/** A package as stored. */
export interface StoredPackage {
  name: string;
  /** Empty if none is stored; may name a missing channel. */
  defaultChannel: string;
  /** Channels in stored order; the name of a head bundle is empty if none is stored. */
  channels: { name: string; head: string }[];
}

/** A bundle in a channel with what it replaces and skips there, without its range. */
export interface StoredMember extends ChannelEntry {
  /** Row of the bundle, for `bundlesAt`. */
  id: number;
  channel: string;
}

/**
 * A bundle as stored, without its manifests. NULL columns are empty, except `version`; properties and dependencies are
 * unique.
 */
export interface StoredBundle extends Pick<
  BundleRecord,
  'name' | 'skipRange' | 'image' | 'properties' | 'dependencies'
> {
  id: number;
  version: string | null;
  /** Images of the bundle, unique and sorted; includes an empty one if its manifests do. */
  images: string[];
}

/** A property or dependency that is stored for the name of a bundle. */
export interface StoredValue extends TypedValue {
  /** Its version and image are those of the bundle, or NULL. */
  isOwn: boolean;
}

/** A bundle with its manifests and all values that are stored for its name. */
interface BundleRow extends StoredBundle {
  properties: StoredValue[];
  dependencies: StoredValue[];
  objects: Buffer;
}

/** Returns the condition that version and image of a row are those of its bundle. */
function isOwn(table: 'properties' | 'dependencies'): string {
  const fits = (column: string, own: string): string =>
    `(${table}.${column} IS NULL OR ${table}.${column} = coalesce(operatorbundle.${own}, ''))`;
  return `${fits('operatorbundle_version', 'version')} AND ${fits('operatorbundle_path', 'bundlepath')}`;
}

/** Bundles whose rows a parameter lists as JSON, joined in this order whatever the query planner prefers. */
const wantedBundles =
  'json_each(?) AS wanted CROSS JOIN main.operatorbundle ON operatorbundle.rowid = wanted.value';

/**
 * Queries of an index of any size, package by package or bundle by bundle, in one state of the database, which has the
 * latest schema. They throw OpmateError that starts with its name: INVALID for a missing or invalid table, LIMIT for a
 * value above 64 MiB.
 */
export class IndexQueries {
  readonly name: string;
  readonly #database: Database;
  readonly #lookups: LookupTables;
  /** Depth of entries for channel heads. */
  #headDepth: number | undefined;
  /** Rows of deprecated bundles. */
  #deprecated: ReadonlySet<number> | undefined;

  constructor(database: Database, lookups = new LookupTables(database)) {
    this.name = database.name;
    this.#database = database;
    this.#lookups = lookups;
  }

  #getDeprecated(): ReadonlySet<number> {
    if (this.#deprecated !== undefined) return this.#deprecated;
    this.#lookups.check('operatorbundle', 'properties');
    const rows = this.#database.all<{ id: number }>(
      `SELECT DISTINCT operatorbundle.rowid AS id FROM properties
       CROSS JOIN main.operatorbundle ON operatorbundle.name = operatorbundle_name
       WHERE CAST(type AS TEXT) = 'olm.deprecated'`,
    );
    return (this.#deprecated = new Set(rows.map(({ id }) => id)));
  }

  /**
   * Returns bundles in the order of rows, without images, with properties and dependencies as often as stored;
   * `withObjects` also reads the manifests.
   */
  bundleRows(ids: readonly number[], withObjects = false): Map<number, BundleRow> {
    this.#lookups.check('operatorbundle');
    const wanted = JSON.stringify(ids);
    const bundles = new Map<number, BundleRow>();
    for (const row of this.#database.all(
      `SELECT operatorbundle.rowid AS id, name, version, skiprange, bundlepath,
         ${withObjects ? 'bundle' : 'NULL'} AS bundle
       FROM ${wantedBundles} ORDER BY wanted.key`,
      wanted,
    )) {
      const id = Number(row['id']);
      bundles.set(id, {
        id,
        name: getColumnText(row['name']),
        version: getNullableText(row['version'] ?? null),
        skipRange: getColumnText(row['skiprange']),
        image: getColumnText(row['bundlepath']),
        images: [],
        properties: [],
        dependencies: [],
        objects: toBytes(row['bundle'] ?? null),
      });
    }
    for (const field of ['properties', 'dependencies'] as const) {
      const columns = `${field}.type, ${field}.value, ${isOwn(field)} AS own`;
      for (const { id, type, value, own } of this.#toRows(field, columns, wanted)) {
        const item = {
          type: getColumnText(type),
          value: getColumnText(value),
          isOwn: own === 1 || own === 1n,
        };
        bundles.get(Number(id))?.[field].push(item);
      }
    }
    return bundles;
  }

  /** Returns the rows of a table for the names of bundles, in stored order. */
  #toRows(table: 'properties' | 'dependencies' | 'related_image', fields: string, wanted: string): Row[] {
    return this.#database.all(
      `SELECT operatorbundle.rowid AS id, ${fields} FROM ${wantedBundles}
       CROSS JOIN ${this.#lookups.table(table)} AS own ON own.owner = operatorbundle.name
       CROSS JOIN main.${table} ON ${table}.rowid = own.id ORDER BY own.id`,
      wanted,
    );
  }

  /** Returns every package with its channels, by name. */
  packages(): StoredPackage[] {
    this.#lookups.check('package', 'channel');
    const rows = this.#database.textRows<'package' | 'name' | 'head'>(
      'SELECT package_name AS package, name, head_operatorbundle_name AS head FROM channel ORDER BY rowid',
    );
    const channels = new Map<string, StoredPackage['channels']>();
    for (const { package: owner, ...channel } of rows) pushTo(channels, owner, channel);
    return this.#database
      .textRows<'name' | 'defaultChannel'>('SELECT name, default_channel AS defaultChannel FROM package')
      .map((row) => ({ ...row, channels: channels.get(row.name) ?? [] }))
      .sort((a, b) => compareBytes(a.name, b.name));
  }

  /**
   * Returns the bundles of a package, once per channel, by channel and name. An entry names one bundle that it leads
   * from; names along the chains from the heads are replaced, others skipped. (Source: ListBundles of
   * operator-registry.)
   */
  members(packageName: string): StoredMember[] {
    this.#lookups.check('operatorbundle', 'channel_entry');
    const rows = this.#database
      .all<Record<'channel' | 'name' | 'target', ColumnValue> & EntryRow & { bundle: number | null }>(
        `SELECT entry.entry_id AS id, entry.channel_name AS channel, entry.operatorbundle_name AS name, entry.depth,
                  entry.replaces, lower.operatorbundle_name AS target, operatorbundle.rowid AS bundle
           FROM ${this.#lookups.table('entriesOfPackage')} AS own
           JOIN main.channel_entry AS entry ON entry.rowid = own.id
           LEFT JOIN main.channel_entry AS lower ON lower.entry_id = entry.replaces
           LEFT JOIN main.operatorbundle ON operatorbundle.name = entry.operatorbundle_name
           WHERE own.owner = ? AND entry.channel_name IS NOT NULL ORDER BY entry.entry_id`,
        packageName,
      )
      .map((row) => ({
        ...row,
        channel: getColumnText(row.channel),
        name: getColumnText(row.name),
        target: getNullableText(row.target),
      }));
    this.#headDepth ??= Number(
      this.#database.get('SELECT coalesce(min(depth), 0) AS depth FROM channel_entry')?.['depth'],
    );
    const starts = rows.filter(({ depth }) => depth === this.#headDepth);
    // Entries may name bundles that are not in the index.
    const ids = new Map(rows.flatMap(({ name, bundle }) => (bundle === null ? [] : [[name, bundle]])));
    return [...toChannelEntries(rows, starts)]
      .flatMap(([channel, entries]) =>
        entries.flatMap((entry): StoredMember[] => {
          const id = ids.get(entry.name);
          return id === undefined ? [] : [{ ...entry, channel, id }];
        }),
      )
      .sort((a, b) => compareBytes(a.channel, b.channel) || compareBytes(a.name, b.name));
  }

  /** Returns a bundle of a package that the index lacks; undefined in a valid index. Ignores deprecated bundles. */
  findLostBundle(): { package: string; bundle: string } | undefined {
    this.#lookups.check('operatorbundle', 'package', 'channel_entry');
    const deprecated = this.#getDeprecated();
    const rows = this.#database.iterate<{ id: number; package: ColumnValue; bundle: ColumnValue }>(
      `SELECT operatorbundle.rowid AS id, package_name AS package, operatorbundle.name AS bundle
         FROM channel_entry CROSS JOIN operatorbundle ON operatorbundle.name = operatorbundle_name
         WHERE NOT EXISTS (SELECT 1 FROM package WHERE package.name = package_name)`,
    );
    for (const row of rows) {
      if (!deprecated.has(row.id))
        return { package: getColumnText(row.package), bundle: getColumnText(row.bundle) };
    }
    return undefined;
  }

  /** Returns the row of a bundle by name; undefined if missing. */
  findBundle(name: string): number | undefined {
    this.#lookups.check('operatorbundle');
    return this.#database.get<{ id: number }>('SELECT rowid AS id FROM operatorbundle WHERE name = ?', name)
      ?.id;
  }

  /** Returns the names of all bundles, sorted. */
  bundleNames(): string[] {
    this.#lookups.check('operatorbundle');
    return this.#database.texts('SELECT name FROM operatorbundle WHERE name IS NOT NULL').sort(compareBytes);
  }

  /** Returns the skip ranges of bundles by row, without deprecated bundles. */
  liveSkipRanges(ids: readonly number[]): Map<number, string> {
    this.#lookups.check('operatorbundle');
    const deprecated = this.#getDeprecated();
    const live = ids.filter((id) => !deprecated.has(id));
    const rows = this.#database.all<{ id: number; skiprange: ColumnValue }>(
      `SELECT operatorbundle.rowid AS id, skiprange FROM ${wantedBundles}`,
      JSON.stringify(live),
    );
    return new Map(rows.map(({ id, skiprange }) => [id, getColumnText(skiprange)]));
  }

  /** Returns bundles by row, with the rows stored for their names; omits missing ones. */
  bundlesAt(ids: readonly number[]): Map<number, StoredBundle> {
    this.#lookups.check('properties', 'dependencies', 'related_image');
    const bundles = this.bundleRows(ids);
    for (const { id, image } of this.#toRows('related_image', 'image', JSON.stringify(ids)))
      if (image !== null) bundles.get(Number(id))?.images.push(getColumnText(image));
    for (const bundle of bundles.values()) {
      bundle.properties = withoutRepeats(bundle.properties);
      bundle.dependencies = withoutRepeats(bundle.dependencies);
      bundle.images = sortedByBytes(new Set(bundle.images));
    }
    return bundles;
  }

  /** Returns the manifests of a bundle by row; empty if they were dropped. */
  manifestsAt(id: number): BundleManifests {
    this.#lookups.check('operatorbundle');
    const row = this.#database.get('SELECT csv, bundle FROM operatorbundle WHERE rowid = ?', id);
    return { csv: toBytes(row?.['csv'] ?? null), objects: toBytes(row?.['bundle'] ?? null) };
  }

  /** Returns the images of a bundle, unique and sorted; none for an unknown name. */
  imagesOfBundle(name: string): string[] {
    const images = this.#database.texts(
      `SELECT image FROM ${this.#lookups.table('related_image')} AS own
         CROSS JOIN main.related_image ON related_image.rowid = own.id WHERE own.owner = ? AND image <> ''`,
      name,
    );
    return sortedByBytes(new Set(images));
  }

  /** Returns the images of all bundles, unique and sorted. */
  allImages(): string[] {
    this.#lookups.check('related_image');
    const images = this.#database.texts("SELECT DISTINCT image FROM related_image WHERE image <> ''");
    return sortedByBytes(new Set(images));
  }

  /**
   * Returns the stored images by bundle: its own first, then related ones, sorted. A bundle in several packages has
   * the first of them; includes rows of missing bundles.
   */
  *bundleImages(): Generator<CatalogImage> {
    this.#lookups.check('operatorbundle', 'channel_entry', 'related_image');
    const owners = this.#database.textRows<'bundle' | 'package'>(
      `SELECT DISTINCT operatorbundle_name AS bundle, package_name AS package FROM channel_entry
         ORDER BY package_name DESC`,
    );
    const packages = new Map(owners.map((owner) => [owner.bundle, owner.package]));
    const rows = this.#database.textRows<'bundle' | 'image' | 'kind'>(
      `SELECT name AS bundle, bundlepath AS image, 'bundle' AS kind FROM operatorbundle WHERE bundlepath <> ''
         UNION SELECT operatorbundle_name, image, 'related' FROM related_image WHERE image <> ''
         ORDER BY bundle, kind, image`,
    );
    let last: { bundle: string; images: Set<string> } | undefined;
    for (const { bundle, image, kind } of rows) {
      if (last?.bundle !== bundle) last = { bundle, images: new Set() };
      if (image === '' || last.images.has(image)) continue;
      last.images.add(image);
      yield { image, kind: kind as 'bundle' | 'related', package: packages.get(bundle) ?? '', bundle };
    }
  }

  /** Returns the bundles of each channel, including deprecated ones, without entries of missing bundles. */
  channelMembers(): { package: string; channel: string; bundle: string }[] {
    this.#lookups.check('operatorbundle', 'channel_entry');
    return this.#database.textRows(
      `SELECT DISTINCT package_name AS package, channel_name AS channel, operatorbundle_name AS bundle
         FROM channel_entry WHERE operatorbundle_name IN (SELECT name FROM operatorbundle) ORDER BY 1, 2, 3`,
    );
  }

  /** Returns name and pull specification of every bundle, by name. */
  bundleReferences(): { name: string; image: string }[] {
    this.#lookups.check('operatorbundle');
    return this.#database
      .textRows<'name' | 'image'>('SELECT name, bundlepath AS image FROM operatorbundle')
      .sort((a, b) => compareBytes(a.name, b.name) || compareBytes(a.image, b.image));
  }
}

/** Returns a number that changes when another connection changes the database. */
export function readState(database: Database): number {
  return Number(database.get('PRAGMA data_version')?.['data_version']);
}

/** Returns a column as bytes; empty for NULL. */
export function toBytes(value: ColumnValue): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(getNullableText(value) ?? '');
}
