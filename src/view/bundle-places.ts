import { readBundleVersion, readBundleVersions } from '../graph/bundle-version.js';
import { UpgradeGraph } from '../graph/upgrade-graph.js';
import { UpgradeRules } from '../graph/upgrade-rules.js';
import { readGraph } from '../graph/channel-graph.js';
import type { BundlePlace } from './answers.js';
import type { ViewedPackage } from './viewed-package.js';

/** Returns where a bundle stands in the channels of its package, and which bundles lead to it and on from it. */
export function findPlaces({ channels, bundles, facts }: ViewedPackage, name: string): BundlePlace[] {
  const rules = new UpgradeRules(readBundleVersions(bundles.values()));
  const version = readBundleVersion(bundles.get(name));
  const source = { name, version: version && { version } };
  return [...channels.values()].flatMap((channel): BundlePlace[] => {
    const entry = channel.entries.find((other) => other.name === name);
    if (entry === undefined) return [];
    const others = channel.entries.filter((other) => other.name !== name);
    const covered = others
      .filter((other) => rules.isInSkipRange(other.name, entry))
      .map((other) => other.name);
    // A skipped one is passed over, unless nothing else leads on.
    const { skipped } = readGraph(channel.entries);
    const edges = new UpgradeGraph([channel], rules.ranges).edgesFrom(source);
    const leadOn = edges.map(({ to }) => to).filter((to) => to !== name);
    const installed = leadOn.filter((other) => !skipped.has(other));
    const updatesTo = installed.length > 0 ? installed : leadOn;
    const known = new Set(channel.entries.map((other) => other.name));
    const updatesFrom = [...new Set([entry.replaces, ...entry.skips, ...covered])].filter((other) =>
      known.has(other),
    );
    const { replaces, skips, skipRange } = entry;
    const isDefault = channel.name === facts?.defaultChannel;
    const place = { channel: channel.name, isDefault, replaces, skips, skipRange };
    const absent = [replaces, ...skips].filter((other) => other !== '' && !known.has(other));
    return [{ ...place, absent, covered, updatesTo, updatesFrom }];
  });
}
