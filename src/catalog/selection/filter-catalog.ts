import { NameIndex, describeMissing, joinNames, listNames, suggestName } from '../../core/suggest.js';
import { type Diagnostic, compareDiagnostics, formatMessage, withSubject } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { type Version, compareVersions, formatVersion, parseVersion, tryParse } from '../../core/semver.js';
import { type ChannelEntry, schemas } from '../../model/declarative-config.js';
import { type CatalogFacts, type ChannelFacts, emptyFacts } from '../../model/facts.js';
import {
  type ChannelGraph,
  describeGraphFault,
  describeHeadFault,
  getOnlyHead,
  readGraph,
} from '../../graph/channel-graph.js';
import { type CatalogFilter, type Criteria, type RequestPlace, describeCriteria } from './catalog-filter.js';
import { type KeptEntries, keepChain } from './keep-chain.js';
import { ChannelWays } from './keep-ways.js';
import { readBundleVersions } from '../../graph/bundle-version.js';
import { type PackageModel, findHighestChannel, readPackages } from '../../graph/package-model.js';
import { repairChannel } from './repair-channel.js';
import { type CatalogSelection, type KeptBundle, addPart, keepChannels, requireValid } from './selection.js';
import { nearestVersions, toRange } from './version-bounds.js';

interface FilterOptions {
  /** Name of the catalog in messages. */
  catalog: string;
  /** Returns the creation date of a bundle, if it has one; called only for `createdSince`. */
  dayOf?: ((packageName: string, bundle: string) => string | undefined) | undefined;
}

/**
 * Selects the content of a filter, and what it needs to be a valid catalog without stranded clusters: the head of a
 * channel stays reachable from each selected bundle from which it was before.
 *
 * - Dropped content is removed first, and edges are rewired around it (see `repairChannel`): it was explicitly
 *   excluded.
 * - Selected bundles are not cut out of their channel: bundles on the way from one to another stay (see
 *   `ChannelWays.keep`), each with its reason in `kept`, because an edge around a bundle is an upgrade that the
 *   author never offered. `keep` can change that: to only selected bundles, or to the stretch of the upgrade chain
 *   that image sets define.
 * - Channels and packages without content are removed. A removed default channel is replaced by the remaining one
 *   whose head has the highest version, unless the filter sets or refuses it.
 * - Deprecations of remaining content stay, as do custom blobs of remaining packages.
 *
 * Throws DiagnosticsError with all requested names that are missing or have no matching content, with the nearest
 * names and versions, and invalid channels; OpmateError if no valid catalog can be built.
 */
export function filterCatalog(
  facts: CatalogFacts,
  filter: CatalogFilter,
  options: FilterOptions,
): CatalogSelection {
  return new CatalogChoice(facts, filter, options).choose();
}

/** A missing name; its hint is the nearest name or version. */
interface Fault {
  code?: 'not-found' | 'invalid-value';
  subject?: string;
  problem: string;
  hint?: string | undefined;
}

type Fail = (where: RequestPlace, fault: Fault) => void;

