import { compareBytes, sortedByBytes } from '../../core/order.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { type TypedValue, withoutRepeats } from '../schema/bundle-record.js';
import { type EntryRow, toChannelEntries } from '../schema/channel-entries.js';
import { type ColumnValue, type Database, type Row, text, toText } from '../schema/database.js';
import { splitSkips } from '../schema/package-state.js';
import { LookupTables } from './lookup-tables.js';

/** A package as it is stored. */
export interface StoredPackage {
  name: string;
  /** Empty where none is stored; may name a channel that is not there. */
  defaultChannel: string;
  /** In the order in which they were stored. */
  channels: StoredChannel[];
}

interface StoredChannel {
  name: string;
  /** Name of the bundle at its head; empty where none is stored. */
  head: string;
}

/** The place of a bundle in a channel: what it replaces and skips there. Its range is left out. */
export interface StoredMember extends ChannelEntry {
  /** Row of the bundle: what `bundlesAt` takes. */
  id: number;
  channel: string;
}

/** A bundle as it is stored, without its manifests. A column that holds NULL is an empty text, but for `version`. */
export interface StoredBundle {
  id: number;
  name: string;
  version: string | null;
  skipRange: string;
  replaces: string;
  skips: string[];
  substitutesFor: string;
  /** Pull specification; empty for a bundle that is in no registry. */
  image: string;
  /** The images that it needs, each once, sorted; an empty one where its manifests have none for a name. */
  images: string[];
  /** In the order in which they were stored, each once. */
  properties: TypedValue[];
  dependencies: TypedValue[];
}

/** The manifests of a bundle as they are stored: one object; and objects one after the other. Empty where there are none. */
interface StoredManifests {
  csv: Buffer;
  objects: Buffer;
}

/** Bundles whose rows a parameter lists, as JSON; joined in this order, whatever sqlite thinks of it. */
const wantedBundles =
  'json_each(?) AS wanted CROSS JOIN main.operatorbundle ON operatorbundle.rowid = wanted.value';

/**
 * Reads what is in an index, package by package or bundle by bundle, whatever its size. The database must have
 * the latest schema. All methods throw OpmateError that begins with the database's name:
 * INVALID where a table is missing or is none, LIMIT for a value above 64 MiB.
 */
export class IndexQueries {
  readonly #database: Database;
  readonly #lookups: LookupTables;
  #minDepth: number | undefined;
  #deprecated: ReadonlySet<number> | undefined;

  constructor(database: Database, lookups = new LookupTables(database)) {
    this.#database = database;
    this.#lookups = lookups;
  }

  /** How messages name the database. */
  get name(): string {
    return this.#database.name;
  }

