import { OpmateError } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { type Version, parseVersion, tryParse } from '../../core/semver.js';
import { readGraph } from '../../graph/channel-graph.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { type EntryRow, toChannelEntries } from './channel-entries.js';
import { type ColumnValue, type Database, getColumnText, getNullableText } from './database.js';

/** A package in an index. */
export interface IndexPackage {
  /** Empty without one, or if the package is missing. */
  defaultChannel: string;
  /** Stored heads by channel; empty without one. */
  heads: Map<string, string>;
  /** Entries by channel, without ranges. */
  channels: Map<string, ChannelEntry[]>;
  /** Bundles of the index with an entry in the package, by name. */
  bundles: Map<string, IndexedBundle>;
}

interface IndexedBundle {
  version: string;
  /** Empty for a bundle that is in no registry. */
  image: string;
}

// Uses the index with all three columns: the row itself is as long as its manifests.
const bundleQuery = 'SELECT name, version, bundlepath AS image FROM operatorbundle INDEXED BY pk WHERE name';
type BundleColumns = 'name' | 'version' | 'image';

/** Reads a package; a missing one is empty. Throws OpmateError INVALID for entries without names. */
export function readPackage(database: Database, packageName: string): IndexPackage {
  const [defaultChannel = ''] = database.texts(
    'SELECT default_channel FROM package WHERE name = ?',
    packageName,
  );
  const heads = database.textRows<'channel' | 'head'>(
    'SELECT name AS channel, head_operatorbundle_name AS head FROM channel WHERE package_name = ? ORDER BY rowid',
    packageName,
  );
  const bundles = database.textRows<BundleColumns>(
    `${bundleQuery} IN (SELECT operatorbundle_name FROM channel_entry WHERE package_name = ?)`,
    packageName,
  );
  const state: IndexPackage = {
    defaultChannel,
    heads: new Map(heads.map(({ channel, head }) => [channel, head])),
    channels: new Map(),
    bundles: new Map(bundles.map(({ name, ...bundle }) => [name, bundle])),
  };
  const rows = readEntries(database, packageName);
  state.channels = toChannelEntries(rows, findStarts(rows, state));
  return state;
}

function readEntries(database: Database, packageName: string): EntryRow[] {
  const fail = (what: string): OpmateError =>
    new OpmateError('INVALID', `package ${packageName} has an entry ${what}`, {
      about: database.name,
    });
  return database
    .all<Record<keyof EntryRow, ColumnValue>>(
      `SELECT own.entry_id AS id, own.channel_name AS channel, own.operatorbundle_name AS name, own.depth,
         own.replaces, lower.operatorbundle_name AS target
       FROM channel_entry AS own LEFT JOIN channel_entry AS lower ON lower.entry_id = own.replaces
       WHERE own.package_name = ? ORDER BY own.entry_id`,
      packageName,
    )
    .map((row) => {
      if (row.channel === null || row.name === null) throw fail('without a channel or bundle');
      // It would be read as another entry.
      if (!Number.isSafeInteger(row.id)) throw fail('whose number is too large');
      return {
        id: Number(row.id),
        channel: getColumnText(row.channel),
        name: getColumnText(row.name),
        depth: Number(row.depth),
        replaces: row.replaces === null ? null : Number(row.replaces),
        target: getNullableText(row.target),
      };
    });
}

/**
 * Returns the starts of chains of channels: the stored head, and each bundle that no other leads to, as edits of a
 * channel with another head than the stored one follow its graph.
 */
function findStarts(rows: readonly EntryRow[], { heads, bundles }: IndexPackage): EntryRow[] {
  const byDepth = [...rows].sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0));
  const byChannel = groupBy(byDepth, ({ channel }) => channel);
  return [...toChannelEntries(rows, [])].flatMap(([channel, entries]) => {
    const names = new Set([heads.get(channel), ...findHeads(entries, bundles)]);
    return [...names].flatMap((head) => byChannel.get(channel)?.find(({ name }) => name === head) ?? []);
  });
}

/** Returns the bundles of a channel that no other entry replaces or skips, in byte order. */
export function findHeads(entries: readonly ChannelEntry[], bundles: ReadonlyMap<string, unknown>): string[] {
  return readGraph(entries).heads.filter((name) => bundles.has(name));
}

/** Returns the versions of the bundles of a package by name; undefined for an invalid one. */
export function readVersions({ bundles }: IndexPackage): Map<string, Version | undefined> {
  return new Map([...bundles].map(([name, { version }]) => [name, tryParse(parseVersion, version)]));
}

/** Returns a bundle of an index, in a channel or not; undefined if missing. */
export function readBundle(database: Database, name: string): IndexedBundle | undefined {
  return database.textRows<BundleColumns>(`${bundleQuery} = ?`, name)[0];
}

/** Columns of a bundle that determine its place in the upgrade graph; empty for NULL. */
export interface BundleEdges extends IndexedBundle {
  name: string;
  replaces: string;
  /** Skipped names as stored, possibly with an empty one. */
  skips: string[];
  substitutesFor: string;
  isDeprecated: boolean;
}

/** Reads the edges of a bundle; undefined if missing. */
export function readEdges(database: Database, name: string): BundleEdges | undefined {
  const [row] = database.textRows<'version' | 'image' | 'replaces' | 'skips' | 'substitutesFor'>(
    `SELECT version, bundlepath AS image, replaces, skips, substitutesfor AS substitutesFor
     FROM operatorbundle WHERE name = ?`,
    name,
  );
  if (row === undefined) return undefined;
  const skips = row.skips === '' ? [] : row.skips.split(',');
  return { ...row, name, skips, isDeprecated: isDeprecated(database, name) };
}

/** Reports whether a bundle is deprecated, even without a row. */
export function isDeprecated(database: Database, name: string): boolean {
  return database.has('SELECT 1 FROM deprecated WHERE operatorbundle_name = ?', name);
}
