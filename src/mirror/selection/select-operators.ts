import {
  type CatalogSelection,
  type KeptBundle,
  type SelectedPackage,
  addPart,
  keepChannels,
  requireValid,
  summarizeChannels,
} from '../../catalog/selection/selection.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { type PackageModel, readPackages } from '../../graph/package-model.js';
import { nearestVersions, rangeOf, rangeText } from '../../catalog/selection/version-bounds.js';
import { NameIndex, describeMissing, listNames, suggestName } from '../../core/suggest.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { type Version, compareVersions, formatVersion, parseVersion } from '../../core/semver.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import type { CatalogFacts, ChannelFacts } from '../../model/facts.js';
import {
  type ChannelGraph,
  describeGraphFault,
  describeHeadFault,
  followReplaces,
  readGraph,
} from '../../graph/channel-graph.js';
import {
  type ChannelConfig,
  type OperatorConfig,
  type PackageConfig,
  hasBounds,
} from '../image-set/image-set-config.js';

/** Names of bundles by package, then channel. */
export type ChannelBundles = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/**
 * Chooses packages, channels and bundles of a catalog:
 *
 * - nothing said: every package, of each channel its head; `full` alone: the catalog as it is
 * - packages and channels narrow that; with `full`, they have all their bundles
 * - versions: in each channel the stretch of the upgrade chain that holds every version in range, and those
 *   that its entries skip; one version alone where the least is the most
 *
 * A prerelease is in range where a bound is one. A package that has prereleases only writes its builds that way:
 * there bounds without prerelease look at the numbers alone.
 *
 * `also` are bundles that are wanted whatever the configuration says: their channels are taken along the upgrade chain
 * as far as they reach. A package that has only such bundles gets the first of their channels as its default where
 * its own is not among them.
 *
 * What is left is a valid catalog: where cutting a channel would leave an entry that nothing leads to, more of the
 * channel is kept. Throws OpmateError: what is asked for and not there, all of it in one error with the nearest
 * names, and a catalog of which nothing valid can be made. (Source: oc-mirror v2 and its catalog filter.)
 */
export function selectOperators(
  facts: CatalogFacts,
  operator: OperatorConfig,
  file: string,
  also: ChannelBundles = new Map(),
): CatalogSelection {
  const models = readPackages(facts);
  if (operator.full && operator.packages === undefined) {
    const packages = [...models.values()].map((model) => wholePackage(model)).sort(byName);
    return { isWhole: true, facts, packages, kept: [], warnings: [] };
  }
  const faults: Diagnostic[] = [];
  const wanted = operator.packages ?? [...models.keys()].map((name) => everyChannel(name, operator));
  const index = new NameIndex(models.keys());
  const chosen: ChosenPackage[] = [];
  for (const request of wanted) {
    const model = models.get(request.name);
    if (model === undefined) {
      const problem = describeMissing('package', request.name, operator.catalog);
      const hint = suggestName('package', request.name, models.keys(), index);
      faults.push({ severity: 'error', code: 'not-found', problem, file, ...request.place, hint });
      continue;
    }
    chosen.push(new PackageSelector(model, request, operator, file, faults, also.get(request.name)).choose());
  }
  const asked = new Set(wanted.map(({ name }) => name));
  for (const [name, channels] of also) {
    const model = models.get(name);
    if (asked.has(name) || model === undefined) continue;
    const request = { ...everyChannel(name, operator), channels: [] };
    chosen.push(new PackageSelector(model, request, operator, file, faults, channels).choose());
  }
  if (faults.length > 0) throw new DiagnosticsError(faults);
  const result: CatalogFacts = { packages: [], channels: [], bundles: [], deprecations: [] };
  for (const { facts: part } of chosen) addPart(result, part);
  requireValid(result, operator.catalog);
  return {
    isWhole: false,
    facts: result,
    packages: chosen.map(({ summary }) => summary).sort(byName),
    kept: chosen.flatMap(({ kept }) => kept),
    warnings: chosen.flatMap(({ warnings }) => warnings),
  };
}

function byName(a: { name: string }, b: { name: string }): number {
  return compareBytes(a.name, b.name);
}

function wholePackage({ facts, channels, bundles }: PackageModel): SelectedPackage {
  return {
    name: facts.name,
    defaultChannel: facts.defaultChannel,
    channels: summarizeChannels(channels.values()),
    bundles: bundles.size,
  };
}

function everyChannel(name: string, { place }: OperatorConfig): PackageConfig {
  const nothing = { minVersion: undefined, maxVersion: undefined };
  return { name, channels: undefined, defaultChannel: undefined, ...nothing, place };
}