  /** Every package with its channels, by name. */
  packages(): StoredPackage[] {
    this.#lookups.check('package', 'channel');
    const channels = new Map<string, StoredChannel[]>();
    for (const row of this.#database.iterate(
      'SELECT package_name AS package, name, head_operatorbundle_name AS head FROM channel ORDER BY rowid',
    )) {
      const owner = text(row['package']);
      const channel = { name: text(row['name']), head: text(row['head']) };
      const ofPackage = channels.get(owner);
      if (ofPackage === undefined) channels.set(owner, [channel]);
      else ofPackage.push(channel);
    }
    return this.#database
      .all('SELECT name, default_channel FROM package')
      .map((row) => ({
        name: text(row['name']),
        defaultChannel: text(row['default_channel']),
        channels: channels.get(text(row['name'])) ?? [],
      }))
      .sort((a, b) => compareBytes(a.name, b.name));
  }

  /**
   * The bundles of a package, each once for every channel that it is in, by channel and name. An entry
   * names one bundle that it leads away from; those along the way from the heads are what bundles replace,
   * the others what they skip. (Source: ListBundles of operator-registry.)
   */
  members(packageName: string): StoredMember[] {
    this.#lookups.check('operatorbundle', 'channel_entry');
    const rows = this.#database
      .all<Record<'channel' | 'name' | 'target', ColumnValue> & MemberRow>(
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
        channel: text(row.channel),
        name: text(row.name),
        target: toText(row.target),
      }));
    const headDepth = this.#headDepth();
    const starts = rows.filter(({ depth }) => depth === headDepth);
    // Entries also stand for bundles that are not in the index.
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

  /** The depth of entries that stand for channel heads. */
  #headDepth(): number {
    this.#minDepth ??= Number(
      this.#database.get<{ depth: number | null }>('SELECT min(depth) AS depth FROM channel_entry')?.depth ??
        0,
    );
    return this.#minDepth;
  }

  /**
   * A bundle that is in a package which the index does not have; undefined if missing, as in every
   * sound index. A bundle that is deprecated does not count.
   */
  findLostBundle(): { package: string; bundle: string } | undefined {
    this.#lookups.check('operatorbundle', 'package', 'channel_entry');
    const deprecated = this.#deprecatedBundles();
    const rows = this.#database.iterate<{ id: number; package: ColumnValue; bundle: ColumnValue }>(
      `SELECT operatorbundle.rowid AS id, package_name AS package, operatorbundle.name AS bundle
       FROM channel_entry CROSS JOIN operatorbundle ON operatorbundle.name = operatorbundle_name
       WHERE NOT EXISTS (SELECT 1 FROM package WHERE package.name = package_name)`,
    );
    for (const row of rows) {
      if (!deprecated.has(row.id)) return { package: text(row.package), bundle: text(row.bundle) };
    }
    return undefined;
  }

  /** The row of the bundle of a name; undefined if missing. */
  findBundle(name: string): number | undefined {
    this.#lookups.check('operatorbundle');
    return this.#database.get<{ id: number }>('SELECT rowid AS id FROM operatorbundle WHERE name = ?', name)
      ?.id;
  }

  /** Names of all bundles, sorted. */
  bundleNames(): string[] {
    this.#lookups.check('operatorbundle');
    const rows = this.#database.all('SELECT name FROM operatorbundle WHERE name IS NOT NULL');
    return rows.map((row) => text(row['name'])).sort(compareBytes);
  }

  /** The skip ranges of bundles by their rows; deprecated bundles are left out. */
  liveSkipRanges(ids: readonly number[]): Map<number, string> {
    this.#lookups.check('operatorbundle');
    const deprecated = this.#deprecatedBundles();
    const live = ids.filter((id) => !deprecated.has(id));
    const rows = this.#database.all<{ id: number; skiprange: ColumnValue }>(
      `SELECT operatorbundle.rowid AS id, skiprange FROM ${wantedBundles}`,
      JSON.stringify(live),
    );
    return new Map(rows.map(({ id, skiprange }) => [id, text(skiprange)]));
  }

  #deprecatedBundles(): ReadonlySet<number> {
    if (this.#deprecated === undefined) {
      this.#lookups.check('operatorbundle', 'properties');
      const rows = this.#database.all<{ id: number }>(
        `SELECT DISTINCT operatorbundle.rowid AS id FROM properties
         CROSS JOIN main.operatorbundle ON operatorbundle.name = operatorbundle_name
         WHERE CAST(type AS TEXT) = 'olm.deprecated'`,
      );
      this.#deprecated = new Set(rows.map(({ id }) => id));
    }
    return this.#deprecated;
  }

  /** Bundles by their rows, with what is stored for their names; those that are not there are left out. */
  bundlesAt(ids: readonly number[]): Map<number, StoredBundle> {
    this.#lookups.check('properties', 'dependencies', 'related_image');
    const bundles = this.bundleRows(ids);
    for (const { id, image } of this.#toRows('related_image', 'image', JSON.stringify(ids)))
      if (image !== null) bundles.get(Number(id))?.images.push(text(image));
    for (const bundle of bundles.values()) {
      bundle.properties = withoutRepeats(bundle.properties);
      bundle.dependencies = withoutRepeats(bundle.dependencies);
      bundle.images = sortedByBytes(new Set(bundle.images));
    }
    return bundles;
  }

  /**
   * The same in the order of the rows, without images, and with properties and dependencies as often as they are stored;
   * `withObjects` also reads the manifests.
   */
  bundleRows(ids: readonly number[], withObjects = false): Map<number, StoredBundle & { objects: Buffer }> {
    this.#lookups.check('operatorbundle');
    const wanted = JSON.stringify(ids);
    const bundles = new Map<number, StoredBundle & { objects: Buffer }>();
    for (const row of this.#database.all(
      `SELECT operatorbundle.rowid AS id, name, version, skiprange, replaces, skips, substitutesfor, bundlepath,
         ${withObjects ? 'bundle' : 'NULL'} AS bundle
       FROM ${wantedBundles} ORDER BY wanted.key`,
      wanted,
    )) {
      const id = Number(row['id']);
      bundles.set(id, {
        id,
        name: text(row['name']),
        version: toText(row['version'] ?? null),
        skipRange: text(row['skiprange']),
        replaces: text(row['replaces']),
        skips: splitSkips(text(row['skips'])),
        substitutesFor: text(row['substitutesfor']),
        image: text(row['bundlepath']),
        images: [],
        properties: [],
        dependencies: [],
        objects: toBytes(row['bundle'] ?? null),
      });
    }
    for (const field of ['properties', 'dependencies'] as const) {
      for (const { id, type, value } of this.#toRows(field, `${field}.type, ${field}.value`, wanted))
        bundles.get(Number(id))?.[field].push({ type: text(type), value: text(value) });
    }
    return bundles;
  }

  /** The rows of a table that are stored for the names of bundles, in the order in which they were stored. */
  #toRows(table: 'properties' | 'dependencies' | 'related_image', fields: string, wanted: string): Row[] {
    return this.#database.all(
      `SELECT operatorbundle.rowid AS id, ${fields} FROM ${wantedBundles}
       CROSS JOIN ${this.#lookups.table(table)} AS own ON own.owner = operatorbundle.name
       CROSS JOIN main.${table} ON ${table}.rowid = own.id ORDER BY own.id`,
      wanted,
    );
  }

  /** The manifests of a bundle by its row; of those that are cleared in the index, empty ones. */
  manifestsAt(id: number): StoredManifests {
    this.#lookups.check('operatorbundle');
    const row = this.#database.get('SELECT csv, bundle FROM operatorbundle WHERE rowid = ?', id);
    return { csv: toBytes(row?.['csv'] ?? null), objects: toBytes(row?.['bundle'] ?? null) };
  }

  /** The images that a bundle needs, each once, sorted; none for a name that is not in the index. */
  imagesOfBundle(name: string): string[] {
    return getImages(
      this.#database.all(
        `SELECT image FROM ${this.#lookups.table('related_image')} AS own
         CROSS JOIN main.related_image ON related_image.rowid = own.id WHERE own.owner = ? AND image <> ''`,
        name,
      ),
    );
  }

  /** Every image that some bundle needs, each once, sorted. */
  allImages(): string[] {
    this.#lookups.check('related_image');
    return getImages(this.#database.all(`SELECT DISTINCT image FROM related_image WHERE image <> ''`));
  }

  /**
   * The images that are stored for bundles, by bundle: its own first, then the others that it needs, sorted. A
   * bundle in several packages is told with the first of them; rows of a bundle that is not there count too.
   */
  *bundleImages(): Generator<{ image: string; kind: 'bundle' | 'related'; package: string; bundle: string }> {
    this.#lookups.check('operatorbundle', 'channel_entry', 'related_image');
    const packages = new Map<string, string>();
    for (const row of this.#database.iterate(
      `SELECT DISTINCT operatorbundle_name AS bundle, package_name AS package FROM channel_entry
       ORDER BY package_name DESC`,
    ))
      packages.set(text(row['bundle']), text(row['package']));
    const rows = this.#database.all(
      `SELECT name AS bundle, bundlepath AS image, 0 AS rank FROM operatorbundle WHERE bundlepath <> ''
       UNION SELECT operatorbundle_name, image, 1 FROM related_image WHERE image <> ''
       ORDER BY bundle, rank, image`,
    );
    let last: { bundle: string; images: Set<string> } | undefined;
    for (const row of rows) {
      const [bundle, image] = [text(row['bundle']), text(row['image'])];
      if (last?.bundle !== bundle) last = { bundle, images: new Set() };
      if (image === '' || last.images.has(image)) continue;
      last.images.add(image);
      const kind = Number(row['rank']) === 0 ? 'bundle' : 'related';
      yield { image, kind, package: packages.get(bundle) ?? '', bundle };
    }
  }

  /** Which bundles are in which channels, deprecated ones included; entries of bundles that are not there do not count. */
  *channelMembers(): Generator<{ package: string; channel: string; bundle: string }> {
    this.#lookups.check('operatorbundle', 'channel_entry');
    const rows = this.#database.all(
      `SELECT DISTINCT package_name AS package, channel_name AS channel, operatorbundle_name AS bundle
       FROM channel_entry WHERE operatorbundle_name IN (SELECT name FROM operatorbundle) ORDER BY 1, 2, 3`,
    );
    for (const row of rows)
      yield { package: text(row['package']), channel: text(row['channel']), bundle: text(row['bundle']) };
  }

  /** Name and pull specification of every bundle, by name. */
  bundleReferences(): { name: string; image: string }[] {
    this.#lookups.check('operatorbundle');
    return this.#database
      .all('SELECT name, bundlepath FROM operatorbundle')
      .map((row) => ({ name: text(row['name']), image: text(row['bundlepath']) }))
      .sort((a, b) => compareBytes(a.name, b.name) || compareBytes(a.image, b.image));
  }

  /** A number that changes when another connection changes the database. */
  state(): number {
    return Number(this.#database.get('PRAGMA data_version')?.['data_version']);
  }
}

/** An entry with the row of its bundle. */
interface MemberRow extends EntryRow {
  bundle: number | null;
}

/** A column as bytes; none where it holds NULL. */
export function toBytes(value: ColumnValue): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(toText(value) ?? '');
}

function getImages(rows: readonly Row[]): string[] {
  return sortedByBytes(new Set(rows.map((row) => text(row['image']))));
}
