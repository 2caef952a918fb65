import { IntervalIndex, Maxima } from '../core/interval-trees.js';
import { compareBytes, countLeading } from '../core/order.js';
import { type Version, compareVersions } from '../core/semver.js';
import { type BundleVersion, compareVersionReleases } from './bundle-version.js';
import type { PackageBundle } from './resolve-content.js';
import { SkipRanges, findIntervals } from './skip-ranges.js';
import {
  type UpgradeEdge,
  type UpgradeFrom,
  type UpgradeGraph,
  type UpgradeTarget,
  findReadableVersion,
} from './upgrade-graph.js';

/** Last edges of paths, by name of the bundle that they lead to. */
type Ways = ReadonlyMap<string, { edge: UpgradeEdge; before: string | undefined }>;

/**
 * Returns the shortest upgrade path from a bundle to a wanted one, by name of equal ones: empty if the start is
 * wanted, undefined if unreachable. Takes O(n log n) time in entries, skips and comparisons of ranges.
 */
export function shortestPath(
  graph: UpgradeGraph,
  bundles: ReadonlyMap<string, PackageBundle>,
  from: UpgradeFrom,
  isWanted: (bundle: PackageBundle) => boolean,
): UpgradeEdge[] | undefined {
  const start = bundles.get(from.name);
  if (start !== undefined && isWanted(start)) return [];
  const versions = [from.version, ...graph.names().map((name) => findReadableVersion(bundles.get(name)))]
    .flatMap((version) => version?.version ?? [])
    .sort(compareVersions);
  const byRange = indexByRange(graph, versions);
  const ways = new Map<string, { edge: UpgradeEdge; before: string | undefined }>();
  const seen = new Set([from.name]);
  let reached = [from];
  while (reached.length > 0) {
    const next: UpgradeFrom[] = [];
    for (const { name, version } of reached) {
      const position =
        version && countLeading(versions, (other) => compareVersions(other, version.version) < 0);
      // A target that was taken before was reached before.
      const inRange = position === undefined ? [] : byRange.take(position);
      for (const edge of sortedEdges([...graph.namedEdgesFrom(name), ...inRange])) {
        const bundle = bundles.get(edge.to);
        if (bundle === undefined || seen.has(edge.to)) continue;
        seen.add(edge.to);
        ways.set(edge.to, { edge, before: name === from.name ? undefined : name });
        next.push({ name: edge.to, version: findReadableVersion(bundle) });
      }
    }
    const target = next.find(({ name }) => isWanted(bundles.get(name) as PackageBundle));
    if (target !== undefined) return wayTo(target.name, ways);
    reached = next;
  }
  return undefined;
}

function indexByRange(
  graph: UpgradeGraph,
  versions: readonly Version[],
): IntervalIndex<[UpgradeTarget, UpgradeEdge]> {
  const index = new IntervalIndex<[UpgradeTarget, UpgradeEdge]>(versions.length);
  for (const { text, range, targets } of graph.ranges()) {
    const intervals = findIntervals(range, versions);
    for (const target of targets) {
      const { to, channel } = target;
      const edge: UpgradeEdge = { to, channel, kind: 'skipRange', range: text };
      for (const interval of intervals) index.add(interval, [target, edge]);
    }
  }
  return index;
}

/** Returns the edges by bundle and channel; of each entry the first one, of equal ones that of the first entry. */
function sortedEdges(edges: Iterable<readonly [UpgradeTarget, UpgradeEdge]>): UpgradeEdge[] {
  const byTarget = new Map<UpgradeTarget, UpgradeEdge>();
  for (const [target, edge] of edges) if (!byTarget.has(target)) byTarget.set(target, edge);
  return [...byTarget]
    .sort(
      ([a], [b]) => compareBytes(a.to, b.to) || compareBytes(a.channel, b.channel) || a.position - b.position,
    )
    .map(([, edge]) => edge);
}

