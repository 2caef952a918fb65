import { OpmateError } from '../../core/errors.js';
import { readGraph } from '../../graph/channel-graph.js';
import { type ColumnValue, type Database, toText } from './database.js';

/** A package as it stands in an index. */
export interface IndexedPackage {
  /** Empty where it has none, or is not there. */
  defaultChannel: string;
  /** Names of its channels. */
  channels: Set<string>;
  entries: PackageEntry[];
  /** The bundles of the index that have an entry in it, by name. */
  bundles: Map<string, IndexedBundle>;
}

export interface PackageEntry {
  id: number;
  channel: string;
  name: string;
  depth: number;
  /** The entry that this one replaces. */
  replaces: number | undefined;
}

interface IndexedBundle {
  version: string;
  /** Empty for one that is in no registry. */
  image: string;
}

/** Reads a package; one that is not there has nothing. Throws OpmateError INVALID for entries without names. */
export function readPackage(database: Database, packageName: string): IndexedPackage {
  const state: IndexedPackage = { defaultChannel: '', channels: new Set(), entries: [], bundles: new Map() };
  const row = database.get<{ default_channel: ColumnValue }>(
    'SELECT default_channel FROM package WHERE name = ?',
    packageName,
  );
  state.defaultChannel = toText(row?.default_channel ?? null) ?? '';
  for (const { name } of database.all<{ name: ColumnValue }>(
    'SELECT name FROM channel WHERE package_name = ?',
    packageName,
  )) {
    state.channels.add(toText(name) ?? '');
  }
  const absent = new Set<string>();
  for (const entry of database.all<Record<'id' | 'channel' | 'name' | 'depth' | 'replaces', ColumnValue>>(
    `SELECT entry_id AS id, channel_name AS channel, operatorbundle_name AS name, depth, replaces
     FROM channel_entry WHERE package_name = ? ORDER BY entry_id`,
    packageName,
  )) {
    const channel = toText(entry.channel);
    const name = toText(entry.name);
    const id = Number(entry.id);
    const fail = (what: string): OpmateError =>
      new OpmateError('INVALID', `package ${packageName} has an entry ${what}`, {
        subject: database.name,
        file: database.name,
      });
    if (channel === null || name === null) throw fail('without a channel or bundle');
    // It would be taken for another one.
    if (!Number.isSafeInteger(id)) throw fail('whose number is too large');
    const { replaces } = entry;
    state.entries.push({
      id,
      channel,
      name,
      depth: Number(entry.depth ?? 0),
      replaces: replaces === null ? undefined : Number(replaces),
    });
    if (state.bundles.has(name) || absent.has(name)) continue;
    const bundle = readBundle(database, name);
    if (bundle === undefined) absent.add(name);
    else state.bundles.set(name, bundle);
  }
  return state;
}

/** What an index has of a bundle, whether it is in a channel or not; undefined where it has none. */
export function readBundle(database: Database, name: string): IndexedBundle | undefined {
  // By the index that has all three columns: the row itself is as long as its manifests.
  const row = database.get<{ version: ColumnValue; bundlepath: ColumnValue }>(
    'SELECT version, bundlepath FROM operatorbundle INDEXED BY pk WHERE name = ?',
    name,
  );
  return row && { version: toText(row.version) ?? '', image: toText(row.bundlepath) ?? '' };
}

/** The columns of a bundle from which its place in the upgrade graph follows. */
export interface BundleEdges {
  name: string;
  version: string;
  replaces: string;
  skips: string[];
  substitutesFor: string;
}

/** Reads the edges of a bundle, empty where the columns are; undefined if none has that name. */
export function readEdges(database: Database, name: string): BundleEdges | undefined {
  const row = database.get<Record<'version' | 'replaces' | 'skips' | 'substitutesfor', ColumnValue>>(
    'SELECT version, replaces, skips, substitutesfor FROM operatorbundle WHERE name = ?',
    name,
  );
  if (row === undefined) return undefined;
  return {
    name,
    version: toText(row.version) ?? '',
    replaces: toText(row.replaces) ?? '',
    skips: (toText(row.skips) ?? '').split(',').filter((skip) => skip !== ''),
    substitutesFor: toText(row.substitutesfor) ?? '',
  };
}

/** The bundles of a channel with these edges that no other replaces or skips, in byte order. */
export function findHeads(
  edges: ReadonlyMap<string, ReadonlySet<string>>,
  bundles: ReadonlyMap<string, unknown>,
): string[] {
  // What an entry replaces is one of its edges, as what it skips is.
  const entries = [...edges].map(([name, names]) => ({
    name,
    replaces: '',
    skips: [...names],
    skipRange: '',
  }));
  return readGraph(entries).heads.filter((name) => bundles.has(name));
}

/** The names that each bundle replaces or skips in each channel: channel, bundle, names. */
export function collectEdges({ entries }: IndexedPackage): Map<string, Map<string, Set<string>>> {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const edges = new Map<string, Map<string, Set<string>>>();
  for (const { channel, name, replaces } of entries) {
    const inChannel = edges.get(channel) ?? new Map<string, Set<string>>();
    edges.set(channel, inChannel);
    const names = inChannel.get(name) ?? new Set<string>();
    inChannel.set(name, names);
    const replaced = replaces === undefined ? undefined : byId.get(replaces);
    if (replaced !== undefined) names.add(replaced.name);
  }
  return edges;
}