class CatalogChoice {
  readonly #models: ReadonlyMap<string, PackageModel>;
  readonly #filter: CatalogFilter;
  readonly #options: FilterOptions;
  readonly #faults = new Map<string, Diagnostic>();
  /** Packages requested with a name that they lack. */
  readonly #misnamed = new Set<string | undefined>();
  readonly #result: CatalogSelection = {
    isWhole: false,
    facts: emptyFacts(),
    packages: [],
    kept: [],
    warnings: [],
    changes: [],
  };

  constructor(facts: CatalogFacts, filter: CatalogFilter, options: FilterOptions) {
    this.#models = readPackages(facts);
    this.#filter = filter;
    this.#options = options;
  }

  choose(): CatalogSelection {
    this.#requireNames();
    const { packages, dropPackages, also } = this.#filter;
    const names = packages?.map(({ name }) => name) ?? this.#models.keys();
    const dropped = new Set(dropPackages.map(({ name }) => name));
    for (const name of new Set([...names, ...also.keys()])) {
      const model = this.#models.get(name);
      if (model === undefined || dropped.has(name)) continue;
      const isMisnamed = this.#misnamed.has(name) || this.#misnamed.has(undefined);
      const filter = new PackageFilter(model, this.#filter, this.#options, this.#result, this.#fail);
      filter.choose(isMisnamed);
    }
    if (this.#faults.size > 0) {
      throw new DiagnosticsError([...this.#faults.values()].sort(compareDiagnostics));
    }
    const { facts } = this.#result;
    if (facts.packages.length === 0) {
      const { catalog } = this.#options;
      if (this.#models.size === 0) throw new OpmateError('NOT_FOUND', `${catalog}: has no package`);
      throw new OpmateError('NOT_FOUND', `${catalog}: the filter selects nothing`, {
        hint: this.#result.warnings[0] ?? listNames('use a known package:', this.#models.keys()),
      });
    }
    requireValid(facts, this.#options.catalog);
    this.#result.packages.sort((a, b) => compareBytes(a.name, b.name));
    return this.#result;
  }

  readonly #fail: Fail = ({ subject, ...place }, { code = 'not-found', ...fault }): void => {
    const diagnostic: Diagnostic = { severity: 'error', code, ...fault, ...place };
    const message = formatMessage(diagnostic);
    if (this.#faults.has(message)) return;
    this.#faults.set(message, subject === undefined ? diagnostic : withSubject(diagnostic, subject));
  };

  /** Requires that all requested names exist. */
  #requireNames(): void {
    const { packages, channels, criteria, defaultChannels } = this.#filter;
    const { dropPackages, dropChannels, dropBundles } = this.#filter;
    const { catalog } = this.#options;
    const index = new NameIndex(this.#models.keys());
    const isSelected = (name: string): boolean =>
      packages === undefined || packages.some((request) => request.name === name);
    const requirePackage = (
      name: string,
      where: RequestPlace,
      mustBeSelected = true,
    ): PackageModel | undefined => {
      const model = this.#models.get(name);
      if (model === undefined) {
        const hint = suggestName('package', name, this.#models.keys(), index);
        this.#fail(where, { problem: describeMissing('package', name, catalog), hint });
      } else if (mustBeSelected && !isSelected(name)) {
        const problem = `package ${quoteGo(name)} is not selected`;
        this.#fail(where, { problem, hint: 'select it as well' });
      } else return model;
      return undefined;
    };
    const requireChannel = (
      name: string,
      of: string | undefined,
      where: RequestPlace,
      mustBeSelected = true,
    ): void => {
      const model = of === undefined ? undefined : requirePackage(of, where, mustBeSelected);
      if (of !== undefined && model === undefined) return;
      const models = [...this.#models].filter(
        ([text]) => text === (of ?? text) && (of !== undefined || isSelected(text)),
      );
      if (models.some(([, packageModel]) => packageModel.channels.has(name))) return;
      const known = new Set(models.flatMap(([, packageModel]) => [...packageModel.channels.keys()]));
      const scope = of === undefined ? 'the chosen packages' : `package ${quoteGo(of)} of ${catalog}`;
      this.#misnamed.add(of);
      const hint = suggestName('channel', name, known);
      this.#fail(where, { problem: describeMissing('channel', name, scope), hint });
    };
    for (const { name, where } of packages ?? []) requirePackage(name, where);
    for (const { name, where } of dropPackages) requirePackage(name, where, false);
    for (const { package: of, name, where } of channels) requireChannel(name, of, where);
    for (const { package: of, name, where } of defaultChannels) requireChannel(name, of, where);
    for (const { package: of, name, where } of dropChannels) requireChannel(name, of, where, false);
    for (const { package: of, channel, where } of criteria) {
      if (channel !== undefined) requireChannel(channel, of, where);
      else if (of !== undefined) requirePackage(of, where);
    }
    for (const { package: of, name, where } of dropBundles) {
      const model = of === undefined ? undefined : requirePackage(of, where, false);
      if (of !== undefined && model === undefined) continue;
      const models = model === undefined ? [...this.#models.values()] : [model];
      if (models.some(({ bundles }) => bundles.has(name))) continue;
      const known = new Set(models.flatMap(({ bundles }) => [...bundles.keys()]));
      const scope = of === undefined ? catalog : `package ${quoteGo(of)} of ${catalog}`;
      const hint = suggestName('bundle', name, known);
      this.#fail(where, { problem: describeMissing('bundle', name, scope), hint });
    }
  }
}

const maxReasons = 3;

/** Selects content of one package, and adds it to a result. */
class PackageFilter {
  readonly #name: string;
  readonly #model: PackageModel;
  readonly #filter: CatalogFilter;
  readonly #options: FilterOptions;
  readonly #result: CatalogSelection;
  readonly #fail: Fail;
  readonly #also: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #versions: ReadonlyMap<string, Version>;
  readonly #changes: string[] = [];
  readonly #warnings: string[] = [];
  /** Reasons of omitted channels. */
  readonly #leftOut: string[] = [];
  /** Channels without selected content. */
  readonly #empty = new Map<string, string>();
  #isAtFault = false;
  readonly #kept: KeptBundle[] = [];
  readonly #undated = new Set<string>();

  constructor(
    model: PackageModel,
    filter: CatalogFilter,
    options: FilterOptions,
    result: CatalogSelection,
    fail: Fail,
  ) {
    this.#name = model.facts.name;
    this.#model = model;
    this.#filter = filter;
    this.#options = options;
    this.#result = result;
    this.#fail = (where, fault) => {
      this.#isAtFault = true;
      fail(where, fault);
    };
    this.#also = filter.also.get(this.#name) ?? new Map();
    this.#versions = readBundleVersions(model.bundles.values());
  }

  /** Adds the selected content to the result. A package requested with a wrong name is already reported. */
  choose(isMisnamed: boolean): void {
    this.#isAtFault = isMisnamed;
    const channels = this.#isDeprecated(schemas.package, '') ? [] : this.#chooseChannels();
    if (channels.length === 0) {
      this.#leaveOut();
      return;
    }
    const { facts, kept, warnings, changes, packages } = this.#result;
    const part = keepChannels(this.#model, channels, this.#chooseDefault(channels));
    addPart(facts, part.facts);
    packages.push(part.summary);
    for (const bundle of this.#kept) kept.push(bundle);
    for (const name of this.#changes) changes.push(name);
    this.#warnOfUndated();
    const subject = `package ${quoteGo(this.#name)}`;
    for (const why of this.#leftOut) warnings.push(`${subject}: ${why}; omitted`);
    for (const name of this.#warnings) warnings.push(name);
  }

  #warnOfUndated(): void {
    const names = [...this.#undated];
    if (names.length === 0) return;
    const done = this.#filter.undated === 'keep' ? 'included' : 'excluded';
    this.#warnings.push(
      listNames(`package ${quoteGo(this.#name)}: ${done} bundles without a creation date:`, names),
    );
  }

  /** Omits a package without content: an error if it was requested by name. */
  #leaveOut(): void {
    if (this.#isAtFault) return;
    const { packages = [], criteria, channels } = this.#filter;
    const named: { where: RequestPlace }[] = [
      ...packages.filter(({ name }) => name === this.#name),
      ...[...channels, ...criteria].filter((item) => item.package === this.#name),
    ];
    const problem = `package ${quoteGo(this.#name)} in ${this.#options.catalog} has no matching content`;
    const why = this.#whyNothing();
    const [first] = named;
    if (first !== undefined) this.#fail(first.where, { problem, hint: why || undefined });
    else {
      this.#result.warnings.push(
        `package ${quoteGo(this.#name)}: omitted, as it has no matching content${why === '' ? '' : ` (${why})`}`,
      );
    }
  }

  #whyNothing(): string {
    if (this.#isDeprecated(schemas.package, '')) return 'the package is deprecated';
    const deprecated = [...this.#model.channels.keys()]
      .filter((name) => this.#isDeprecated(schemas.channel, name))
      .map((name) => `channel ${quoteGo(name)} is deprecated`);
    const reasons = [...this.#leftOut, ...deprecated];
    const shown = reasons.slice(0, maxReasons);
    const more = reasons.length - shown.length;
    return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
  }

  #chooseChannels(): ChannelFacts[] {
    const requested = this.#channelsAsked();
    const dropped = this.#filter.dropChannels.filter(
      (request) => (request.package ?? this.#name) === this.#name,
    );
    const droppedNames = new Set(dropped.map(({ name }) => name));
    const gone = this.#droppedBundles();
    return [...this.#model.channels.values()].flatMap((channel) => {
      const { name } = channel;
      const isAsked = this.#isAsked && requested?.has(name) !== false;
      if ((!isAsked && !this.#also.has(name)) || droppedNames.has(name)) return [];
      if (this.#isDeprecated(schemas.channel, name)) return [];
      const left = this.#repair(channel, gone);
      if (left.entries.length > 0 || channel.entries.length === 0) return this.#chooseEntries(left, isAsked);
      this.#leftOut.push(`channel ${quoteGo(name)} has dropped bundles only`);
      return [];
    });
  }

  /** Reports whether the package has requests other than bundles selected in any case. */
  get #isAsked(): boolean {
    return this.#filter.packages?.some(({ name }) => name === this.#name) !== false;
  }

  /** Returns the requested channels; undefined for all. */
  #channelsAsked(): ReadonlySet<string> | undefined {
    const own = this.#filter.channels.filter((request) => (request.package ?? this.#name) === this.#name);
    if (own.length === 0) return undefined;
    const names = new Set(own.map(({ name }) => name));
    if (![...names].some((name) => this.#model.channels.has(name))) {
      const known = listNames('has', this.#model.channels.keys());
      this.#leftOut.push(`it ${known} and ${listNames('none of', names)}`);
    }
    return names;
  }

  #droppedBundles(): ReadonlySet<string> {
    const requested = this.#filter.dropBundles.filter((item) => (item.package ?? this.#name) === this.#name);
    const gone = new Set(requested.map(({ name }) => name));
    for (const name of this.#model.bundles.keys()) {
      if (this.#isDeprecated(schemas.bundle, name)) gone.add(name);
    }
    return gone;
  }

  /** Reports whether it is dropped as deprecated. */
  #isDeprecated(schema: string, name: string): boolean {
    if (!this.#filter.dropDeprecated) return false;
    return this.#model.deprecations.some(({ entries }) =>
      entries.some(({ reference }) => {
        return reference.schema === schema && (schema === schemas.package || reference.name === name);
      }),
    );
  }

  #repair(channel: ChannelFacts, gone: ReadonlySet<string>): ChannelFacts {
    const { entries, changes } = repairChannel(channel.entries, gone, this.#versions);
    if (entries.length === channel.entries.length) return channel;
    const subject = `package ${quoteGo(this.#name)}, channel ${quoteGo(channel.name)}`;
    for (const change of changes) this.#changes.push(`${subject}: ${change}`);
    return { ...channel, entries };
  }

  /** Returns the selected entries of a channel with those they need; none if empty. */
  #chooseEntries(channel: ChannelFacts, isAsked: boolean): ChannelFacts[] {
    const { criteria, where, isOfChannel } = this.#getCriteria(channel.name);
    if (isAsked && Object.keys(criteria).length === 0) return [channel];
    const graph = readGraph(channel.entries);
    const also = [...(this.#also.get(channel.name) ?? [])].filter((name) => graph.entries.has(name));
    const wanted = isAsked ? this.#findWanted(channel, graph, where, criteria) : new Set<string>();
    if (wanted === undefined) return [];
    if (wanted.size + also.length === 0) {
      if (isAsked) this.#leaveOutChannel(channel, criteria, isOfChannel ? where : undefined);
      return [];
    }
    if (this.#filter.keep === 'nothing') {
      const names = new Set([...wanted, ...also]);
      const rest = channel.entries.filter(({ name }) => !names.has(name)).map(({ name }) => name);
      return [this.#repair(channel, new Set(rest))];
    }
    const kept = this.#keep(channel, graph, criteria, wanted, also);
    if (kept === undefined) {
      this.#failGraph(where, channel, describeGraphFault(graph));
      return [];
    }
    const entries = channel.entries.filter(({ name }) => kept.names.has(name));
    if (entries.length === 0) {
      this.#leaveOutChannel(channel, criteria, isOfChannel ? where : undefined);
      return [];
    }
    for (const { name: bundle } of entries) {
      const reason = kept.reasons.get(bundle);
      if (reason === undefined) continue;
      this.#kept.push({ package: this.#name, channel: channel.name, bundle, reason });
    }
    const head = getOnlyHead(graph);
    const [newHead] = readGraph(entries).heads;
    if (newHead !== head) {
      const subject = `package ${quoteGo(this.#name)}, channel ${quoteGo(channel.name)}`;
      this.#changes.push(
        `${subject}: its head is ${quoteGo(newHead ?? '')} now, as ${quoteGo(head ?? '')} is omitted`,
      );
    }
    return [{ ...channel, entries }];
  }

  /** Returns the wanted entries of a channel with those they need; undefined for a chain with a cycle. */
  #keep(
    channel: ChannelFacts,
    graph: ChannelGraph,
    criteria: Criteria,
    wanted: ReadonlySet<string>,
    also: readonly string[],
  ): KeptEntries | undefined {
    const alone = { names: wanted, reasons: new Map<string, string>() };
    if (this.#filter.keep === 'needed') {
      return new ChannelWays(channel.entries, this.#versions).keep(new Set([...wanted, ...also]));
    }
    const isOne = criteria.latest === 1 || criteria.version !== undefined || wanted.size === 0;
    const requested = isOne
      ? alone
      : keepChain(channel.entries, graph, (name) => {
          const version = wanted.has(name) ? this.#versions.get(name) : undefined;
          // Builds of one version count separately: otherwise the newest, and with it the head, would be omitted.
          return version && formatVersion(version);
        });
    if (requested === undefined) return undefined;
    const all = new Set([...requested.names, ...also]);
    if (all.size === requested.names.size) return requested;
    // A single bundle is a valid channel.
    if (all.size === 1) return { ...alone, names: all };
    if (getOnlyHead(graph) === undefined) return undefined;
    const longer = keepChain(channel.entries, graph, (name) => (all.has(name) ? name : undefined));
    if (longer === undefined) return undefined;
    // Entries skipped only by skipped entries are not on the chain.
    const isWhole = [...all].some((name) => !longer.names.has(name));
    return {
      names: isWhole ? new Set(graph.entries.keys()) : longer.names,
      reasons: new Map([...requested.reasons, ...longer.reasons]),
    };
  }

  #failGraph(where: RequestPlace, channel: ChannelFacts, fault = 'its upgrade chain is a cycle'): void {
    this.#fail(where, {
      code: 'invalid-value',
      subject: `package ${quoteGo(this.#name)} in ${this.#options.catalog}`,
      problem: `channel ${quoteGo(channel.name)}: ${fault}`,
      hint: 'fix the problems that opmate validate lists',
    });
  }

  /** Omits a channel without content: an error if its criteria are for this channel. */
  #leaveOutChannel(channel: ChannelFacts, criteria: Criteria, where: RequestPlace | undefined): void {
    const problem = `channel ${quoteGo(channel.name)} has no bundle ${describeCriteria(criteria)}`;
    const hint = this.#nearest(channel, criteria);
    this.#empty.set(channel.name, problem);
    if (where === undefined) this.#leftOut.push(`${problem}${hint === undefined ? '' : ` (${hint})`}`);
    else {
      const subject = `package ${quoteGo(this.#name)} in ${this.#options.catalog}`;
      this.#fail(where, { subject, problem, hint });
    }
  }

  /** Returns the criteria of a channel, the place of the narrowest, and whether that is for this channel. */
  #getCriteria(channel: string): { criteria: Criteria; where: RequestPlace; isOfChannel: boolean } {
    const scoped = this.#filter.criteria.filter(
      (scopedCriteria) =>
        (scopedCriteria.package ?? this.#name) === this.#name &&
        (scopedCriteria.channel ?? channel) === channel,
    );
    const breadth = (item: { package: string | undefined; channel: string | undefined }): number =>
      item.package === undefined ? 0 : item.channel === undefined ? 1 : 2;
    const sorted = scoped.sort((a, b) => breadth(a) - breadth(b));
    const criteria: Criteria = Object.assign({}, ...sorted.map((scopedCriteria) => scopedCriteria.criteria));
    const narrowest = sorted.at(-1);
    return { criteria, where: narrowest?.where ?? {}, isOfChannel: narrowest?.channel !== undefined };
  }

  /** Returns names of entries; undefined for an invalid channel. */
  #findWanted(
    channel: ChannelFacts,
    graph: ChannelGraph,
    where: RequestPlace,
    criteria: Criteria,
  ): Set<string> | undefined {
    const fault = this.#filter.keep === 'chain' ? describeHeadFault(graph) : describeGraphFault(graph);
    if (fault !== undefined) {
      this.#failGraph(where, channel, fault);
      return undefined;
    }
    if (criteria.version !== undefined) return this.#exactVersion(graph, criteria.version);
    return this.#wantedBy(criteria, channel, new ChannelWays(channel.entries, this.#versions));
  }

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

  #wantedBy(criteria: Criteria, { entries }: ChannelFacts, ways: ChannelWays): Set<string> {
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
      const reachable = this.#reachable(entries, ways, reachableFrom);
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
    const day = this.#options.dayOf?.(this.#name, name);
    if (day !== undefined) return day >= since;
    this.#undated.add(name);
    return this.#filter.undated === 'keep';
  }

  /**
   * Returns entries reachable from a bundle by name, or from all that a version may stand for: such names end with
   * it.
   */
  #reachable(entries: readonly ChannelEntry[], ways: ChannelWays, installed: string): ReadonlySet<string> {
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
  #nearest({ entries }: ChannelFacts, criteria: Criteria): string | undefined {
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

  #chooseDefault(channels: readonly ChannelFacts[]): string {
    const names = new Set(channels.map(({ name }) => name));
    const own = this.#model.facts.defaultChannel;
    const requested = this.#filter.defaultChannels.filter((item) => item.package === this.#name).at(-1);
    const subject = `package ${quoteGo(this.#name)}`;
    if (requested !== undefined) {
      if (!names.has(requested.name)) {
        const problem = `channel ${quoteGo(requested.name)} has no matching content, so it cannot be the default channel`;
        const hint = listNames('use a known channel:', names);
        if (this.#model.channels.has(requested.name))
          this.#fail(requested.where, { subject: `${subject} in ${this.#options.catalog}`, problem, hint });
      } else if (requested.name !== own) {
        this.#changes.push(`${subject}: its default channel is ${quoteGo(requested.name)} now`);
      }
      return requested.name;
    }
    if (names.has(own)) return own;
    if (!this.#isAsked) return [...this.#also.keys()].find((name) => names.has(name)) ?? own;
    if (this.#filter.lostDefault === 'refuse') {
      this.#refuseDefault(own, names);
      return own;
    }
    const heads = new Map(channels.map(({ name, entries }) => [name, readGraph(entries).heads[0] ?? '']));
    const chosen = findHighestChannel(heads, this.#versions);
    this.#changes.push(
      `${subject}: its default channel is ${quoteGo(chosen)} now, as ${quoteGo(own)} is omitted`,
    );
    return chosen;
  }

  #refuseDefault(own: string, names: ReadonlySet<string>): void {
    if (this.#isAtFault) return;
    const { packages, criteria } = this.#filter;
    const [{ where } = { where: {} }] = [
      ...(packages ?? []).filter(({ name }) => name === this.#name),
      ...criteria,
    ];
    const subject = `package ${quoteGo(this.#name)} in ${this.#options.catalog}`;
    const set = `set defaultChannel to one of ${joinNames([...names])}`;
    const reason = this.#empty.get(own);
    const problem = reason ?? `its default channel ${quoteGo(own)} is not selected`;
    const hint =
      reason === undefined
        ? `add it, or ${set}`
        : `${set}, or choose other versions: it is the default channel`;
    this.#fail(where, { subject, problem, hint });
  }
}
