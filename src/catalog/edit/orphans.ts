import type { Version } from '../../core/semver.js';
import { sortedByBytes } from '../../core/order.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { readGraph } from '../../graph/channel-graph.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { findWaysTo } from '../../graph/ways.js';

/** Bundles that lost their upgrade path to the head of their channel. */
export interface Orphans {
  channel: string;
  /** Bundle names. */
  bundles: string[];
}

/**
 * Returns the bundles of each channel from which its head was reachable before but not after: of all bundles of the
 * package and all names in the channel, replaced and skipped ones included. For a removed channel, whose clusters
 * must switch, any head counts. `versions` are by bundle name.
 */
export function findOrphans(
  before: ReadonlyMap<string, readonly ChannelEntry[]>,
  after: ReadonlyMap<string, readonly ChannelEntry[]>,
  versions: ReadonlyMap<string, Version>,
): Orphans[] {
  const ranges = new SkipRanges();
  /** Returns the names from which the head of a channel is reachable, including the head. */
  const leadingToHead = (list: readonly ChannelEntry[], names: ReadonlySet<string>): string[] => {
    const graph = readGraph(list);
    const { reached } = findWaysTo(graph.heads, graph.entries, {
      versions,
      ranges,
      candidates: new Set([...names, ...graph.entries.keys()]),
      isKnown: (name) => name !== '',
    });
    return [...reached].filter((name) => names.has(name));
  };
  const orphans: Orphans[] = [];
  for (const [channel, entries] of before) {
    const left = after.get(channel);
    const names = new Set([...namesIn(entries), ...versions.keys()]);
    const remaining = left === undefined ? [...after.values()] : [left];
    const has = new Set(remaining.flatMap((list) => leadingToHead(list, names)));
    const bundles = sortedByBytes(leadingToHead(entries, names).filter((name) => !has.has(name)));
    if (bundles.length > 0) orphans.push({ channel, bundles });
  }
  return orphans;
}

function namesIn(entries: readonly ChannelEntry[]): Set<string> {
  const names = new Set(entries.flatMap(({ name, replaces, skips }) => [name, replaces, ...skips]));
  names.delete('');
  return names;
}
