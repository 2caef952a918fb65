import { deprecationKey, readDeprecations } from '../../model/deprecations.js';
import { joinNames, listNames } from '../../core/suggest.js';
import { quoteGo } from '../../document/go-json.js';
import { type Version, formatVersion } from '../../core/semver.js';
import { schemas } from '../../model/declarative-config.js';
import type { ChannelFacts } from '../../model/facts.js';
import {
  type ChannelGraph,
  describeGraphFault,
  describeHeadFault,
  getOnlyHead,
  readGraph,
} from '../../graph/channel-graph.js';
import { type CatalogFilter, type Criteria, type RequestPlace, describeCriteria } from './catalog-filter.js';
import type { FilterFault, FilterRun } from './filter-run.js';
import { type KeptEntries, keepChain } from './keep-chain.js';
import { ChannelWays } from './keep-ways.js';
import { readBundleVersions } from '../../graph/bundle-version.js';
import { type PackageModel, findHighestChannel } from '../../graph/package-model.js';
import { repairChannel } from './repair-channel.js';
import { type KeptBundle, addPart, keepChannels } from './selection.js';
import { WantedEntries } from './wanted-entries.js';

const maxReasons = 3;

/** Selects the content of one package. */
export class PackageFilter {
  readonly #run: FilterRun;
  readonly #filter: CatalogFilter;
  readonly #model: PackageModel;
  readonly #name: string;
  readonly #about: string;
  readonly #inCatalog: string;
  readonly #isRequested: boolean;
  /** Bundles to keep besides those that meet the criteria, by channel. */
  readonly #also: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #versions: ReadonlyMap<string, Version>;
  readonly #deprecations: ReadonlyMap<string, string>;
  readonly #wanted: WantedEntries;
  readonly #changes: string[] = [];
  /** Reasons of omitted channels. */
  readonly #leftOut: string[] = [];
  /** Channels without selected content. */
  readonly #empty = new Map<string, string>();
  readonly #keptBundles: KeptBundle[] = [];
  #isAtFault: boolean;

  /** A package requested with a wrong name (`isMisnamed`) is already reported. */
  constructor(run: FilterRun, model: PackageModel, isMisnamed: boolean) {
    const { filter, options } = run;
    const { name } = model.facts;
    this.#run = run;
    this.#filter = filter;
    this.#model = model;
    this.#name = name;
    this.#about = `package ${quoteGo(name)}`;
    this.#inCatalog = `${this.#about} in ${options.catalog}`;
    this.#isRequested = filter.packages?.some((request) => request.name === name) !== false;
    this.#also = filter.also.get(name) ?? new Map<string, ReadonlySet<string>>();
    this.#versions = readBundleVersions(model.bundles.values());
    this.#deprecations = readDeprecations(model.deprecations);
    const dayOf = (bundle: string): string | undefined => options.dayOf?.(name, bundle);
    this.#wanted = new WantedEntries(this.#versions, dayOf, filter.undated === 'keep');
    this.#isAtFault = isMisnamed;
  }

