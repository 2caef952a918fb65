import { UpgradeGraph } from '../graph/upgrade-graph.js';
import { SkipRanges } from '../graph/skip-ranges.js';
import { readGraph } from '../graph/channel-graph.js';
import type { PackageChannel } from '../graph/resolve-content.js';
import type { Version } from '../core/semver.js';
import type { BundlePlace } from './responses.js';

interface PlaceFacts {
  channels: Iterable<PackageChannel>;
  defaultChannel: string;
  /** Versions by bundle name. */
  versions: ReadonlyMap<string, Version>;
}

/** Returns the entries of a bundle in the channels of its package, with its upgrades in each. */
export function findBundlePlaces(
  { channels, defaultChannel, versions }: PlaceFacts,
  name: string,
): BundlePlace[] {
  const ranges = new SkipRanges();
  const version = versions.get(name);
  return [...channels].flatMap((channel): BundlePlace[] => {
    const entry = channel.entries.find((other) => other.name === name);
    if (entry === undefined) return [];
    const others = channel.entries.filter((other) => other.name !== name);
    const range = ranges.get(entry.skipRange);
    const covered = others.flatMap((other) => {
      const known = versions.get(other.name);
      return known !== undefined && range?.contains(known) === true ? [other.name] : [];
    });
    // OLM installs a skipped bundle only if no other upgrade exists.
    const { skipped } = readGraph(channel.entries);
    const edges = new UpgradeGraph([channel], ranges).edgesFrom(name, version);
    const targets = edges.map(({ to }) => to).filter((to) => to !== name);
    const unskipped = targets.filter((other) => !skipped.has(other));
    const updatesTo = unskipped.length > 0 ? unskipped : targets;
    const known = new Set(channel.entries.map((other) => other.name));
    const updatesFrom = [...new Set([entry.replaces, ...entry.skips, ...covered])].filter((other) =>
      known.has(other),
    );
    const { replaces, skips, skipRange } = entry;
    const isDefault = channel.name === defaultChannel;
    const place = { channel: channel.name, isDefault, replaces, skips, skipRange };
    const absent = [replaces, ...skips].filter((other) => other !== '' && !known.has(other));
    return [{ ...place, absent, covered, updatesTo, updatesFrom }];
  });
}
