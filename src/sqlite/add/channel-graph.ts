import { type ReplacesChain, linkChain, iterateNodes } from '../../graph/version-line.js';
import { OpmateError } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type ColumnValue, type Database, toText } from '../schema/database.js';
import { type PackageEntry, type IndexedPackage, collectEdges, findHeads } from '../schema/package-state.js';

/**
 * The channels of a package as it stands. A bundle is a node when the line that starts at the head's first entry
 * passes it, which is how all readers tell `replaces` from `skips`; what only hangs on that line is skipped.
 * Names in `absent` count as no bundles of the index. Channels without any bundle are left out. Throws
 * OpmateError INVALID for a channel that has no single head, turns in a circle, or holds bundles that its
 * head does not lead to.
 */
export function channelGraphs(
  database: Database,
  packageName: string,
  state: IndexedPackage,
  absent: ReadonlySet<string>,
): Map<string, ReplacesChain> {
  const graphs = new Map<string, ReplacesChain>();
  const versions = new Map<string, string>();
  for (const [name, { version }] of state.bundles) if (!absent.has(name)) versions.set(name, version);
  const byChannel = groupBy(state.entries, ({ channel }) => channel);
  for (const [channel, edges] of collectEdges(state)) {
    if (![...edges.keys()].some((name) => versions.has(name))) continue;
    const entries = byChannel.get(channel) ?? [];
    graphs.set(
      channel,
      readChannel(channel, entries, edges, versions, (what) => {
        const subject = `${database.name}: package "${packageName}", channel "${channel}"`;
        return new OpmateError('INVALID', `${subject}: ${what}`, { file: database.name });
      }),
    );
  }
  return graphs;
}

function readChannel(
  channel: string,
  entries: readonly PackageEntry[],
  edges: ReadonlyMap<string, ReadonlySet<string>>,
  versions: ReadonlyMap<string, string>,
  fail: (what: string) => OpmateError,
): ReplacesChain {
  const [head, ...others] = findHeads(edges, versions);
  if (head === undefined) throw fail('no channel head found: its bundles replace each other in a circle');
  if (others.length > 0) {
    throw fail(`multiple candidate channel heads found: ${[head, ...others].join(', ')}`);
  }
  const chain = linkChain(channel, followEntries(head, entries, versions, fail));
  const line = new Map([...iterateNodes(chain)].map((node) => [node.name, node]));
  for (const [name, targets] of edges) {
    const node = line.get(name);
    for (const target of targets) {
      if (node === undefined) throw fail(`bundle "${name}" is not reached from the head "${head}"`);
      if (node.next?.name !== target) node.skips.add(target);
      const version = versions.get(target);
      if (version !== undefined && !line.has(target)) chain.skipped.set(target, version);
    }
  }
  return chain;
}

/** The bundles from the head on, by its entry of least depth. An end that is no bundle of the index is skipped. */
function* followEntries(
  head: string,
  entries: readonly PackageEntry[],
  versions: ReadonlyMap<string, string>,
  fail: (what: string) => OpmateError,
): Generator<{ name: string; version: string }, void, undefined> {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const next = (entry: PackageEntry): PackageEntry | undefined => byId.get(entry.replaces ?? NaN);
  const [first] = entries.filter(({ name }) => name === head).sort((a, b) => a.depth - b.depth);
  const seen = new Set<string>();
  for (let entry = first; entry !== undefined; entry = next(entry)) {
    const { name } = entry;
    if (seen.has(name)) throw fail(`Cycle detected: bundle "${name}" replaces itself`);
    seen.add(name);
    const version = versions.get(name);
    if (version !== undefined) yield { name, version };
    else if (next(entry) === undefined) return;
    else throw fail(`bundle "${name}" is replaced and replaces another, but is not in the index`);
  }
}

/**
 * Writes channels of a package and their entries, as opm's semver modes do: what a node skips stands below
 * it at depths of its own, which the next nodes share. Entries of other channels stay. Runs in the caller's
 * transaction.
 */
export function writeChannelGraphs(
  database: Database,
  packageName: string,
  graphs: Iterable<ReplacesChain>,
  defaultChannel: string,
): void {
  const channels = [...graphs].sort((a, b) => compareBytes(a.name, b.name));
  for (const { name, head } of channels) {
    const headName = head?.name ?? null;
    const { changes } = database.run(
      'UPDATE channel SET head_operatorbundle_name = ? WHERE name = ? AND package_name = ?',
      headName,
      name,
      packageName,
    );
    if (changes > 0) continue;
    database.run(
      'INSERT INTO channel(name, package_name, head_operatorbundle_name) VALUES (?, ?, ?)',
      name,
      packageName,
      headName,
    );
  }
  setDefaultChannel(database, packageName, defaultChannel);
  writeEntries(database, packageName, channels);
}

function setDefaultChannel(database: Database, packageName: string, defaultChannel: string): void {
  const { changes } = database.run(
    'UPDATE package SET default_channel = ? WHERE name = ?',
    defaultChannel,
    packageName,
  );
  if (changes === 0)
    database.run('INSERT INTO package(name, default_channel) VALUES (?, ?)', packageName, defaultChannel);
}

/** Old entries are written over and not deleted: to find what refers to one reads the whole table. */
function writeEntries(database: Database, packageName: string, channels: readonly ReplacesChain[]): void {
  const written = new Set(channels.map(({ name }) => name));
  const old = database
    .all<{ entry_id: number; channel_name: ColumnValue }>(
      'SELECT entry_id, channel_name FROM channel_entry WHERE package_name = ? ORDER BY entry_id',
      packageName,
    )
    .filter(({ channel_name }) => written.has(toText(channel_name) ?? ''))
    .map(({ entry_id }) => entry_id);
  const last = database.get<{ id: number | null }>('SELECT max(entry_id) AS id FROM channel_entry')?.id ?? 0;
  const getId = (index: number): number => old[index] ?? last + 1 + index - old.length;

  const entries = channels.flatMap(getEntries);
  let base = 0;
  for (const [index, { channel, name, depth, replaces }] of entries.entries()) {
    // Positions count within a channel.
    if (index > 0 && entries[index - 1]?.channel !== channel) base = index;
    const target = replaces === undefined ? null : getId(base + replaces);
    database.run(
      index < old.length
        ? `UPDATE channel_entry
           SET channel_name = ?, package_name = ?, operatorbundle_name = ?, depth = ?, replaces = ?
           WHERE entry_id = ?`
        : `INSERT INTO channel_entry(channel_name, package_name, operatorbundle_name, depth, replaces, entry_id)
           VALUES (?, ?, ?, ?, ?, ?)`,
      ...[channel, packageName, name, depth, target, getId(index)],
    );
  }
  for (const id of old.slice(entries.length)) {
    database.run('DELETE FROM channel_entry WHERE entry_id = ?', id);
  }
}

interface NewEntry {
  channel: string;
  name: string;
  depth: number;
  /** Position of the entry that it replaces. */
  replaces?: number;
}

function getEntries(chain: ReplacesChain): NewEntry[] {
  const { name: channel } = chain;
  const entries: NewEntry[] = [];
  let previous: NewEntry | undefined;
  let depth = 0;
  for (const node of iterateNodes(chain)) {
    const { name } = node;
    if (previous !== undefined) previous.replaces = entries.length;
    previous = { channel, name, depth };
    entries.push(previous);
    depth++;
    for (const [index, skip] of sortedByBytes(node.skips).entries()) {
      entries.push({ channel, name: skip, depth: depth + index });
      entries.push({ channel, name, depth: depth + index, replaces: entries.length - 1 });
    }
  }
  return entries;
}
