import { deprecationKey, readDeprecations } from '../model/deprecations.js';
import { formatMessage } from '../core/diagnostic.js';
import { OpmateError, getMessage } from '../core/errors.js';
import { getOrAdd, groupBy } from '../core/groups.js';
import { quoteGo } from '../document/go-json.js';
import { compareBytes, sortLikeGo } from '../core/order.js';
import { printableLine } from '../core/printable.js';
import { type Version, compareVersions, parseVersion } from '../core/semver.js';
import { type ChannelEntry, propertyTypes, schemas } from '../model/declarative-config.js';
import type { CatalogFacts, ChannelFacts } from '../model/facts.js';
import { SkipRanges } from './skip-ranges.js';

/** Options of a drawing. */
export interface DrawOptions {
  /** Omit everything below this bundle, and all other packages. */
  minimumEdge?: string | undefined;
  /** Draw only these packages; all if empty. */
  packages?: readonly string[] | undefined;
  /** Mark skipped bundles, and links to them, in red. */
  drawV0Semantics?: boolean | undefined;
  /**
   * Maximum number of links from the ranges of a channel. Beyond it each range is drawn as one node that leads to its
   * entries, so that the drawing grows linearly. Default: unlimited, as in `opm`.
   */
  maxRangeLinks?: number | undefined;
  /** Maximum characters of a name; longer names are shortened. Default: unlimited, as in `opm`. */
  maxNameLength?: number | undefined;
}

/** A drawing in pieces, which can be read repeatedly, with warnings about omissions. */
interface GraphDrawing {
  text: Iterable<string>;
  warnings: string[];
}

/** A filtered channel, in the order of all channels by name. */
interface Plan {
  package: string;
  name: string;
  id: string;
  entries: ChannelEntry[];
  newestFirst: ChannelEntry[];
  /** Each range is a node, as it has too many links. */
  drawsRangesOnce: boolean;
}

/** Number of links of a channel, and runs of those to skipped entries: ranges make millions of them. */
interface Links {
  count: number;
  skipped: { start: number; end: number }[];
}

type BundleClass = 'deprecated' | 'deprecatedskipped' | 'skipped';

/**
 * Limits of drawings other than those of `opm`. Names are repeated in every link, ranges in each of their links, and
 * Mermaid rejects more than 500 links by default.
 */
export const drawingLimits = { maxRangeLinks: 2_000, maxNameLength: 253 } as const;

/**
 * Draws the upgrade graph of a catalog in Mermaid, as `opm alpha render-graph` does. The catalog may be invalid, but
 * each bundle needs one `olm.package` property with a version. Throws OpmateError INVALID otherwise, NOT_FOUND for an
 * unknown minimum edge.
 */
export function drawGraph(facts: CatalogFacts, options: DrawOptions = {}): GraphDrawing {
  return new MermaidDrawing(facts, options).draw();
}

/** Draws channels one after the other, with names shortened alike in all of them. */
class MermaidDrawing {
  readonly #facts: CatalogFacts;
  readonly #options: DrawOptions;
  readonly #versions: Map<string, Version>;
  readonly #ranges = new SkipRanges();
  readonly #maxNameLength: number;
  readonly #shortened = new Map<string, number>();
  readonly #plans: Plan[] = [];
  readonly #warnings: string[] = [];

  constructor(facts: CatalogFacts, options: DrawOptions) {
    this.#facts = facts;
    this.#options = options;
    this.#versions = readVersions(facts);
    this.#maxNameLength = options.maxNameLength ?? Infinity;
  }