function wayTo(name: string, ways: Ways): UpgradeEdge[] {
  const path: UpgradeEdge[] = [];
  for (let way = ways.get(name); way !== undefined;) {
    path.push(way.edge);
    way = way.before === undefined ? undefined : ways.get(way.before);
  }
  return path.reverse();
}

/**
 * Returns the longest upgrade path between two bundles through ascending versions, which passes as many versions as
 * possible. Undefined if unreachable. Takes O(n log n) time in entries, skips and comparisons of ranges.
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
  // Every step ascends, so in ascending order each bundle follows all its predecessors.
  const steps = [{ name: from.name, version: start }, ...findHigher(graph, bundles, start, from.name)];
  const positions = new Map(steps.map(({ name }, position) => [name, position]));
  const versions = steps.map(({ version }) => version.version);
  const intervals = new Map(
    graph.ranges().map(({ text, range }) => [text, findIntervals(range, versions)] as const),
  );
  const lengths = new Maxima(steps.length);
  lengths.set(0, 0);
  const before = new Map<string, string>();
  let lower = 0;
  for (const [position, { name, version }] of steps.entries()) {
    while (compareVersionReleases((steps[lower] as (typeof steps)[0]).version, version) < 0) lower++;
    let best: number | undefined;
    const consider = (other: number | undefined): void => {
      const length = other === undefined || other >= lower ? undefined : lengths.get(other);
      if (other === undefined || length === undefined) return;
      const bestLength = best === undefined ? -1 : (lengths.get(best) as number);
      if (length > bestLength || (length === bestLength && other < (best as number))) best = other;
    };
    for (const { replaces, skips, skipRange } of graph.targetsOf(name)) {
      if (replaces !== '') consider(positions.get(replaces));
      for (const skip of skips) consider(positions.get(skip));
      for (const interval of intervals.get(skipRange) ?? []) {
        if (interval.from < lower) consider(lengths.find({ ...interval, to: Math.min(interval.to, lower) }));
      }
    }
    if (best === undefined) continue;
    lengths.set(position, (lengths.get(best) as number) + 1);
    before.set(name, (steps[best] as (typeof steps)[0]).name);
  }
  if (!before.has(to)) return undefined;
  const path: UpgradeEdge[] = [];
  for (let name = to; name !== from.name;) {
    const previous = before.get(name) as string;
    path.push(findEdge(graph, steps[positions.get(previous) as number] as (typeof steps)[0], name));
    name = previous;
  }
  return path.reverse();
}

/** Returns the bundles of the graph above a version in ascending order, of equal ones by name. */
function findHigher(
  graph: UpgradeGraph,
  bundles: ReadonlyMap<string, PackageBundle>,
  start: BundleVersion,
  startName: string,
): { name: string; version: BundleVersion }[] {
  return graph
    .names()
    .flatMap((name) => {
      const version = findReadableVersion(bundles.get(name));
      const isHigher = version !== undefined && compareVersionReleases(version, start) > 0;
      return isHigher && name !== startName ? [{ name, version }] : [];
    })
    .sort((a, b) => compareVersionReleases(a.version, b.version) || compareBytes(a.name, b.name));
}

/** Returns the edge between two bundles, which must exist: of the first channel by name, with the first matching kind. */
function findEdge(
  graph: UpgradeGraph,
  { name, version }: { name: string; version: BundleVersion },
  to: string,
): UpgradeEdge {
  const ranges = new SkipRanges();
  const targets = [...graph.targetsOf(to)].sort(
    (a, b) => compareBytes(a.channel, b.channel) || a.position - b.position,
  );
  for (const { channel, replaces, skips, skipRange } of targets) {
    if (replaces === name && name !== '') return { to, channel, kind: 'replaces' };
    if (skips.includes(name)) return { to, channel, kind: 'skips' };
    if (ranges.get(skipRange)?.contains(version.version) === true)
      return { to, channel, kind: 'skipRange', range: skipRange };
  }
  throw new Error(`no edge from ${name} to ${to}`);
}
