import { takeTurn } from '../../core/concurrency.js';
import { quoteGo } from '../../document/go-json.js';
import { listNames } from '../../core/suggest.js';
import { type Version, compareVersions, formatVersion, parseVersion } from '../../core/semver.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import type { ChannelFacts } from '../../model/facts.js';
import { type ChannelGraph, describeGraphFault } from '../../graph/channel-graph.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { findWaysTo } from '../../graph/ways.js';
import type { CatalogSubject } from '../../model/catalog-diagnostic.js';
import type { FindingList } from './finding-list.js';

/**
 * Maximum comparisons of versions with ranges per channel. Published channels need less than a thousandth; the rest
 * is not checked.
 */
const maxComparisons = 10_000_000;

/** Known versions of the bundles of a package. */
type Versions = ReadonlyMap<string, Version>;

/** Examines one channel. `versions` are those of all bundles of the package. Yields to other work between entries. */
export async function examineChannel(
  channel: ChannelFacts,
  graph: ChannelGraph,
  versions: Versions,
  findings: FindingList,
): Promise<void> {
  return new ChannelExamination(channel, graph, versions, findings).run();
}

/** Examines the entries of one channel, and the ways to its head. */
class ChannelExamination {
  readonly #channel: ChannelFacts;
  readonly #graph: ChannelGraph;
  readonly #versions: Versions;
  readonly #findings: FindingList;
  readonly #at = new Map<string, number>();
  readonly #comparisons = { left: maxComparisons };
  readonly #ranges = new SkipRanges();
  /** Entries with a known version, lowest first. */
  readonly #ordered: { name: string; version: Version }[];

  constructor(channel: ChannelFacts, graph: ChannelGraph, versions: Versions, findings: FindingList) {
    this.#channel = channel;
    this.#graph = graph;
    this.#versions = versions;
    this.#findings = findings;
    this.#ordered = [...graph.entries.keys()]
      .flatMap((name) => {
        const version = versions.get(name);
        return version === undefined ? [] : [{ name, version }];
      })
      .sort((a, b) => compareVersions(a.version, b.version));
  }

  async run(): Promise<void> {
    for (const [index, { name }] of this.#channel.entries.entries())
      if (!this.#at.has(name)) this.#at.set(name, index);
    for (const entry of this.#graph.entries.values()) {
      this.#examineEntry(entry);
      await takeTurn();
    }
    // For an invalid graph, validation reports what to change first.
    if (this.#graph.entries.size === 0 || describeGraphFault(this.#graph) !== undefined) return;
    const head = this.#graph.heads[0] as string;
    this.#examineHead(head);
    this.#examineWays(head);
  }

  #locate(name: string, ...path: (string | number)[]): CatalogSubject {
    const { package: packageName, name: channelName, origin } = this.#channel;
    const index = this.#at.get(name) ?? 0;
    return {
      package: packageName,
      channel: channelName,
      bundle: name,
      origin,
      path: ['entries', index, ...path],
    };
  }

  #examineEntry(entry: ChannelEntry): void {
    const { name, replaces, skips, skipRange } = entry;
    const own = this.#versions.get(name);
    if (replaces !== '' && !this.#graph.entries.has(replaces)) {
      const message = `replaces ${quoteGo(replaces)}, which is not an entry of the channel`;
      const hint =
        'add the entry, or ignore this if a filter has removed it: clusters with that bundle can still upgrade';
      this.#findings.add('replaces-outside', this.#locate(name, 'replaces'), message, hint);
    }
    if (own !== undefined) {
      this.#examineDirection(name, own, 'replaces', [replaces]);
      this.#examineDirection(name, own, 'skips', skips);
      if (skipRange !== '') this.#examineRange(entry, own);
    }
    if (skipRange !== '' && this.#isEmpty(skipRange)) {
      const hint = 'set a lower end below its upper end';
      const message = `its skipRange ${quoteGo(skipRange)} matches no version`;
      this.#findings.add('skip-range-empty', this.#locate(name, 'skipRange'), message, hint);
    }
  }

  #examineDirection(name: string, own: Version, field: 'replaces' | 'skips', names: readonly string[]): void {
    const higher = names.filter((text) => {
      const version = this.#versions.get(text);
      return version !== undefined && text !== name && compareVersions(version, own) > 0;
    });
    if (higher.length === 0) return;
    const index = field === 'replaces' ? [] : [names.indexOf(higher[0] as string)];
    const message = listNames(`with version ${formatVersion(own)} it ${field} higher versions:`, higher);
    const hint = 'list only lower versions: clusters with that version would be downgraded';
    this.#findings.add('downgrade', this.#locate(name, field, ...index), message, hint);
  }

