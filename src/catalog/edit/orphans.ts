import type { Version } from '../../core/semver.js';
import { sortedByBytes } from '../../core/order.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { readGraph } from '../../graph/channel-graph.js';
import { UpgradeRules } from '../../graph/upgrade-rules.js';
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
  const rules = new UpgradeRules(versions);
  const orphans: Orphans[] = [];
  for (const [channel, entries] of before) {
    const left = after.get(channel);
    const names = new Set([...namesIn(entries), ...versions.keys()]);
    const had = leadingToHead(entries, names, rules);
    const has =
      left === undefined
        ? new Set([...after.values()].flatMap((other) => [...leadingToHead(other, names, rules)]))
        : leadingToHead(left, names, rules);
    const bundles = sortedByBytes([...had].filter((name) => !has.has(name)));
    if (bundles.length > 0) orphans.push({ channel, bundles });
  }
  return orphans;
}

function namesIn(entries: readonly ChannelEntry[]): Set<string> {
  const names = new Set(entries.flatMap(({ name, replaces, skips }) => [name, replaces, ...skips]));
  names.delete('');
  return names;
}

/** Returns the names from which the head of a channel is reachable, including the head. */
function leadingToHead(
  entries: readonly ChannelEntry[],
  names: ReadonlySet<string>,
  rules: UpgradeRules,
): Set<string> {
  const graph = readGraph(entries);
  const { reached } = findWaysTo(graph.heads, graph.entries, {
    rules,
    candidates: new Set([...names, ...graph.entries.keys()]),
    isKnown: (name) => name !== '',
  });
  return new Set([...reached].filter((name) => names.has(name)));
}
