import { LimitError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { compareBytes } from '../core/order.js';
import { pushTo } from '../core/groups.js';
import type { Version, VersionRange } from '../core/semver.js';
import { type BundleVersion, compareVersionReleases } from './bundle-version.js';
import { SkipRanges } from './skip-ranges.js';
import type { PackageBundle, PackageChannel } from './resolve-content.js';

/** The bundle that an upgrade begins with. Without a version, no range can tell whether it skips it. */
export interface UpgradeFrom {
  name: string;
  version: BundleVersion | undefined;
}

/** The same without the text of the version. */
export interface UpgradeSource {
  name: string;
  version: { version: Version } | undefined;
}

/** Why a bundle may take the place of another: an entry of a channel says so. */
export interface UpgradeEdge {
  /** Name of the bundle that takes the place. */
  to: string;
  channel: string;
  kind: 'replaces' | 'skips' | 'skipRange';
  /** The range, for one of that kind. */
  range?: string;
}

/** `z` for the same minor version, `y` for another of the same major version, `x` for another major version. */
export type Stream = 'x' | 'y' | 'z';

/** An entry of a channel, and its place among all. */
interface Target {
  to: string;
  channel: string;
  place: number;
}

/** Steps of looking for ways that a catalog may ask for; real ones ask for thousands. */
const maxSteps = 50_000_000;

/** Upgrade edges of channels. A range that cannot be read skips nothing. */
export class UpgradeGraph {
  readonly #byName = new Map<string, { target: Target; kind: 'replaces' | 'skips' }[]>();
  readonly #byRange = new Map<string, Target[]>();
  readonly #ranges: { text: string; range: VersionRange }[];
  #steps = 0;

  constructor(channels: readonly PackageChannel[], parsed = new SkipRanges()) {
    let place = 0;
    for (const { name: channel, entries } of channels) {
      for (const { name: to, replaces, skips, skipRange } of entries) {
        const target = { to, channel, place: place++ };
        if (replaces !== '') pushTo(this.#byName, replaces, { target, kind: 'replaces' });
        for (const skip of new Set(skips)) pushTo(this.#byName, skip, { target, kind: 'skips' });
        if (skipRange !== '') pushTo(this.#byRange, skipRange, target);
      }
    }
    this.#ranges = [...this.#byRange.keys()].flatMap((text) => {
      const range = parsed.get(text);
      return range === undefined ? [] : [{ text, range }];
    });
  }

  /**
   * The edges from a bundle by one step, in order of channels and entries; of each entry the first kind that holds.
   * Throws LimitError for a graph that would take minutes.
   */
  edgesFrom(from: UpgradeSource): UpgradeEdge[] {
    const edges = new Map<Target, UpgradeEdge>();
    for (const { target, kind } of this.#byName.get(from.name) ?? []) {
      const { to, channel } = target;
      if (!edges.has(target)) edges.set(target, { to, channel, kind });
    }
    const version = from.version?.version;
    for (const { text, range } of version === undefined ? [] : this.#ranges) {
      this.#count(1);
      if (version === undefined || !range.contains(version)) continue;
      const targets = this.#byRange.get(text) ?? [];
      this.#count(targets.length);
      for (const target of targets) {
        const { to, channel } = target;
        if (!edges.has(target)) edges.set(target, { to, channel, kind: 'skipRange', range: text });
      }
    }
    return [...edges].sort(([a], [b]) => a.place - b.place).map(([, edge]) => edge);
  }

  #count(steps: number): void {
    this.#steps += steps;
    if (this.#steps <= maxSteps) return;
    throw new LimitError('the channels of the package have too many upgrades to follow', {
      hint: 'select fewer channels',
    });
  }
}

/**
 * Yields the bundles that upgrades lead to from some, step by step, each once; not those that it begins with. It goes
 * through known bundles only. `versions` are those of the bundles by name, as far as they are known.
 */
export function* walkUpgrades(
  graph: UpgradeGraph,
  from: Iterable<UpgradeSource>,
  versions: ReadonlyMap<string, Version>,
  isKnown: (name: string) => boolean = () => true,
): Generator<string, void, undefined> {
  const sources = [...from];
  const seen = new Set(sources.map(({ name }) => name));
  for (const source of sources) {
    for (const { to: name } of graph.edgesFrom(source)) {
      if (seen.has(name) || !isKnown(name)) continue;
      seen.add(name);
      yield name;
      const version = versions.get(name);
      sources.push({ name, version: version && { version } });
    }
  }
}

/** An edge in words, for `A VERB B in channel C`. */
export function describeEdge({ kind, channel, range }: UpgradeEdge): string {
  const how = kind === 'skipRange' ? `skips the range ${quoteGo(range ?? '')}, and so it,` : `${kind} it`;
  return `${how} in channel ${channel}`;
}

/** In which stream an upgrade stays; undefined where it leads to no higher version. */
export function findStream(from: BundleVersion | undefined, to: BundleVersion): Stream | undefined {
  if (from === undefined || compareVersionReleases(from, to) >= 0) return undefined;
  const isSame = (part: keyof Pick<Version, 'major' | 'minor'>): boolean =>
    from.version[part] === to.version[part];
  if (!isSame('major')) return 'x';
  return isSame('minor') ? 'z' : 'y';
}

/** Bundles by name; of several with one name, the first. */
export function bundlesByName(bundles: readonly PackageBundle[]): Map<string, PackageBundle> {
  const byName = new Map<string, PackageBundle>();
  for (const bundle of bundles) if (!byName.has(bundle.name)) byName.set(bundle.name, bundle);
  return byName;
}

/** The version of a bundle that has one. */
export function readableVersion(bundle: PackageBundle | undefined): BundleVersion | undefined {
  return bundle === undefined || typeof bundle.version === 'string' ? undefined : bundle.version;
}

/**
 * The fewest upgrades that lead from a bundle to one that is wanted: none where it is wanted itself, undefined where
 * nothing leads there. Of several such ways the one whose names come first.
 */
export function shortestPath(
  graph: UpgradeGraph,
  bundles: ReadonlyMap<string, PackageBundle>,
  from: UpgradeFrom,
  isWanted: (bundle: PackageBundle) => boolean,
): UpgradeEdge[] | undefined {
  const start = bundles.get(from.name);
  if (start !== undefined && isWanted(start)) return [];
  const ways = new Map<string, { edge: UpgradeEdge; before: string | undefined }>();
  let reached = [from];
  const seen = new Set([from.name]);
  while (reached.length > 0) {
    const next: UpgradeFrom[] = [];
    for (const upgradeFrom of reached) {
      for (const edge of sortedEdges(graph.edgesFrom(upgradeFrom))) {
        const bundle = bundles.get(edge.to);
        if (bundle === undefined || seen.has(edge.to)) continue;
        seen.add(edge.to);
        ways.set(edge.to, { edge, before: upgradeFrom === from ? undefined : upgradeFrom.name });
        next.push({ name: edge.to, version: readableVersion(bundle) });
      }
    }
    const target = next.find(({ name }) => isWanted(bundles.get(name) as PackageBundle));
    if (target !== undefined) return wayTo(target.name, ways);
    reached = next;
  }
  return undefined;
}

function wayTo(
  name: string,
  ways: ReadonlyMap<string, { edge: UpgradeEdge; before: string | undefined }>,
): UpgradeEdge[] {
  const path: UpgradeEdge[] = [];
  for (let where: string | undefined = name; where !== undefined;) {
    const way = ways.get(where);
    if (way === undefined) break;
    path.unshift(way.edge);
    where = way.before;
  }
  return path;
}

/**
 * The most upgrades that lead from a bundle to another, each to a higher version: what passing through every version
 * takes. Undefined where nothing leads there.
 */
export function longestPath(
  graph: UpgradeGraph,
  bundles: ReadonlyMap<string, PackageBundle>,
  from: UpgradeFrom,
  to: string,
): UpgradeEdge[] | undefined {
  if (from.name === to) return [];
  const start = from.version;
  if (start === undefined) return undefined;
  // Every step leads up, so ascending order reaches each bundle after all from which it can be reached.
  const higher = [...bundles.values()]
    .flatMap((bundle) => {
      const version = readableVersion(bundle);
      const isHigher = version !== undefined && compareVersionReleases(version, start) > 0;
      return isHigher && bundle.name !== from.name ? [{ name: bundle.name, version }] : [];
    })
    .sort((a, b) => compareVersionReleases(a.version, b.version) || compareBytes(a.name, b.name));
  const versions = new Map(higher.map(({ name, version }) => [name, version]));
  const lengths = new Map([[from.name, 0]]);
  const ways = new Map<string, { edge: UpgradeEdge; before: string | undefined }>();
  for (const item of [{ name: from.name, version: start }, ...higher]) {
    const length = lengths.get(item.name);
    if (length === undefined) continue;
    for (const edge of sortedEdges(graph.edgesFrom(item))) {
      const version = versions.get(edge.to);
      if (version === undefined || compareVersionReleases(version, item.version) <= 0) continue;
      if ((lengths.get(edge.to) ?? 0) >= length + 1) continue;
      lengths.set(edge.to, length + 1);
      ways.set(edge.to, { edge, before: item.name === from.name ? undefined : item.name });
    }
  }
  return ways.has(to) ? wayTo(to, ways) : undefined;
}

function sortedEdges(edges: readonly UpgradeEdge[]): UpgradeEdge[] {
  return [...edges].sort((a, b) => compareBytes(a.to, b.to) || compareBytes(a.channel, b.channel));
}
