import { LimitError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { pushTo } from '../core/groups.js';
import type { ComparedRange, Version } from '../core/semver.js';
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

/** An entry of a channel, with its position among all. */
export interface UpgradeTarget {
  to: string;
  channel: string;
  position: number;
  replaces: string;
  skips: readonly string[];
  skipRange: string;
}

/** Maximum search steps; published catalogs need thousands. */
const maxSteps = 50_000_000;

/** Upgrade edges of channels. Invalid ranges skip nothing. */
export class UpgradeGraph {
  readonly #byName = new Map<string, { target: UpgradeTarget; kind: 'replaces' | 'skips' }[]>();
  readonly #targets = new Map<string, UpgradeTarget[]>();
  readonly #ranges: { text: string; range: ComparedRange; targets: readonly UpgradeTarget[] }[];
  #steps = 0;

  constructor(channels: readonly PackageChannel[], parsed = new SkipRanges()) {
    const byRange = new Map<string, UpgradeTarget[]>();
    let position = 0;
    for (const { name: channel, entries } of channels) {
      for (const { name: to, replaces, skips, skipRange } of entries) {
        const target = { to, channel, position: position++, replaces, skips, skipRange };
        pushTo(this.#targets, to, target);
        if (replaces !== '') pushTo(this.#byName, replaces, { target, kind: 'replaces' });
        for (const skip of new Set(skips)) pushTo(this.#byName, skip, { target, kind: 'skips' });
        if (skipRange !== '') pushTo(byRange, skipRange, target);
      }
    }
    this.#ranges = [...byRange].flatMap(([text, targets]) => {
      const range = parsed.get(text);
      return range === undefined ? [] : [{ text, range, targets }];
    });
  }

  /** Returns the names that entries define. */
  names(): string[] {
    return [...this.#targets.keys()];
  }

  /** Returns the entries of a bundle, in order of channels and entries. */
  targetsOf(name: string): readonly UpgradeTarget[] {
    return this.#targets.get(name) ?? [];
  }

  /** Returns the valid skip ranges, each once, with their entries. */
  ranges(): readonly { text: string; range: ComparedRange; targets: readonly UpgradeTarget[] }[] {
    return this.#ranges;
  }

  /** Returns the edges that name a bundle, `replaces` of an entry before `skips`. */
  namedEdgesFrom(name: string): [UpgradeTarget, UpgradeEdge][] {
    return (this.#byName.get(name) ?? []).map(({ target, kind }) => [
      target,
      { to: target.to, channel: target.channel, kind },
    ]);
  }

  /**
   * Returns the direct edges from a bundle, in order of channels and entries, of each entry the first matching kind.
   * Without a version, ranges are not evaluated. Throws LimitError for a graph that would take minutes.
   */
  edgesFrom(name: string, version: Version | undefined): UpgradeEdge[] {
    const edges = new Map<UpgradeTarget, UpgradeEdge>();
    for (const [target, edge] of this.namedEdgesFrom(name)) if (!edges.has(target)) edges.set(target, edge);
    for (const { text, range, targets } of version === undefined ? [] : this.#ranges) {
      this.#count(1);
      if (version === undefined || !range.contains(version)) continue;
      this.#count(targets.length);
      for (const target of targets) {
        const { to, channel } = target;
        if (!edges.has(target)) edges.set(target, { to, channel, kind: 'skipRange', range: text });
      }
    }
    return [...edges].sort(([a], [b]) => a.position - b.position).map(([, edge]) => edge);
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