interface ChosenPackage {
  facts: CatalogFacts;
  summary: SelectedPackage;
  kept: KeptBundle[];
  warnings: string[];
}

/** Chooses of one package, and adds to `faults` what is unavailable. */
class PackageSelector {
  readonly #model: PackageModel;
  readonly #request: PackageConfig;
  readonly #operator: OperatorConfig;
  readonly #file: string;
  readonly #faults: Diagnostic[];
  readonly #also: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #kept: KeptBundle[] = [];
  readonly #warnings: string[] = [];
  readonly #versions = new Map<string, Version | undefined>();

  constructor(
    model: PackageModel,
    request: PackageConfig,
    operator: OperatorConfig,
    file: string,
    faults: Diagnostic[],
    also: ReadonlyMap<string, ReadonlySet<string>> = new Map(),
  ) {
    this.#model = model;
    this.#request = request;
    this.#operator = operator;
    this.#file = file;
    this.#faults = faults;
    this.#also = also;
  }

  choose(): ChosenPackage {
    const asked = this.#channelRequests();
    const requests = [...asked, ...this.#furtherChannels(asked)];
    const defaultChannel = this.#defaultChannel(requests);
    const channels: ChannelFacts[] = [];
    const empty: ChannelConfig[] = [];
    for (const request of requests) {
      const channel = this.#model.channels.get(request.name) as ChannelFacts;
      const names = this.#chooseAllOf(channel, asked.includes(request) ? request : undefined);
      if (names === undefined) continue;
      if (names.size === 0) empty.push(request);
      else {
        channels.push({ ...channel, entries: channel.entries.filter((entry) => names.has(entry.name)) });
      }
    }
    this.#reportEmpty(empty, channels, defaultChannel);
    return {
      ...keepChannels(this.#model, channels, defaultChannel),
      kept: this.#kept,
      warnings: this.#warnings,
    };
  }

  #fail(
    place: PackageConfig['place'],
    problem: string,
    hint?: string,
    code: 'invalid-value' | 'not-found' = 'not-found',
  ) {
    const { name } = this.#request;
    const subject = `package ${quoteGo(name)} in ${this.#operator.catalog}`;
    this.#faults.push({ severity: 'error', code, subject, problem, file: this.#file, ...place, hint });
  }

  /** The channels to look at, each with its versions. */
  #channelRequests(): ChannelConfig[] {
    const { channels: known } = this.#model;
    const { channels, minVersion, maxVersion, place } = this.#request;
    if (channels === undefined) {
      return [...known.keys()].map((name) => ({ name, minVersion, maxVersion, place }));
    }
    const index = new NameIndex(known.keys());
    return channels.flatMap((channel) => {
      if (known.has(channel.name)) {
        return [hasBounds(channel) ? channel : { ...channel, minVersion, maxVersion }];
      }
      const hint = suggestName('channel', channel.name, known.keys(), index);
      this.#fail(channel.place, describeMissing('channel', channel.name), hint);
      return [];
    });
  }

  /** Channels that only hold bundles which are wanted whatever is asked for. */
  #furtherChannels(asked: readonly ChannelConfig[]): ChannelConfig[] {
    const { place } = this.#request;
    return [...this.#also.keys()]
      .filter((name) => this.#model.channels.has(name) && asked.every((one) => one.name !== name))
      .map((name) => ({ name, minVersion: undefined, maxVersion: undefined, place }));
  }

  #defaultChannel(requests: readonly ChannelConfig[]): string {
    const { defaultChannel: asked, channels, place } = this.#request;
    const own = this.#model.facts.defaultChannel;
    const name = asked ?? own;
    const names = requests.map((request) => request.name);
    if (names.includes(name)) return name;
    if (channels?.length === 0) return names[0] ?? own;
    if (asked !== undefined) {
      const hint = suggestName('channel', asked, names);
      const problem = this.#model.channels.has(asked)
        ? `defaultChannel ${quoteGo(asked)} is not among the chosen channels`
        : `defaultChannel: ${describeMissing('channel', asked)}`;
      this.#fail(place, problem, hint);
    } else if (channels !== undefined && names.length > 0) {
      const hint = `add it, or set defaultChannel to one of ${names.map(quoteGo).join(', ')}`;
      this.#fail(place, `its default channel ${quoteGo(own)} is not among the chosen channels`, hint);
    }
    return name;
  }

