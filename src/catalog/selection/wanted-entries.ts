import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { NameIndex } from '../../core/suggest.js';
import { type Version, compareVersions, formatVersion, parseVersion, tryParse } from '../../core/semver.js';
import type { ChannelGraph } from '../../graph/channel-graph.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import type { ChannelFacts } from '../../model/facts.js';
import type { Criteria } from './catalog-filter.js';
import { ChannelWays } from './keep-ways.js';
import { nearestVersions, toRange } from './version-bounds.js';

/** Selects the entries of channels of one package that meet criteria. */
export class WantedEntries {
  /** Bundles without a creation date that criteria asked for. */
  readonly undated = new Set<string>();
  readonly #versions: ReadonlyMap<string, Version>;
  readonly #dayOf: (name: string) => string | undefined;
  readonly #keepUndated: boolean;

  constructor(
    versions: ReadonlyMap<string, Version>,
    dayOf: (name: string) => string | undefined,
    keepUndated: boolean,
  ) {
    this.#versions = versions;
    this.#dayOf = dayOf;
    this.#keepUndated = keepUndated;
  }

  /** Returns the names of the entries of a channel that meet all criteria. */
  select(criteria: Criteria, { entries }: ChannelFacts, graph: ChannelGraph): Set<string> {
    if (criteria.version !== undefined) return this.#exactVersion(graph, criteria.version);
    return this.#selectBy(criteria, entries);
  }

  /** Returns the first bundle with a version, those written as `text` and on the chain first. */
  #exactVersion({ entries, chain }: ChannelGraph, text: string): Set<string> {
    const wanted = parseVersion(text);
    const isExact = (name: string): boolean => {
      const version = this.#versions.get(name);
      return version !== undefined && compareVersions(version, wanted) === 0;
    };
    const rank = (name: string): number => {
      if (formatVersion(this.#versions.get(name) as Version) === text) return -1;
      const place = chain.indexOf(name);
      return place < 0 ? chain.length : place;
    };
    const matches = [...entries.keys()].filter(isExact);
    return new Set(matches.sort((a, b) => rank(a) - rank(b) || compareBytes(a, b)).slice(0, 1));
  }

  #selectBy(criteria: Criteria, entries: readonly ChannelEntry[]): Set<string> {
    const ways = new ChannelWays(entries, this.#versions);
    const { versions, minVersion, maxVersion, reachableFrom, createdSince, latest } = criteria;
    const tests: ((name: string) => boolean)[] = [];
    if (versions !== undefined) {
      tests.push((name) => this.#testVersion(name, (version) => versions.range.contains(version)));
    }
    if (minVersion !== undefined || maxVersion !== undefined) {
      const isInRange = toRange({ minVersion, maxVersion }, [...this.#versions.values()]);
      tests.push((name) => this.#testVersion(name, isInRange));
    }
    if (reachableFrom !== undefined) {
      const reachable = this.#findReachable(entries, ways, reachableFrom);
      tests.push((name) => reachable.has(name));
    }
    if (createdSince !== undefined) tests.push((name) => this.#isCreatedSince(name, createdSince));
    const order = latest === undefined ? entries.map(({ name }) => name) : ways.newestFirst();
    const wanted = new Set<string>();
    for (const name of order) {
      if (wanted.size === latest) break;
      if (tests.every((test) => test(name))) wanted.add(name);
    }
    return wanted;
  }

  #testVersion(name: string, test: (version: Version) => boolean): boolean {
    const version = this.#versions.get(name);
    return version !== undefined && test(version);
  }

  #isCreatedSince(name: string, since: string): boolean {
    const day = this.#dayOf(name);
    if (day !== undefined) return day >= since;
    this.undated.add(name);
    return this.#keepUndated;
  }

  /**
   * Returns entries reachable from a bundle by name, or from all that a version may stand for: such names end with
   * it.
   */
  #findReachable(
    entries: readonly ChannelEntry[],
    ways: ChannelWays,
    installed: string,
  ): ReadonlySet<string> {
    const version = tryParse(parseVersion, installed);
    if (version === undefined) {
      const suffix = /\.v?(\d+\.\d+\.\d+.*)$/.exec(installed)?.[1];
      const known = this.#versions.get(installed) ?? tryParse(parseVersion, suffix ?? '');
      return ways.reachableFrom(new Set([installed]), known);
    }
    const names = new Set<string>();
    for (const [name, item] of this.#versions) if (compareVersions(item, version) === 0) names.add(name);
    for (const { replaces, skips } of entries) {
      for (const name of [replaces, ...skips]) {
        const isCalledSo = name.endsWith(`.v${installed}`) || name.endsWith(`.${installed}`);
        if (isCalledSo && !this.#versions.has(name)) names.add(name);
      }
    }
    return ways.reachableFrom(names, version);
  }

  /** Returns the versions nearest to the requested ones. */
  nearest({ entries }: ChannelFacts, criteria: Criteria): string | undefined {
    const { version, minVersion = version, maxVersion = version, reachableFrom, versions } = criteria;
    const known = entries.map(({ name }) => this.#versions.get(name));
    if (minVersion !== undefined || maxVersion !== undefined) {
      return nearestVersions({ minVersion, maxVersion }, known);
    }
    if (reachableFrom !== undefined) {
      const names = entries.map(({ name }) => name);
      const near = new NameIndex(names).nearest(reachableFrom);
      if (near !== undefined) return `did you mean ${quoteGo(near)}`;
      if (tryParse(parseVersion, reachableFrom) === undefined) return undefined;
      return nearestVersions({ minVersion: reachableFrom, maxVersion: undefined }, known);
    }
    const [mentioned] = versions === undefined ? [] : (/\d+\.\d+\.\d+/.exec(versions.text) ?? []);
    if (mentioned === undefined || tryParse(parseVersion, mentioned) === undefined) return undefined;
    return nearestVersions({ minVersion: mentioned, maxVersion: undefined }, known);
  }
}
