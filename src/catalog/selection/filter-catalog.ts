import { NameIndex, describeMissing, listNames, suggestName } from '../../core/suggest.js';
import { OpmateError } from '../../core/errors.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { type Version, compareVersions, parseVersion, tryParse } from '../../core/semver.js';
import { type ChannelEntry, schemas } from '../../model/declarative-config.js';
import type { CatalogFacts, ChannelFacts } from '../../model/facts.js';
import { describeGraphFault, readGraph } from '../../graph/channel-graph.js';
import { type CatalogFilter, type Criteria, describeCriteria } from './catalog-filter.js';
import { ChannelWays } from './keep-ways.js';
import { readBundleVersions } from '../../graph/bundle-version.js';
import { type PackageModel, findHighestChannel, readPackages } from '../../graph/package-model.js';
import { repairChannel } from './repair-channel.js';
import { type CatalogSelection, type KeptBundle, addPart, keepChannels, requireValid } from './selection.js';
import { nearestVersions, rangeOf } from './version-bounds.js';

/** What a filter keeps of a catalog. */
export interface FilteredCatalog extends CatalogSelection {
  /** One sentence each: edges that lead past what was dropped, new heads and default channels. */
  changes: string[];
}

export interface FilterOptions {
  /** How messages name the catalog. */
  catalog: string;
  /** The day on which a bundle was created, where it says one; asked for only where the filter has `createdSince`. */
  dayOf?: ((packageName: string, bundle: string) => string | undefined) | undefined;
}

/**
 * Keeps what a filter asks for, and what that needs to be a valid catalog in which no cluster is stranded: from each
 * bundle that is kept the head of its channel is still reached, if it was before.
 *
 * - What is to be dropped goes first, and edges lead past it (see `repairChannel`): it was said that it must not be
 *   there.
 * - What is to be kept is not cut out of its channel: between bundles that are kept stay those that the way from one to
 *   the other goes through (see `keepWays`), each with its reason in `kept`. For an edge that leads past a bundle is an
 *   upgrade that the author of the operator never offered; a catalog must not invent it unasked. With `exact` it is
 *   asked for: then only what was asked for is kept.
 * - A channel of which nothing is left goes, and so does a package. If the default channel goes, that of the channels
 *   left whose head has the highest version takes its place, unless the filter names one.
 * - Deprecations are carried for what is left, and custom blobs with their package.
 *
 * Throws OpmateError: whatever was asked for by its name and is not there or has nothing that is wanted, all in one
 * error with the nearest names and versions, and a catalog of which nothing valid can be made.
 */
export function filterCatalog(
  facts: CatalogFacts,
  filter: CatalogFilter,
  options: FilterOptions,
): FilteredCatalog {
  return new CatalogChoice(facts, filter, options).choose();
}

const nothingSaid: Criteria = {};

class CatalogChoice {
  readonly #models: ReadonlyMap<string, PackageModel>;
  readonly #filter: CatalogFilter;
  readonly #options: FilterOptions;
  readonly #faults = new Map<string, OpmateError>();
  readonly #result: FilteredCatalog = {
    isWhole: false,
    facts: { packages: [], channels: [], bundles: [], deprecations: [] },
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

