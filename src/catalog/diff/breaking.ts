import { createFault } from '../../core/diagnostic.js';
import { quoteGo } from '../../core/go-json-quote.js';
import {
  type ComparedRange,
  type Version,
  compareVersions,
  parseVersion,
  tryParse,
} from '../../core/semver.js';
import { findHead } from '../../graph/channel-graph.js';
import { SkipRanges, findIntervals } from '../../graph/skip-ranges.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import type { CatalogFacts } from '../../model/facts.js';
import { findOrphans } from '../edit/orphans.js';

/** Kinds of changes that break clusters which use a catalog. */
export const breakingCodes = [
  'package-removed',
  'channel-removed',
  'bundle-stranded',
  'edge-lost',
  'head-moved-back',
  'default-channel-changed',
  'image-changed',
] as const;
type BreakingCode = (typeof breakingCodes)[number];

export type BreakingChange = CatalogDiagnostic<BreakingCode>;

/** Facts of one package. */
interface PackageState {
  name: string;
  defaultChannel: string;
  channels: Map<string, readonly ChannelEntry[]>;
  /** Versions and images by bundle name. */
  versions: Map<string, Version>;
  images: Map<string, string>;
}

/**
 * Returns the changes from one catalog to another that break clusters: removed packages and channels, installed bundles
 * without an upgrade to a head, lost edges, heads that move back, other default channels, and other images of the same
 * bundle. With `packages`, of these only.
 */
export function findBreakingChanges(
  before: CatalogFacts,
  after: CatalogFacts,
  packages?: ReadonlySet<string>,
): BreakingChange[] {
  const later = groupPackages(after);
  const changes: BreakingChange[] = [];
  for (const [name, old] of groupPackages(before)) {
    if (packages?.has(name) === false) continue;
    const now = later.get(name);
    const add: Add = (code, problem, hint, place = {}) => {
      const subject = [`package ${quoteGo(name)}`];
      if (place.channel !== undefined) subject.push(`channel ${quoteGo(place.channel)}`);
      const fault = createFault(code, `${subject.join(', ')}: ${problem}`, { hint });
      changes.push({ ...fault, code, package: name, ...place });
    };
    if (now === undefined) {
      add('package-removed', 'removed', 'keep the package');
      continue;
    }
    compareDefaults(old, now, add);
    compareGraphs(old, now, add);
    compareImages(old, now, add);
  }
  return changes;
}

type Add = (code: BreakingCode, problem: string, hint: string, place?: Partial<BreakingChange>) => void;

function groupPackages({ packages, channels, bundles }: CatalogFacts): Map<string, PackageState> {
  const states = new Map<string, PackageState>();
  for (const { name, defaultChannel } of packages) {
    const maps = { channels: new Map(), versions: new Map(), images: new Map() };
    states.set(name, { name, defaultChannel, ...maps });
  }
  for (const channel of channels) states.get(channel.package)?.channels.set(channel.name, channel.entries);
  for (const { package: owner, name, image, packageProperties } of bundles) {
    const state = states.get(owner);
    const version = tryParse(parseVersion, packageProperties[0]?.version ?? '');
    if (version !== undefined) state?.versions.set(name, version);
    state?.images.set(name, image);
  }
  return states;
}

function compareDefaults(old: PackageState, now: PackageState, add: Add): void {
  if (old.defaultChannel === now.defaultChannel) return;
  const problem = `default channel changes from ${quoteGo(old.defaultChannel)} to ${quoteGo(now.defaultChannel)}`;
  add('default-channel-changed', problem, 'keep the default channel');
}

function compareGraphs(old: PackageState, now: PackageState, add: Add): void {
  for (const { channel, bundles } of findOrphans(old.channels, now.channels, old.versions)) {
    for (const bundle of bundles) {
      const problem = `no upgrade from bundle ${quoteGo(bundle)} to a head`;
      add('bundle-stranded', problem, 'keep it, or let a newer bundle replace or skip it', {
        channel,
        bundle,
      });
    }
  }
  for (const [channel, entries] of old.channels) {
    const current = now.channels.get(channel);
    if (current === undefined) {
      add('channel-removed', 'removed', 'keep the channel, which subscriptions name', { channel });
      continue;
    }
    compareHeads(channel, findHead(entries), findHead(current), { old, now }, add);
    for (const { from, to } of findLostEdges(entries, current, old.versions)) {
      const problem = `upgrade from ${quoteGo(from)} to ${quoteGo(to)} is lost`;
      add('edge-lost', problem, 'keep replaces, skips or skipRange', { channel, bundle: to });
    }
  }
}

function compareHeads(
  channel: string,
  from: string,
  to: string,
  { old, now }: { old: PackageState; now: PackageState },
  add: Add,
): void {
  const [before, after] = [old.versions.get(from), now.versions.get(to)];
  if (before === undefined || after === undefined || compareVersions(after, before) >= 0) return;
  const problem = `head moves back from ${quoteGo(from)} to ${quoteGo(to)}`;
  add('head-moved-back', problem, 'keep the head', { channel, bundle: from });
}

/** Returns the edges to bundles that a channel has before and after, but only before. */
function findLostEdges(
  before: readonly ChannelEntry[],
  after: readonly ChannelEntry[],
  versions: ReadonlyMap<string, Version>,
): { from: string; to: string }[] {
  const ranges = new SkipRanges();
  const current = new Map(after.map((entry) => [entry.name, entry]));
  const versioned = before.flatMap(({ name }) => {
    const version = versions.get(name);
    return version === undefined ? [] : [{ name, version }];
  });
  versioned.sort((a, b) => compareVersions(a.version, b.version));
  const sorted = versioned.map(({ version }) => version);
  const listSkipped = (skipRange: string): string[] => {
    const range = ranges.get(skipRange);
    if (range === undefined) return [];
    return findIntervals(range, sorted).flatMap(({ from, to }) =>
      versioned.slice(from, to).map(({ name }) => name),
    );
  };
  return before.flatMap(({ name: to, replaces, skips, skipRange }) => {
    const entry = current.get(to);
    if (entry === undefined) return [];
    const skipped = skipRange === entry.skipRange ? [] : listSkipped(skipRange);
    const sources = new Set([replaces, ...skips, ...skipped]);
    for (const name of ['', to]) sources.delete(name);
    const range = ranges.get(entry.skipRange);
    return [...sources]
      .filter((from) => !hasEdge(entry, from, versions.get(from), range))
      .map((from) => ({ from, to }));
  });
}

function hasEdge(
  { replaces, skips }: ChannelEntry,
  from: string,
  version: Version | undefined,
  range: ComparedRange | undefined,
): boolean {
  if (replaces === from || skips.includes(from)) return true;
  return version !== undefined && range?.contains(version) === true;
}

function compareImages(old: PackageState, now: PackageState, add: Add): void {
  for (const [bundle, image] of old.images) {
    const current = now.images.get(bundle);
    if (current === undefined || current === image) continue;
    const problem = `image of bundle ${quoteGo(bundle)} changes from ${quoteGo(image)} to ${quoteGo(current)}`;
    add('image-changed', problem, 'publish it under a new name', { bundle });
  }
}