  #examineRange(entry: ChannelEntry, own: Version): void {
    const { name, skipRange } = entry;
    const range = this.#ranges.get(skipRange);
    if (range === undefined) return;
    this.#comparisons.left -= this.#ordered.length;
    if (this.#comparisons.left < 0) return;
    const subject = this.#locate(name, 'skipRange');
    const higher: string[] = [];
    const missed: string[] = [];
    const skips = new Set(entry.skips);
    let maybe: string[] = [];
    let isAbove = false;
    for (const other of this.#ordered) {
      const isIn = range.contains(other.version);
      const order = compareVersions(other.version, own);
      if (order > 0 && isIn) higher.push(other.name);
      if (order >= 0) continue;
      if (isIn) {
        missed.push(...maybe);
        maybe = [];
        isAbove = true;
      } else if (isAbove && entry.replaces !== other.name && !skips.has(other.name)) {
        maybe.push(other.name);
      }
    }
    if (higher.length > 0) {
      const message = listNames(`its skipRange ${quoteGo(skipRange)} covers higher versions:`, higher);
      const hint = `set the upper end to <${formatVersion(own)}: clusters with that version may be downgraded`;
      this.#findings.add('downgrade', subject, message, hint);
    } else if (range.contains(own)) {
      const message = `its own version ${formatVersion(own)} is in its skipRange ${quoteGo(skipRange)}`;
      const hint = `set the upper end to <${formatVersion(own)}`;
      this.#findings.add('skip-range-self', subject, message, hint);
    }
    if (missed.length > 0) {
      const message = listNames(`its skipRange ${quoteGo(skipRange)} does not cover`, missed);
      const hint = 'include them, unless upgrades from them are unsupported';
      this.#findings.add('skip-range-hole', subject, message, hint);
    }
  }

  /** Reports whether a valid range contains none of the versions around its bounds. */
  #isEmpty(text: string): boolean {
    const range = this.#ranges.get(text);
    if (range === undefined || text.length > 1000) return false;
    const bounds = text.match(/\d+(\.(\d+|x)){1,2}[^\s<>=!|]*/g) ?? [];
    const versions = [...bounds, '0.0.0', '99999999.0.0'].map(around);
    if (versions.some((list) => list.length === 0)) return false;
    return !versions.flat().some((version) => range.contains(version));
  }

  #examineHead(head: string): void {
    const own = this.#versions.get(head);
    const highest = this.#ordered.at(-1);
    if (own === undefined || highest === undefined || compareVersions(highest.version, own) <= 0) return;
    const other = `${quoteGo(highest.name)} (${formatVersion(highest.version)})`;
    const message = `its head ${quoteGo(head)} (${formatVersion(own)}) is lower than ${other}`;
    const hint = `set ${quoteGo(highest.name)} as the head, or remove it: OLM v0 installs the head, OLM v1 the highest version`;
    this.#findings.add('head-not-highest', { ...this.#locate(head, 'name') }, message, hint);
  }

  /** Reports entries without a path to the head. */
  #examineWays(head: string): void {
    const { entries } = this.#graph;
    const { reached } = findWaysTo([head], entries, {
      versions: this.#versions,
      ranges: this.#ranges,
      budget: this.#comparisons,
    });
    if (this.#comparisons.left < 0) return;
    for (const name of entries.keys()) {
      if (reached.has(name)) continue;
      const message = `has no upgrade path to the head ${quoteGo(head)}`;
      const hint = 'replace or skip it in a later entry: clusters that run it cannot upgrade';
      this.#findings.add('unreachable', this.#locate(name, 'name'), message, hint);
    }
  }
}

/** Returns the version of a bound, the next one, and its first prerelease. */
function around(bound: string): Version[] {
  const parts = bound.replaceAll('x', '0').split('.');
  const text = parts.length === 2 ? `${bound.replaceAll('x', '0')}.0` : bound.replaceAll('x', '0');
  try {
    const version = parseVersion(text);
    const patch = BigInt(version.patch) + 1n;
    const next = `${version.major}.${version.minor}.${patch}`;
    const below = { ...version, pre: [0], build: [] };
    const after = { ...version, pre: [...version.pre, 0], build: [] };
    return [version, below, after, parseVersion(next), parseVersion(`${next}-0`)];
  } catch {
    // An unusual bound is not evaluated.
    return [];
  }
}