  choose(): FilteredCatalog {
    this.#requireNames();
    this.#throwFaults();
    const { packages, dropPackages } = this.#filter;
    const asked = packages === undefined ? undefined : new Set(packages.map(({ name }) => name));
    const dropped = new Set(dropPackages.map(({ name }) => name));
    for (const [name, model] of this.#models) {
      if (asked?.has(name) === false || dropped.has(name)) continue;
      new PackageFilter(name, model, this.#filter, this.#options, this.#result, this.#fail).choose();
    }
    this.#throwFaults();
    const { facts } = this.#result;
    if (facts.packages.length === 0) {
      const { catalog } = this.#options;
      if (this.#models.size === 0) throw new OpmateError('NOT_FOUND', `${catalog}: has no package`);
      throw new OpmateError('NOT_FOUND', `${catalog}: the filter selects nothing`, {
        hint: this.#result.warnings[0] ?? listNames('known packages:', this.#models.keys()),
      });
    }
    requireValid(facts, this.#options.catalog);
    this.#result.packages.sort((a, b) => compareBytes(a.name, b.name));
    return this.#result;
  }

  readonly #fail = (where: string, problem: string, hint: string | undefined): void => {
    const message = `${where}: ${problem}`;
    if (!this.#faults.has(message))
      this.#faults.set(message, new OpmateError('NOT_FOUND', message, { hint }));
  };

  #throwFaults(): void {
    if (this.#faults.size > 0) throw combineErrors([...this.#faults.values()]);
  }

  /** Everything that is named must be there. */
  #requireNames(): void {
    const { packages, channels, criteria, defaultChannels } = this.#filter;
    const { dropPackages, dropChannels, dropBundles } = this.#filter;
    const { catalog } = this.#options;
    const index = new NameIndex(this.#models.keys());
    const isSelected = (name: string): boolean =>
      packages === undefined || packages.some((one) => one.name === name);
    const requirePackage = (name: string, where: string, mustBeSelected = true): PackageModel | undefined => {
      const model = this.#models.get(name);
      if (model === undefined) {
        const hint = suggestName('package', name, this.#models.keys(), index);
        this.#fail(where, describeMissing('package', name, catalog), hint);
      } else if (mustBeSelected && !isSelected(name)) {
        this.#fail(where, `package ${quoteGo(name)} is not among the chosen packages`, 'choose it as well');
      } else return model;
      return undefined;
    };
    const requireChannel = (
      name: string,
      of: string | undefined,
      where: string,
      mustBeSelected = true,
    ): void => {
      const model = of === undefined ? undefined : requirePackage(of, where, mustBeSelected);
      if (of !== undefined && model === undefined) return;
      const models = [...this.#models].filter(
        ([one]) => one === (of ?? one) && (of !== undefined || isSelected(one)),
      );
      if (models.some(([, one]) => one.channels.has(name))) return;
      const known = new Set(models.flatMap(([, one]) => [...one.channels.keys()]));
      const scope = of === undefined ? 'the chosen packages' : `package ${quoteGo(of)} of ${catalog}`;
      this.#fail(where, describeMissing('channel', name, scope), suggestName('channel', name, known));
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
      this.#fail(where, describeMissing('bundle', name, scope), suggestName('bundle', name, known));
    }
  }
}

const maxReasons = 3;

/** Chooses of one package, and adds it to a result. */
class PackageFilter {
  readonly #name: string;
  readonly #model: PackageModel;
  readonly #filter: CatalogFilter;
  readonly #options: FilterOptions;
  readonly #result: FilteredCatalog;
  readonly #fail: (where: string, problem: string, hint: string | undefined) => void;
  readonly #versions: ReadonlyMap<string, Version>;
  readonly #changes: string[] = [];
  readonly #warnings: string[] = [];
  /** Why channels are left out. */
  readonly #leftOut: string[] = [];
  readonly #kept: KeptBundle[] = [];
  readonly #undated = new Set<string>();

  constructor(
    name: string,
    model: PackageModel,
    filter: CatalogFilter,
    options: FilterOptions,
    result: FilteredCatalog,
    fail: (where: string, problem: string, hint: string | undefined) => void,
  ) {
    this.#name = name;
    this.#model = model;
    this.#filter = filter;
    this.#options = options;
    this.#result = result;
    this.#fail = fail;
    this.#versions = readBundleVersions(model.bundles.values());
  }

  choose(): void {
    const channels = this.#isDeprecated(schemas.package, '') ? [] : this.#chooseChannels();
    if (channels.length === 0) {
      this.#leaveOut();
      return;
    }
    const { facts, kept, warnings, changes, packages } = this.#result;
    const part = keepChannels(this.#model, channels, this.#chooseDefault(channels));
    addPart(facts, part.facts);
    packages.push(part.summary);
    for (const one of this.#kept) kept.push(one);
    for (const one of this.#changes) changes.push(one);
    this.#warnOfUndated();
    const subject = `package ${quoteGo(this.#name)}`;
    for (const why of this.#leftOut) warnings.push(`${subject}: ${why}, so it is left out`);
    for (const one of this.#warnings) warnings.push(one);
  }

  #warnOfUndated(): void {
    const names = [...this.#undated];
    if (names.length === 0) return;
    const done = this.#filter.undated === 'keep' ? 'taken as new enough' : 'not taken';
    this.#warnings.push(
      listNames(
        `package ${quoteGo(this.#name)}: ${done}, since they do not tell when they were created:`,
        names,
      ),
    );
  }

  /** Nothing of the package is left: a fault where it was asked for by its name. */
  #leaveOut(): void {
    const { packages = [], criteria, channels } = this.#filter;
    const named: { where: string }[] = [
      ...packages.filter(({ name }) => name === this.#name),
      ...[...channels, ...criteria].filter((one) => one.package === this.#name),
    ];
    const problem = `nothing of package ${quoteGo(this.#name)} in ${this.#options.catalog} is left`;
    const why = this.#whyNothing();
    const [first] = named;
    if (first !== undefined) this.#fail(first.where, problem, why || undefined);
    else {
      this.#result.warnings.push(
        `package ${quoteGo(this.#name)}: is left out, since nothing of it is left${why === '' ? '' : ` (${why})`}`,
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
    const asked = this.#channelsAsked();
    const dropped = this.#filter.dropChannels.filter((one) => (one.package ?? this.#name) === this.#name);
    const droppedNames = new Set(dropped.map(({ name }) => name));
    const gone = this.#droppedBundles();
    return [...this.#model.channels.values()].flatMap((channel) => {
      const { name } = channel;
      if (asked?.has(name) === false || droppedNames.has(name)) return [];
      if (this.#isDeprecated(schemas.channel, name)) return [];
      const left = this.#repair(channel, gone);
      if (left.entries.length > 0 || channel.entries.length === 0) return this.#chooseOf(left);
      this.#leftOut.push(`channel ${quoteGo(name)} has no bundle that is not dropped`);
      return [];
    });
  }

  /** Undefined for all channels. */
  #channelsAsked(): ReadonlySet<string> | undefined {
    const own = this.#filter.channels.filter((one) => (one.package ?? this.#name) === this.#name);
    if (own.length === 0) return undefined;
    const names = new Set(own.map(({ name }) => name));
    if (![...names].some((name) => this.#model.channels.has(name))) {
      const known = listNames('has', this.#model.channels.keys());
      this.#leftOut.push(`it ${known} and ${listNames('none of', names)}`);
    }
    return names;
  }

  #droppedBundles(): ReadonlySet<string> {
    const asked = this.#filter.dropBundles.filter((one) => (one.package ?? this.#name) === this.#name);
    const gone = new Set(asked.map(({ name }) => name));
    for (const name of this.#model.bundles.keys()) {
      if (this.#isDeprecated(schemas.bundle, name)) gone.add(name);
    }
    return gone;
  }

  /** Whether it is to be dropped for being deprecated. */
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
    const subject = `package ${quoteGo(this.#name)}, channel ${quoteGo(channel.name)}`;
    for (const change of changes) this.#changes.push(`${subject}: ${change}`);
    return { ...channel, entries };
  }

  /** The channel with what is wanted of it and what that needs; none where nothing is. */
  #chooseOf(channel: ChannelFacts): ChannelFacts[] {
    const { criteria, where } = this.#criteriaOf(channel.name);
    if (Object.keys(criteria).length === 0) return [channel];
    const fault = describeGraphFault(readGraph(channel.entries));
    if (fault !== undefined) {
      throw new OpmateError(
        'INVALID',
        `${this.#options.catalog}: package ${quoteGo(this.#name)}, channel ${quoteGo(channel.name)}: ${fault}`,
        { hint: 'the catalog itself is at fault; opmate validate says more' },
      );
    }
    const ways = new ChannelWays(channel.entries, this.#versions);
    const wanted = this.#wantedOf(channel, ways, criteria);
    if (wanted.size === 0) {
      const problem = `channel ${quoteGo(channel.name)} has no bundle ${describeCriteria(criteria)}`;
      const hint = this.#nearest(channel, criteria);
      if (where === undefined) this.#leftOut.push(`${problem}${hint === undefined ? '' : ` (${hint})`}`);
      else this.#fail(where, `package ${quoteGo(this.#name)} in ${this.#options.catalog}: ${problem}`, hint);
      return [];
    }
    const isWanted = ({ name }: ChannelEntry): boolean => wanted.has(name);
    if (this.#filter.exact) {
      const rest = channel.entries.filter((entry) => !isWanted(entry)).map(({ name }) => name);
      return [this.#repair(channel, new Set(rest))];
    }
    const { names, reasons } = ways.keep(wanted);
    const entries = channel.entries.filter(({ name }) => names.has(name));
    for (const { name: bundle } of entries) {
      const reason = reasons.get(bundle);
      if (reason === undefined) continue;
      this.#kept.push({ package: this.#name, channel: channel.name, bundle, reason });
    }
    const { head } = ways;
    const [newHead] = readGraph(entries).heads;
    if (newHead !== head) {
      const subject = `package ${quoteGo(this.#name)}, channel ${quoteGo(channel.name)}`;
      this.#changes.push(
        `${subject}: its head is ${quoteGo(newHead ?? '')} now, since ${quoteGo(head ?? '')} is left out`,
      );
    }
    return [{ ...channel, entries }];
  }

  /** What counts for a channel; `where` some of it was said for this very channel. */
  #criteriaOf(channel: string): { criteria: Criteria; where: string | undefined } {
    const scoped = this.#filter.criteria.filter(
      (one) => (one.package ?? this.#name) === this.#name && (one.channel ?? channel) === channel,
    );
    const breadth = (one: { package: string | undefined; channel: string | undefined }): number =>
      one.package === undefined ? 0 : one.channel === undefined ? 1 : 2;
    const sorted = scoped.sort((a, b) => breadth(a) - breadth(b));
    const criteria: Criteria = Object.assign({}, nothingSaid, ...sorted.map((one) => one.criteria));
    const narrowest = sorted.at(-1);
    return { criteria, where: narrowest?.channel === undefined ? undefined : narrowest.where };
  }

  #wantedOf({ entries }: ChannelFacts, ways: ChannelWays, criteria: Criteria): Set<string> {
    const { versions, minVersion, maxVersion, reachableFrom, createdSince, latest } = criteria;
    const tests: ((name: string) => boolean)[] = [];
    if (versions !== undefined) {
      tests.push((name) => this.#testVersion(name, (version) => versions.range.contains(version)));
    }
    if (minVersion !== undefined || maxVersion !== undefined) {
      const isInRange = rangeOf({ minVersion, maxVersion }, [...this.#versions.values()]);
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

  /** From a bundle by its name, or from each that a version may stand for: such names end with it. */
  #reachable(entries: readonly ChannelEntry[], ways: ChannelWays, installed: string): ReadonlySet<string> {
    const version = tryParse(parseVersion, installed);
    if (version === undefined) {
      const suffix = /\.v?(\d+\.\d+\.\d+.*)$/.exec(installed)?.[1];
      const known = this.#versions.get(installed) ?? tryParse(parseVersion, suffix ?? '');
      return ways.reachableFrom(new Set([installed]), known);
    }
    const names = new Set<string>();
    for (const [name, one] of this.#versions) if (compareVersions(one, version) === 0) names.add(name);
    for (const { replaces, skips } of entries) {
      for (const name of [replaces, ...skips]) {
        const isCalledSo = name.endsWith(`.v${installed}`) || name.endsWith(`.${installed}`);
        if (isCalledSo && !this.#versions.has(name)) names.add(name);
      }
    }
    return ways.reachableFrom(names, version);
  }

  /** The versions next to those that were asked for. */
  #nearest({ entries }: ChannelFacts, criteria: Criteria): string | undefined {
    const { minVersion, maxVersion, reachableFrom, versions } = criteria;
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
    const asked = this.#filter.defaultChannels.filter((one) => one.package === this.#name).at(-1);
    const subject = `package ${quoteGo(this.#name)}`;
    if (asked !== undefined) {
      if (!names.has(asked.name)) {
        const problem = `${subject} in ${this.#options.catalog}: nothing of channel ${quoteGo(asked.name)} is left`;
        this.#fail(
          asked.where,
          `${problem}, so it cannot be the default channel`,
          listNames('known channels:', names),
        );
      } else if (asked.name !== own) {
        this.#changes.push(`${subject}: its default channel is ${quoteGo(asked.name)} now`);
      }
      return asked.name;
    }
    if (names.has(own)) return own;
    const chosen = findHighestChannel(channels, this.#versions);
    this.#changes.push(
      `${subject}: its default channel is ${quoteGo(chosen)} now, since ${quoteGo(own)} is left out`,
    );
    return chosen;
  }
}
