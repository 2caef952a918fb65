import type { ReplacesChain, ChainNode } from '../../graph/version-line.js';
import { OpmateError } from '../../core/errors.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type ColumnValue, type Database, textOf } from '../schema/database.js';
import type { PackageEntry, PackageState } from '../schema/package-state.js';

/** An entry of a channel with the version of its bundle; undefined if none has that name. */
type Entry = PackageEntry & { version: string | undefined };

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
  state: PackageState,
  absent: ReadonlySet<string>,
): Map<string, ReplacesChain> {
  const graphs = new Map<string, ReplacesChain>();
  for (const [channel, entries] of entriesByChannel(state, absent)) {
    const fail = (what: string, hint?: string): OpmateError =>
      new OpmateError(
        'INVALID',
        `${database.name}: package "${packageName}", channel "${channel}": ${what}`,
        {
          file: database.name,
          hint,
        },
      );
    const graph = graphOf(channel, entries, fail);
    if (graph !== undefined) graphs.set(channel, graph);
  }
  return graphs;
}

function entriesByChannel(
  { entries, bundles }: PackageState,
  absent: ReadonlySet<string>,
): Map<string, Entry[]> {
  const channels = new Map<string, Entry[]>();
  for (const entry of entries) {
    const { channel, name } = entry;
    const version = absent.has(name) ? undefined : bundles.get(name)?.version;
    const found = channels.get(channel);
    if (found === undefined) channels.set(channel, [{ ...entry, version }]);
    else found.push({ ...entry, version });
  }
  return channels;
}

function graphOf(
  channel: string,
  entries: readonly Entry[],
  fail: (what: string, hint?: string) => OpmateError,
): ReplacesChain | undefined {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const targetOf = (entry: Entry): Entry | undefined =>
    entry.replaces === undefined ? undefined : byId.get(entry.replaces);

  const versions = new Map<string, string>();
  const replaced = new Set<string>();
  for (const entry of entries) {
    if (entry.version !== undefined) versions.set(entry.name, entry.version);
    const target = targetOf(entry);
    if (target !== undefined) replaced.add(target.name);
  }
  if (versions.size === 0) return undefined;
  const heads = sortedByBytes([...versions.keys()].filter((name) => !replaced.has(name)));
  if (heads.length === 0) throw fail('no channel head found: its bundles replace each other in a circle');
  if (heads.length > 1) throw fail(`multiple candidate channel heads found: ${heads.join(', ')}`);

  const { head, line } = followHead(heads[0] as string, entries, targetOf, fail);
  const skipped = new Map<string, string>();
  for (const entry of entries) {
    const target = targetOf(entry);
    if (target === undefined) continue;
    const node = line.get(entry.name);
    if (node === undefined) throw fail(`bundle "${entry.name}" is not reached from the head "${head.name}"`);
    if (node.next?.name !== target.name) node.skips.add(target.name);
    const version = versions.get(target.name);
    if (version !== undefined && !line.has(target.name)) skipped.set(target.name, version);
  }
  return { name: channel, head, skipped };
}

/** The nodes from the head on, by name. An end that is no bundle of the index is no node: it is skipped. */
function followHead(
  name: string,
  entries: readonly Entry[],
  targetOf: (entry: Entry) => Entry | undefined,
  fail: (what: string) => OpmateError,
): { head: ChainNode; line: Map<string, ChainNode> } {
  const line = new Map<string, ChainNode>();
  let first: Entry | undefined;
  for (const entry of entries) {
    if (entry.name === name && (first === undefined || entry.depth < first.depth)) first = entry;
  }
  let last: ChainNode | undefined;
  for (let entry = first; entry !== undefined; entry = targetOf(entry)) {
    if (line.has(entry.name)) throw fail(`Cycle detected: bundle "${entry.name}" replaces itself`);
    if (entry.version === undefined) {
      if (targetOf(entry) === undefined) break;
      throw fail(`bundle "${entry.name}" is replaced and replaces another, but is not in the index`);
    }
    const { version } = entry;
    const node: ChainNode = {
      name: entry.name,
      version,
      next: undefined,
      previous: last,
      skips: new Set(),
    };
    if (last !== undefined) last.next = node;
    line.set(node.name, node);
    last = node;
  }
  return { head: line.get(name) as ChainNode, line };
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
    .filter(({ channel_name }) => written.has(textOf(channel_name) ?? ''))
    .map(({ entry_id }) => entry_id);
  const last = database.get<{ id: number | null }>('SELECT max(entry_id) AS id FROM channel_entry')?.id ?? 0;
  const idOf = (index: number): number => old[index] ?? last + 1 + index - old.length;

  const entries = channels.flatMap(entriesOf);
  let base = 0;
  for (const [index, { channel, name, depth, replaces }] of entries.entries()) {
    // Positions count within a channel.
    if (index > 0 && entries[index - 1]?.channel !== channel) base = index;
    const target = replaces === undefined ? null : idOf(base + replaces);
    database.run(
      index < old.length
        ? `UPDATE channel_entry
           SET channel_name = ?, package_name = ?, operatorbundle_name = ?, depth = ?, replaces = ?
           WHERE entry_id = ?`
        : `INSERT INTO channel_entry(channel_name, package_name, operatorbundle_name, depth, replaces, entry_id)
           VALUES (?, ?, ?, ?, ?, ?)`,
      ...[channel, packageName, name, depth, target, idOf(index)],
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

function entriesOf({ name: channel, head }: ReplacesChain): NewEntry[] {
  const entries: NewEntry[] = [];
  let previous: NewEntry | undefined;
  let depth = 0;
  for (let node = head; node !== undefined; node = node.next) {
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
