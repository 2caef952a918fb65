/**
 * The form in which the table `channel_entry` has the upgrade graph of a channel, which no other module knows. An entry
 * leads from one bundle to one other, so a bundle with skips has several. The chain of `replaces` begins at the entry of
 * the head and goes on from each entry to the one that it replaces; what other entries of a bundle lead to is skipped.
 * For each skipped name there are two entries: its own, which leads nowhere, and one of the bundle that skips it.
 */
import type { ChannelEntry } from '../../model/declarative-config.js';
import { compareBytes } from '../../core/order.js';
import type { Database } from './database.js';

/** A row of `channel_entry`. */
export interface EntryRow {
  id: number;
  channel: string;
  name: string;
  /** Grows from the head on, whose entry in the chain has the least. */
  depth: number | null;
  /** The row that this one replaces, and the name there. */
  replaces: number | null;
  target: string | null;
}

/**
 * Converts rows of a package to entries of the graph, by channel, channels and names in the order in which they come.
 * `starts` are the rows at which chains begin. Where several chains lead on from a bundle, the last name in byte order is
 * the one that it replaces. (Source: ListBundles of operator-registry.)
 */
export function toChannelEntries(
  rows: readonly EntryRow[],
  starts: readonly EntryRow[],
): Map<string, ChannelEntry[]> {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const inChain = new Set<EntryRow>();
  for (const start of starts) {
    let next: EntryRow | undefined = start;
    for (; next !== undefined && !inChain.has(next); next = byId.get(next.replaces ?? NaN)) inChain.add(next);
  }
  const channels = new Map<string, Map<string, ChannelEntry>>();
  for (const row of rows) {
    const { channel, name, target } = row;
    const entries = channels.get(channel) ?? new Map<string, ChannelEntry>();
    channels.set(channel, entries);
    const entry = entries.get(name) ?? { name, replaces: '', skips: [], skipRange: '' };
    entries.set(name, entry);
    if (target === null) continue;
    if (!inChain.has(row)) entry.skips.push(target);
    else if (compareBytes(target, entry.replaces) > 0) entry.replaces = target;
  }
  return new Map([...channels].map(([channel, entries]) => [channel, [...entries.values()]]));
}

/** A bundle in the chain of a channel, which replaces the next, and what it skips, in order. */
export type ChainLink = Pick<ChannelEntry, 'name' | 'skips'>;

/**
 * Writes the entries of a channel anew from its chain, head first. With `sharesDepths` the next bundle of the chain has the
 * depth of the first name that is skipped before it, as in the semver modes of `opm`; else its depth is above theirs.
 */
export function writeChain(
  database: Database,
  packageName: string,
  channel: string,
  chain: readonly ChainLink[],
  { sharesDepths = false }: { sharesDepths?: boolean } = {},
): void {
  database.run('DELETE FROM channel_entry WHERE channel_name = ? AND package_name = ?', channel, packageName);
  const insert = (name: string, depth: number, replaces: number | null): number =>
    database.run(
      'INSERT INTO channel_entry (channel_name, package_name, operatorbundle_name, replaces, depth) VALUES (?, ?, ?, ?, ?)',
      ...[channel, packageName, name, replaces, depth],
    ).id;
  let depth = 0;
  let upper: number | undefined;
  for (const { name, skips } of chain) {
    const entry = insert(name, depth++, null);
    // Not written with the entry: an edge to an entry that is not there yet makes sqlite search for it.
    if (upper !== undefined)
      database.run('UPDATE channel_entry SET replaces = ? WHERE entry_id = ?', entry, upper);
    upper = entry;
    for (const [index, skipped] of skips.entries())
      insert(name, depth + index, insert(skipped, depth + index, null));
    if (!sharesDepths) depth += skips.length;
  }
}