  /** Adds the selected content of the package to the selection of the run. */
  run(): void {
    const selected = this.#isDeprecated(schemas.package, '') ? [] : this.#chooseChannels();
    if (selected.length === 0) {
      this.#leaveOut();
      return;
    }
    const { facts, kept, warnings, changes, packages } = this.#run.selection;
    const part = keepChannels(this.#model, selected, this.#chooseDefault(selected));
    addPart(facts, part.facts);
    packages.push(part.summary);
    for (const bundle of this.#keptBundles) kept.push(bundle);
    for (const name of this.#changes) changes.push(name);
    for (const why of this.#leftOut) warnings.push(`${this.#about}: ${why}; omitted`);
    const { undated } = this.#wanted;
    if (undated.size > 0) {
      const done = this.#filter.undated === 'keep' ? 'included' : 'excluded';
      warnings.push(listNames(`${this.#about}: ${done} bundles without a creation date:`, undated));
    }
  }

  /** Omits a package without content: an error if it was requested by name. */
  #leaveOut(): void {
    if (this.#isAtFault) return;
    const { packages = [], criteria, channels } = this.#filter;
    const named: { where: RequestPlace }[] = [
      ...packages.filter(({ name }) => name === this.#name),
      ...[...channels, ...criteria].filter((item) => item.package === this.#name),
    ];
    const problem = `${this.#inCatalog} has no matching content`;
    const why = this.#whyNothing();
    const [first] = named;
    // Criteria that select nothing are to blame, not the request of the package.
    const blamed = criteria.findLast(
      ({ package: of = this.#name, where }) =>
        this.#empty.size > 0 && of === this.#name && where.subject !== undefined,
    );
    if (first !== undefined) this.#fail((blamed ?? first).where, { problem, hint: why || undefined });
    else {
      this.#run.selection.warnings.push(
        `${this.#about}: omitted, as it has no matching content${why === '' ? '' : ` (${why})`}`,
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
    const requested = this.#getRequestedChannels();
    const dropped = this.#filter.dropChannels.filter(
      (request) => (request.package ?? this.#name) === this.#name,
    );
    const droppedNames = new Set(dropped.map(({ name }) => name));
    const gone = this.#droppedBundles();
    return [...this.#model.channels.values()].flatMap((channel) => {
      const { name } = channel;
      const isRequested = this.#isRequested && requested?.has(name) !== false;
      if ((!isRequested && !this.#also.has(name)) || droppedNames.has(name)) return [];
      if (this.#isDeprecated(schemas.channel, name)) return [];
      const left = this.#repair(channel, gone);
      if (left.entries.length > 0 || channel.entries.length === 0)
        return this.#chooseEntries(left, isRequested);
      this.#leftOut.push(`channel ${quoteGo(name)} has dropped bundles only`);
      return [];
    });
  }

  /** Returns the requested channels; undefined for all. */
  #getRequestedChannels(): ReadonlySet<string> | undefined {
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

  #isDeprecated(schema: string, name: string): boolean {
    return this.#filter.dropDeprecated && this.#deprecations.has(deprecationKey(schema, name));
  }

  #repair(channel: ChannelFacts, gone: ReadonlySet<string>): ChannelFacts {
    const { entries, changes } = repairChannel(channel.entries, gone, this.#versions);
    if (entries.length === channel.entries.length) return channel;
    const subject = `${this.#about}, channel ${quoteGo(channel.name)}`;
    for (const change of changes) this.#changes.push(`${subject}: ${change}`);
    return { ...channel, entries };
  }

  /** Returns the selected entries of a channel with those they need; none if empty. */
  #chooseEntries(channel: ChannelFacts, isRequested: boolean): ChannelFacts[] {
    const { criteria, where, isOfChannel } = this.#getCriteria(channel.name);
    if (isRequested && Object.keys(criteria).length === 0) return [channel];
    const graph = readGraph(channel.entries);
    const also = [...(this.#also.get(channel.name) ?? [])].filter((name) => graph.entries.has(name));
    const wanted = isRequested ? this.#findWanted(channel, graph, where, criteria) : new Set<string>();
    if (wanted === undefined) return [];
    if (wanted.size + also.length === 0) {
      if (isRequested) this.#leaveOutChannel(channel, criteria, isOfChannel ? where : undefined);
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
      this.#keptBundles.push({ package: this.#name, channel: channel.name, bundle, reason });
    }
    const head = getOnlyHead(graph);
    const [newHead] = readGraph(entries).heads;
    if (newHead !== head) {
      const subject = `${this.#about}, channel ${quoteGo(channel.name)}`;
      this.#changes.push(
        `${subject}: head is now ${quoteGo(newHead ?? '')}; ${quoteGo(head ?? '')} is omitted`,
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
      subject: this.#inCatalog,
      problem: `channel ${quoteGo(channel.name)}: ${fault}`,
      hint: 'fix the problems that api.validate lists',
    });
  }

  /** Omits a channel without content: an error if its criteria are for this channel. */
  #leaveOutChannel(channel: ChannelFacts, criteria: Criteria, where: RequestPlace | undefined): void {
    const problem = `channel ${quoteGo(channel.name)} has no bundle ${describeCriteria(criteria)}`;
    const hint = this.#wanted.nearest(channel, criteria);
    this.#empty.set(channel.name, problem);
    if (where === undefined) this.#leftOut.push(`${problem}${hint === undefined ? '' : ` (${hint})`}`);
    else {
      this.#fail(where, { subject: this.#inCatalog, problem, hint });
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
    return this.#wanted.select(criteria, channel, graph);
  }

  #chooseDefault(channels: readonly ChannelFacts[]): string {
    const names = new Set(channels.map(({ name }) => name));
    const own = this.#model.facts.defaultChannel;
    const requested = this.#filter.defaultChannels.filter((item) => item.package === this.#name).at(-1);
    if (requested !== undefined) {
      if (!names.has(requested.name)) {
        const problem = `channel ${quoteGo(requested.name)} has no matching content, so it cannot be the default channel`;
        const hint = listNames('use a known channel:', names);
        if (this.#model.channels.has(requested.name))
          this.#fail(requested.where, { subject: this.#inCatalog, problem, hint });
      } else if (requested.name !== own) {
        this.#changes.push(`${this.#about}: default channel is now ${quoteGo(requested.name)}`);
      }
      return requested.name;
    }
    if (names.has(own)) return own;
    if (!this.#isRequested) return [...this.#also.keys()].find((name) => names.has(name)) ?? own;
    if (this.#filter.lostDefault === 'refuse') {
      this.#refuseDefault(own, names);
      return own;
    }
    const heads = new Map(channels.map(({ name, entries }) => [name, readGraph(entries).heads[0] ?? '']));
    const chosen = findHighestChannel(heads, this.#versions);
    this.#changes.push(
      `${this.#about}: default channel is now ${quoteGo(chosen)}; ${quoteGo(own)} is omitted`,
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
    const set = `set defaultChannel to one of ${joinNames([...names])}`;
    const reason = this.#empty.get(own);
    const problem = reason ?? `its default channel ${quoteGo(own)} is not selected`;
    const hint =
      reason === undefined
        ? `add it, or ${set}`
        : `${set}, or choose other versions: it is the default channel`;
    this.#fail(where, { subject: this.#inCatalog, problem, hint });
  }

  #fail(where: RequestPlace, fault: FilterFault): void {
    this.#isAtFault = true;
    this.#run.fail(where, fault);
  }
}