  #bundleVersion(name: string): Version | undefined {
    if (!this.#versions.has(name)) {
      this.#versions.set(name, readBundleVersion(this.#model.bundles.get(name)));
    }
    return this.#versions.get(name);
  }

  /** Names of the entries to keep, with those that are wanted anyway; undefined after a fault. */
  #chooseAllOf(channel: ChannelFacts, request: ChannelConfig | undefined): ReadonlySet<string> | undefined {
    const asked = request === undefined ? new Set<string>() : this.#chooseOf(channel, request);
    const also = this.#also.get(channel.name);
    if (asked === undefined || also === undefined) return asked;
    const graph = readGraph(channel.entries);
    const wanted = new Set([...asked, ...[...also].filter((name) => graph.entries.has(name))]);
    // One bundle alone is a valid channel.
    if (wanted.size === asked.size || wanted.size === 1) return wanted;
    if (graph.heads.length !== 1) {
      this.#failGraph(channel, describeHeadFault(graph) ?? '');
      return undefined;
    }
    const names = this.#stretch(channel, graph, (name) => (wanted.has(name) ? name : undefined));
    // What only skipped entries skip is not found along the chain.
    const isWhole = names !== undefined && [...wanted].some((name) => !names.has(name));
    return isWhole ? new Set(graph.entries.keys()) : names;
  }

  /** Names of the entries to keep, none where no version is in range; undefined after a fault. */
  #chooseOf(channel: ChannelFacts, request: ChannelConfig): ReadonlySet<string> | undefined {
    if (channel.entries.length === 0) {
      this.#failGraph(channel, 'has no entries');
      return undefined;
    }
    if (this.#operator.full) return new Set(channel.entries.map((entry) => entry.name));
    const graph = readGraph(channel.entries);
    const [head] = graph.heads;
    if (head === undefined || graph.heads.length > 1) {
      this.#failGraph(channel, describeHeadFault(graph) ?? '');
      return undefined;
    }
    if (!hasBounds(request)) return new Set([head]);
    const { minVersion, maxVersion } = request;
    if (minVersion !== undefined && minVersion === maxVersion) {
      return this.#exactVersion(channel, graph, minVersion);
    }
    const versions = [...this.#model.bundles.keys()].map((name) => this.#bundleVersion(name));
    const isWanted = rangeOf(request, versions);
    return this.#stretch(channel, graph, (name) => {
      const version = graph.entries.has(name) ? this.#bundleVersion(name) : undefined;
      if (version === undefined || !isWanted(version)) return undefined;
      // Builds of one version count each: else the newest of them, and with it the head, would be left out.
      return formatVersion(version);
    });
  }

  #failGraph(channel: ChannelFacts, fault: string): void {
    const hint = 'the catalog itself is at fault; opmate validate says more';
    this.#fail(this.#request.place, `channel ${quoteGo(channel.name)}: ${fault}`, hint, 'invalid-value');
  }

  /** The one entry of a version: of several, that which is written the same, else the nearest to the head. */
  #exactVersion(channel: ChannelFacts, graph: ChannelGraph, text: string): ReadonlySet<string> {
    const wanted = parseVersion(text);
    const found = channel.entries
      .map((entry) => entry.name)
      .filter((name) => {
        const version = this.#bundleVersion(name);
        return version !== undefined && compareVersions(version, wanted) === 0;
      });
    const rank = (name: string): number => {
      if (formatVersion(this.#bundleVersion(name) as Version) === text) return -1;
      const place = graph.chain.indexOf(name);
      return place < 0 ? graph.chain.length : place;
    };
    const [first] = found.sort((a, b) => rank(a) - rank(b) || compareBytes(a, b));
    return new Set(first === undefined ? [] : [first]);
  }

  /**
   * The stretch of the upgrade chain that holds all that is in range, with what its entries skip of these. Entries in
   * range of which `keyOf` says the same count as one.
   */
  #stretch(
    channel: ChannelFacts,
    graph: ChannelGraph,
    keyOf: (name: string) => string | undefined,
  ): ReadonlySet<string> | undefined {
    const { names: chain, isCycle } = followReplaces(graph);
    if (isCycle) {
      this.#failGraph(channel, describeGraphFault(graph) ?? 'its upgrade chain is a cycle');
      return undefined;
    }
    const { entries } = graph;
    const inRange = (name: string): boolean => keyOf(name) !== undefined;
    // How many of those in range each entry of the chain leads to, from the oldest upwards.
    const counts = new Array<number>(chain.length);
    const found = new Set<string>();
    for (let at = chain.length - 1; at >= 0; at--) {
      const name = chain[at] as string;
      for (const one of [name, ...(entries.get(name)?.skips ?? [])]) {
        const key = keyOf(one);
        if (key !== undefined) found.add(key);
      }
      counts[at] = found.size;
    }
    if (found.size === 0) return new Set();
    const top = counts.lastIndexOf(found.size);
    const below = counts.indexOf(0);
    const end = below < 0 ? chain.length : below;
    const take = (from: number): Set<string> => {
      const names = new Set<string>();
      for (const name of chain.slice(from, end)) {
        if (entries.has(name)) names.add(name);
        for (const skip of entries.get(name)?.skips ?? []) if (inRange(skip)) names.add(skip);
      }
      return names;
    };
    const asked = take(top);
    const { names, lead } = this.#sound(channel, graph, asked, top, take);
    const places = new Map(chain.map((name, at) => [name, at]));
    const explain = (bundle: string, reason: string): void => {
      this.#kept.push({ package: channel.package, channel: channel.name, bundle, reason });
    };
    for (const { name } of channel.entries) {
      if (!names.has(name) || inRange(name)) continue;
      if (!asked.has(name)) {
        explain(name, `${listNames('is needed for', lead)}, which nothing else leads to`);
        continue;
      }
      const at = places.get(name) ?? -1;
      const skips = (entries.get(name)?.skips ?? []).filter(inRange);
      if (at === top && skips.length > 0) explain(name, listNames('skips', skips));
      else {
        const [newer, older] = [chain[at - 1] ?? '', chain[at + 1] ?? ''];
        explain(name, `stands in the upgrade chain between ${quoteGo(newer)} and ${quoteGo(older)}`);
      }
    }
    return names;
  }

  /**
   * The entries to keep, more of them where those that were chosen are no valid channel by themselves: further
   * up the chain, and in the end the whole channel, which is valid if the catalog is. `lead` are the entries that
   * nothing chosen leads to.
   */
  #sound(
    channel: ChannelFacts,
    graph: ChannelGraph,
    asked: Set<string>,
    top: number,
    take: (from: number) => Set<string>,
  ): { names: Set<string>; lead: string[] } {
    const graphOf = (names: ReadonlySet<string>): ChannelGraph =>
      readGraph(channel.entries.filter((entry) => names.has(entry.name)));
    const first = graphOf(asked);
    if (describeGraphFault(first) === undefined) return { names: asked, lead: [] };
    const lead = first.stranded.length > 0 ? first.stranded : first.heads.slice(1);
    // In growing steps, so that a long chain is not read as often as it has entries.
    for (let step = 1; top - step >= 0; step *= 2) {
      const names = take(top - step);
      if (describeGraphFault(graphOf(names)) === undefined) return { names, lead };
    }
    const names = take(0);
    if (describeGraphFault(graphOf(names)) === undefined) return { names, lead };
    return { names: new Set(graph.entries.keys()), lead };
  }

  #reportEmpty(empty: readonly ChannelConfig[], left: readonly ChannelFacts[], defaultChannel: string): void {
    const versionsIn = (entries: readonly ChannelEntry[]) =>
      entries.map((entry) => this.#bundleVersion(entry.name));
    const entriesOf = ({ name }: ChannelConfig) => this.#model.channels.get(name)?.entries ?? [];
    const isBounded = (name: string): boolean =>
      this.#request.channels?.some((one) => one.name === name && hasBounds(one)) === true;
    const [first] = empty;
    if (first !== undefined && left.length === 0 && !empty.some(({ name }) => isBounded(name))) {
      const version = `version ${rangeText(first)}`;
      const problem =
        empty.length === 1
          ? `channel ${quoteGo(first.name)} has no ${version}`
          : `none of its channels has a ${version}`;
      this.#fail(first.place, problem, nearestVersions(first, versionsIn(empty.flatMap(entriesOf))));
      return;
    }
    for (const channel of empty) {
      const problem = `channel ${quoteGo(channel.name)} has no version ${rangeText(channel)}`;
      if (isBounded(channel.name)) {
        this.#fail(channel.place, problem, nearestVersions(channel, versionsIn(entriesOf(channel))));
      } else if (channel.name === defaultChannel) {
        const names = left.map((one) => quoteGo(one.name)).join(', ');
        const hint = `it is the default channel: set defaultChannel to one of ${names}, or choose other versions`;
        this.#fail(channel.place, problem, hint);
      } else {
        this.#warnings.push(`package ${quoteGo(this.#request.name)}: ${problem}, so it is left out`);
      }
    }
  }
}
