import { LimitError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { compareBytes } from '../core/order.js';
import { pushTo } from '../core/groups.js';
import type { Version, VersionRange } from '../core/semver.js';
import { type BundleVersion, compareVersionReleases } from './bundle-version.js';
import { SkipRanges } from './skip-ranges.js';
import type { PackageBundle, PackageChannel } from './resolve-content.js';

/** Start of an upgrade. Without a version, ranges are not evaluated. */
export interface UpgradeFrom {
  name: string;
  version: BundleVersion | undefined;
}

/** An upgrade edge, defined by a channel entry. */
export interface UpgradeEdge {
  /** Name of the new bundle. */
  to: string;
  channel: string;
  kind: 'replaces' | 'skips' | 'skipRange';
  /** Range of a skip-range edge. */
  range?: string;
}

/** `z`: same minor version; `y`: another minor version of the same major version; `x`: another major version. */
export type Stream = 'x' | 'y' | 'z';

/** An entry of a channel with its position among all. */
interface Target {
  to: string;
  channel: string;
  place: number;
}

/** Maximum search steps; published catalogs need thousands. */
const maxSteps = 50_000_000;

/** Upgrade edges of channels. Invalid ranges skip nothing. */
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
   * Returns the direct edges from a bundle, in order of channels and entries, of each entry the first matching kind.
   * Without a version, ranges are not evaluated. Throws LimitError for a graph that would take minutes.
   */
  edgesFrom(name: string, version: Version | undefined): UpgradeEdge[] {
    const edges = new Map<Target, UpgradeEdge>();
    for (const { target, kind } of this.#byName.get(name) ?? []) {
      const { to, channel } = target;
      if (!edges.has(target)) edges.set(target, { to, channel, kind });
    }
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
 * Yields the names of the bundles reachable by upgrades, each once, without the start. Only known bundles are passed.
 * `versions` are the known ones by bundle name.
 */
export function* walkUpgrades(
  graph: UpgradeGraph,
  from: Iterable<readonly [string, Version | undefined]>,
  versions: ReadonlyMap<string, Version>,
  isKnown: (name: string) => boolean = () => true,
): Generator<string, void, undefined> {
  const reached = new Map(from);
  // A map may be extended during iteration.
  for (const [source, version] of reached) {
    for (const { to: name } of graph.edgesFrom(source, version)) {
      if (reached.has(name) || !isKnown(name)) continue;
      reached.set(name, versions.get(name));
      yield name;
    }
  }
}

/** Describes an edge from the installed bundle: `replaces the installed bundle in channel C`. */
export function describeEdge({ kind, channel, range }: UpgradeEdge): string {
  const how =
    kind === 'skipRange' ? `skips the range ${quoteGo(range ?? '')}` : `${kind} the installed bundle`;
  return `${how} in channel ${channel}`;
}

/** Returns the stream of an upgrade; undefined unless the version increases. */
export function findStream(from: BundleVersion | undefined, to: BundleVersion): Stream | undefined {
  if (from === undefined || compareVersionReleases(from, to) >= 0) return undefined;
  const isSame = (part: keyof Pick<Version, 'major' | 'minor'>): boolean =>
    from.version[part] === to.version[part];
  if (!isSame('major')) return 'x';
  return isSame('minor') ? 'z' : 'y';
}

/** Returns the version of a bundle; undefined if invalid. */
export function findReadableVersion(bundle: PackageBundle | undefined): BundleVersion | undefined {
  return bundle === undefined || typeof bundle.version === 'string' ? undefined : bundle.version;
}

/**
 * Returns the shortest upgrade path from a bundle to a wanted one, by name of equal ones: empty if the start is
 * wanted, undefined if unreachable.
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
      for (const edge of sortedEdges(graph.edgesFrom(upgradeFrom.name, upgradeFrom.version?.version))) {
        const bundle = bundles.get(edge.to);
        if (bundle === undefined || seen.has(edge.to)) continue;
        seen.add(edge.to);
        ways.set(edge.to, { edge, before: upgradeFrom === from ? undefined : upgradeFrom.name });
        next.push({ name: edge.to, version: findReadableVersion(bundle) });
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
 * Returns the longest upgrade path between two bundles through ascending versions, which passes as many versions as
 * possible. Undefined if unreachable.
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
  // Every step ascends, so ascending order visits each bundle after all its predecessors.
  const higher = [...bundles.values()]
    .flatMap((bundle) => {
      const version = findReadableVersion(bundle);
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
    for (const edge of sortedEdges(graph.edgesFrom(item.name, item.version.version))) {
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
