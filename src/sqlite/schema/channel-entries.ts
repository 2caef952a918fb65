/**
 * Form of the upgrade graph of a channel in the table `channel_entry`, known to this module only. An entry leads from
 * one bundle to one other, so a bundle with skips has several. The `replaces` chain starts at the entry of the head
 * and continues at the entry that each one replaces; what other entries of a bundle lead to is skipped. A skipped
 * name has two entries: its own, which leads nowhere, and one of the skipping bundle.
 */
import type { ChannelEntry } from '../../model/declarative-config.js';
import { compareBytes } from '../../core/order.js';
import type { Database } from './database.js';

/** A row of `channel_entry`. */
export interface EntryRow {
  id: number;
  channel: string;
  name: string;
  /** Increases from the head, whose chain entry has the minimum. */
  depth: number | null;
  /** Replaced row, and its name. */
  replaces: number | null;
  target: string | null;
}

/**
 * Converts rows of a package to graph entries by channel, channels and names in order of appearance. `starts` are the
 * rows at which chains start. If several chains continue from a bundle, it replaces the last name in byte order.
 * (Source: ListBundles of operator-registry.)
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

/** A bundle in the chain of a channel, which replaces the next, with its skips in order. */
export type ChainLink = Pick<ChannelEntry, 'name' | 'skips'>;

/**
 * Rewrites the entries of a channel from its chain, head first. With `sharesDepths` the next bundle of the chain has
 * the depth of the first name skipped before it, as in the semver modes of `opm`; otherwise a greater one.
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
      channel,
      packageName,
      name,
      replaces,
      depth,
    ).id;
  let depth = 0;
  let upper: number | undefined;
  for (const { name, skips } of chain) {
    const entry = insert(name, depth++, null);
    // Written separately: an edge to a missing entry makes sqlite search for it.
    if (upper !== undefined)
      database.run('UPDATE channel_entry SET replaces = ? WHERE entry_id = ?', entry, upper);
    upper = entry;
    for (const [index, skipped] of skips.entries())
      insert(name, depth + index, insert(skipped, depth + index, null));
    if (!sharesDepths) depth += skips.length;
  }
}