  draw(): GraphDrawing {
    const channels = sortLikeGo(this.#facts.channels, (a, b) => compareBytes(a.name, b.name));
    const keep = channelFilter(channels, this.#versions, this.#ranges, this.#options);
    for (const channel of channels) {
      const entries = keep(channel);
      if (entries !== undefined) this.#planChannel(channel, entries);
    }
    if (this.#shortened.size > 0) {
      this.#warnings.push(
        `drawing ${this.#shortened.size} names shortened: more than ${this.#maxNameLength} characters`,
      );
    }
    return { text: { [Symbol.iterator]: () => this.#writeGraph() }, warnings: this.#warnings };
  }

  /** Plans a channel, and shortens its names in the order of drawing. */
  #planChannel(channel: ChannelFacts, entries: ChannelEntry[]): void {
    const newestFirst = sortLikeGo(entries, (a, b) =>
      compareVersions(versionIn(this.#versions, b), versionIn(this.#versions, a)),
    );
    for (const entry of newestFirst) {
      const { fault } = this.#ranges.read(entry.skipRange);
      if (fault === undefined) continue;
      const place = `${quoteGo(channel.package)}/${quoteGo(entry.name)}`;
      this.#warnings.push(`ignoring invalid SkipRange for package/edge ${place}: ${fault}`);
    }
    const { package: packageName, name } = channel;
    const id = printableLine(`${this.#shorten(packageName)}-${this.#shorten(name)}`);
    const excess = findExcess(entries, this.#versions, this.#ranges, this.#options.maxRangeLinks ?? Infinity);
    if (excess !== undefined) {
      const place = `${quoteGo(this.#shorten(packageName))}/${quoteGo(this.#shorten(name))}`;
      this.#warnings.push(`drawing each SkipRange as one node for package/channel ${place}: ${excess}`);
    }
    for (const entry of entries)
      [entry.name, entry.replaces, ...entry.skips].forEach((name) => this.#shorten(name));
    this.#plans.push({
      package: packageName,
      name,
      id,
      entries,
      newestFirst,
      drawsRangesOnce: excess !== undefined,
    });
  }

  /** Shortens a name that is too long, each to a unique text. */
  #shorten(name: string): string {
    if (name.length <= this.#maxNameLength) return name;
    const number = getOrAdd(this.#shortened, name, () => this.#shortened.size + 1);
    return `${name.slice(0, this.#maxNameLength)}…${number}`;
  }

  *#writeGraph(): Iterator<string> {
    // Of any package, as upstream.
    const deprecations = readDeprecations(this.#facts.deprecations);
    const deprecatedPackages = new Set(
      this.#facts.deprecations
        .filter(({ entries }) => entries.some(({ reference }) => reference.schema === schemas.package))
        .map((blob) => blob.package),
    );
    const classes: Record<BundleClass, string[]> = { deprecated: [], deprecatedskipped: [], skipped: [] };
    yield 'graph LR\n';
    yield '  classDef deprecated fill:#E8960F\n';
    yield '  classDef skipped stroke:#FF0000,stroke-width:4px\n';
    yield '  classDef deprecatedskipped fill:#E8960F,stroke:#FF0000,stroke-width:4px\n';

    const links = new Map<Plan, Links>();
    const byPackage = groupBy(this.#plans, (plan) => plan.package);
    for (const name of [...byPackage.keys()].sort(compareBytes)) {
      const shown = quoteGo(this.#shorten(name));
      yield `  %% package ${shown}\n  subgraph ${shown}\n`;
      for (const plan of byPackage.get(name) ?? []) {
        const channelLinks: Links = { count: 0, skipped: [] };
        links.set(plan, channelLinks);
        yield* this.#writeChannel(plan, deprecations, classes, channelLinks);
      }
      yield '  end\n';
    }

    const lastDeprecated = this.#plans.findLast((plan) => deprecatedPackages.has(plan.package));
    if (lastDeprecated !== undefined && lastDeprecated.package !== '') {
      yield `style ${printableLine(this.#shorten(lastDeprecated.package))} fill:#989695\n`;
    }
    for (const plan of this.#plans)
      if (deprecations.has(deprecationKey(schemas.channel, plan.name)))
        yield `style ${plan.id} fill:#DCD0FF\n`;
    for (const name of ['deprecated', 'deprecatedskipped', 'skipped'] as const) {
      if (classes[name].length === 0) continue;
      yield* writeList('class ', classes[name].sort(compareBytes), ` ${name}\n`);
    }
    // Links are numbered across packages, by channel name, as upstream.
    const skippedLinks = numberSkipped(this.#plans.map((plan) => links.get(plan) as Links));
    const style = ' stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;\n';
    if (this.#plans.some((plan) => links.get(plan)?.skipped.length)) {
      yield* writeList('linkStyle ', skippedLinks, style);
    }
  }

  *#writeChannel(
    plan: Plan,
    deprecations: ReadonlyMap<string, string>,
    classes: Record<BundleClass, string[]>,
    links: Links,
  ): Iterable<string> {
    const channelName = quoteGo(this.#shorten(plan.name));
    yield `    %% channel ${channelName}\n    subgraph ${plan.id}[${channelName}]\n`;
    const nodeId = (name: string): string => `${plan.id}-${printableLine(this.#shorten(name))}`;
    const node = (name: string): string => `${nodeId(name)}[${quoteGo(this.#shorten(name))}]`;
    const targets = plan.entries.map((entry) => ({
      node: node(entry.name),
      version: versionIn(this.#versions, entry),
    }));
    const skipped = new Set<string>();
    const rangeIds = new Map<string, string>();
    for (const entry of plan.newestFirst) {
      const own = node(entry.name);
      let text = `      ${own}\n`;
      const decoration = findClass(
        deprecations.has(deprecationKey(schemas.bundle, entry.name)),
        skipped.has(entry.name),
      );
      if (decoration !== undefined) classes[decoration].push(nodeId(entry.name));
      const link = (from: string, label: string, leadsToSkipped: boolean): void => {
        text += `      ${from}-- ${label} --> ${own}\n`;
        if (leadsToSkipped) addSkipped(links);
        links.count++;
      };
      for (const skip of entry.skips) {
        link(node(skip), 'skip', skipped.has(skip));
        if (this.#options.drawV0Semantics === true) skipped.add(skip);
        if (text.length > maxPiece) {
          yield text;
          text = '';
        }
      }
      const range = this.#ranges.get(entry.skipRange);
      if (range !== undefined && plan.drawsRangesOnce) {
        const id = rangeIds.get(entry.skipRange) ?? `${plan.id}-skipRange-${rangeIds.size}`;
        rangeIds.set(entry.skipRange, id);
        const shown = `${id}(["${printableLine(entry.skipRange)}"])`;
        link(shown, 'skipRange', skipped.has(entry.name));
      } else if (range !== undefined) {
        const label = `"skipRange(${printableLine(entry.skipRange)})"`;
        for (const target of targets) {
          if (!range.contains(target.version)) continue;
          link(target.node, label, skipped.has(entry.name));
          if (text.length > maxPiece) {
            yield text;
            text = '';
          }
        }
      }
      if (entry.replaces !== '') link(node(entry.replaces), 'replace', skipped.has(entry.name));
      yield text;
    }
    yield '    end\n';
  }
}

/** Returns the channels of a drawing with their remaining entries. Throws as `drawGraph`. */
export function selectDrawn(
  facts: CatalogFacts,
  options: Pick<DrawOptions, 'minimumEdge' | 'packages'>,
): ChannelFacts[] {
  const channels = [...facts.channels].sort(
    (a, b) => compareBytes(a.package, b.package) || compareBytes(a.name, b.name),
  );
  const keep = channelFilter(channels, readVersions(facts), new SkipRanges(), options);
  return channels.flatMap((channel) => {
    const entries = keep(channel);
    return entries === undefined ? [] : [{ ...channel, entries }];
  });
}

function* numberSkipped(channels: readonly Links[]): Iterable<number> {
  let before = 0;
  for (const { count, skipped } of channels) {
    for (const { start, end } of skipped) for (let link = start; link < end; link++) yield before + link;
    before += count;
  }
}

function* writeList(
  start: string,
  items: Iterable<string | number>,
  end: string,
): Generator<string, undefined> {
  let text = start;
  let separator = '';
  for (const item of items) {
    text += `${separator}${item}`;
    separator = ',';
    if (text.length <= maxPiece) continue;
    yield text;
    text = '';
  }
  yield text + end;
}

/** Counts the next link of a channel as one to a skipped entry. */
function addSkipped(links: Links): void {
  const last = links.skipped.at(-1);
  if (last?.end === links.count) last.end++;
  else links.skipped.push({ start: links.count, end: links.count + 1 });
}

/** Maximum comparisons with ranges per channel, whatever its number of links. */
const maxRangeChecks = 4_000_000;

/** Characters of a range equivalent to one comparison. */
const checkLength = 64;

/** Maximum characters of ranges in all links of a channel. */
const maxRangeText = 1 << 18;

/** Returns the limit that the ranges of a channel exceed: links, their text, or comparisons. */
function findExcess(
  entries: readonly ChannelEntry[],
  versions: ReadonlyMap<string, Version>,
  ranges: SkipRanges,
  maxLinks: number,
): string | undefined {
  if (maxLinks === Infinity) return undefined;
  const withRange = entries.filter(({ skipRange }) => skipRange !== '');
  const checks = withRange.reduce((sum, { skipRange }) => sum + Math.ceil(skipRange.length / checkLength), 0);
  if (checks * entries.length > maxRangeChecks) return `more than ${maxRangeChecks} comparisons`;
  const targets = entries.map((entry) => versionIn(versions, entry));
  let links = 0;
  let text = 0;
  for (const { skipRange } of withRange) {
    const range = ranges.get(skipRange);
    if (range === undefined) continue;
    for (const target of targets) {
      if (!range.contains(target)) continue;
      if (++links > maxLinks) return `more than ${maxLinks} links`;
      text += skipRange.length;
      if (text > maxRangeText) return `more than ${maxRangeText} characters in links`;
    }
  }
  return undefined;
}

/** Maximum length of pending text, so that a range over a large channel does not accumulate. */
const maxPiece = 1 << 16;

function findClass(deprecated: boolean, skipped: boolean): BundleClass | undefined {
  if (deprecated) return skipped ? 'deprecatedskipped' : 'deprecated';
  return skipped ? 'skipped' : undefined;
}

/** Returns versions by bundle name, of the first bundle with a name, whatever its package, as upstream. */
function readVersions(facts: CatalogFacts): Map<string, Version> {
  const versions = new Map<string, Version>();
  for (const bundle of facts.bundles) {
    if (versions.has(bundle.name)) continue;
    const name = quoteGo(bundle.name);
    const [fault] = bundle.propertyFaults;
    const [property] = bundle.packageProperties;
    if (fault !== undefined) {
      throw new OpmateError('INVALID', `parse properties for bundle ${name}: ${formatMessage(fault)}`);
    }
    if (property === undefined || bundle.packageProperties.length > 1) {
      const type = quoteGo(propertyTypes.package);
      const count = property === undefined ? 'no' : 'multiple';
      throw new OpmateError('INVALID', `bundle ${name} has ${count} ${type} properties, expected exactly 1`);
    }
    try {
      versions.set(bundle.name, parseVersion(property.version));
    } catch (error) {
      const problem = getMessage(error);
      throw new OpmateError(
        'INVALID',
        `bundle ${name} has invalid version ${quoteGo(property.version)}: ${problem}`,
      );
    }
  }
  return versions;
}

const zeroVersion = parseVersion('0.0.0');

/** Returns the version of an entry, 0.0.0 without a bundle blob. */
function versionIn(versions: ReadonlyMap<string, Version>, entry: { name: string }): Version {
  return versions.get(entry.name) ?? zeroVersion;
}

type ChannelFilter = (channel: ChannelFacts) => ChannelEntry[] | undefined;

/** Returns a filter that reduces channels to the requested part; it returns undefined for an empty channel. */
function channelFilter(
  channels: readonly ChannelFacts[],
  versions: ReadonlyMap<string, Version>,
  ranges: SkipRanges,
  options: DrawOptions,
): ChannelFilter {
  const only = options.packages ?? [];
  const floorName = options.minimumEdge ?? '';
  if (only.length === 0 && floorName === '') return (channel) => channel.entries;
  const nonEmpty = (entries: ChannelEntry[]): ChannelEntry[] | undefined =>
    entries.length > 0 ? entries : undefined;
  const wanted = (channel: ChannelFacts): boolean => only.length === 0 || only.includes(channel.package);
  if (floorName === '') return (channel) => (wanted(channel) ? nonEmpty(channel.entries) : undefined);

  const floor = versions.get(floorName);
  if (floor === undefined) {
    throw new OpmateError('NOT_FOUND', `unknown minimum edge name: ${quoteGo(floorName)}`, {
      hint: 'use the name of a bundle, as in the output of api.listCatalog bundles',
    });
  }
  const floorPackage =
    channels.find(({ entries }) => entries.some(({ name }) => name === floorName))?.package ?? '';
  const isAbove = (name: string): boolean => compareVersions(versionIn(versions, { name }), floor) >= 0;
  const cut = (entry: ChannelEntry): ChannelEntry | undefined => {
    const { name } = entry;
    if (name === floorName) return { name, replaces: '', skips: [], skipRange: '' };
    const replaces = entry.replaces !== '' && isAbove(entry.replaces) ? entry.replaces : '';
    const skips = entry.skips.filter(isAbove);
    const skipRange = ranges.get(entry.skipRange)?.contains(floor) === true ? entry.skipRange : '';
    const hadNone = entry.replaces === '' && entry.skips.length === 0 && entry.skipRange === '';
    const hasSome = replaces !== '' || skips.length > 0 || skipRange !== '';
    return hasSome || (hadNone && isAbove(name)) ? { name, replaces, skips, skipRange } : undefined;
  };
  return (channel) => {
    if (!wanted(channel) || (floorPackage !== '' && channel.package !== floorPackage)) return undefined;
    return nonEmpty(channel.entries.map(cut).filter((entry) => entry !== undefined));
  };
}
