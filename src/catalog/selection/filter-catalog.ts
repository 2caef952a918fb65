import { deprecationKey, readDeprecations } from '../../model/deprecations.js';
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

/** A missing name; its hint is the nearest name or version. */
interface Fault {
  code?: 'not-found' | 'invalid-value';
  subject?: string;
  problem: string;
  hint?: string | undefined;
}

type Fail = (where: RequestPlace, fault: Fault) => void;

const maxReasons = 3;

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
export function applyFilter(
  facts: CatalogFacts,
  filter: CatalogFilter,
  options: FilterOptions,
): CatalogSelection {
  const { catalog } = options;
  const faults = new Map<string, Diagnostic>();
  const fail: Fail = ({ subject, ...place }, { code = 'not-found', ...fault }): void => {
    const diagnostic: Diagnostic = { severity: 'error', code, ...fault, ...place };
    const message = formatMessage(diagnostic);
    if (faults.has(message)) return;
    faults.set(message, subject === undefined ? diagnostic : withSubject(diagnostic, subject));
  };
  const models = readPackages(facts);
  const misnamed = requireNames(models, filter, catalog, fail);
  const kept = emptyFacts();
  const result: CatalogSelection = {
    isWhole: false,
    facts: kept,
    packages: [],
    kept: [],
    warnings: [],
    changes: [],
  };
  const { packages, dropPackages, also } = filter;
  const names = packages?.map(({ name }) => name) ?? models.keys();
  const dropped = new Set(dropPackages.map(({ name }) => name));
  for (const name of new Set([...names, ...also.keys()])) {
    const model = models.get(name);
    if (model === undefined || dropped.has(name)) continue;
    const isMisnamed = misnamed.has(name) || misnamed.has(undefined);
    filterPackage(model, filter, options, result, fail, isMisnamed);
  }
  if (faults.size > 0) throw new DiagnosticsError([...faults.values()].sort(compareDiagnostics));
  if (kept.packages.length === 0) {
    if (models.size === 0) throw new OpmateError('NOT_FOUND', `${catalog}: has no package`);
    throw new OpmateError('NOT_FOUND', `${catalog}: the filter selects nothing`, {
      hint: result.warnings[0] ?? listNames('use a known package:', models.keys()),
    });
  }
  requireValid(kept, catalog);
  result.packages.sort((a, b) => compareBytes(a.name, b.name));
  return result;
}

/** Requires that all requested names exist. Returns the packages requested with a name that they lack. */
function requireNames(
  allModels: ReadonlyMap<string, PackageModel>,
  filter: CatalogFilter,
  catalog: string,
  fail: Fail,
): ReadonlySet<string | undefined> {
  const { packages, channels, criteria, defaultChannels, dropPackages, dropChannels, dropBundles } = filter;
  const misnamed = new Set<string | undefined>();
  const index = new NameIndex(allModels.keys());
  const isSelected = (name: string): boolean =>
    packages === undefined || packages.some((request) => request.name === name);
  const requirePackage = (
    name: string,
    where: RequestPlace,
    mustBeSelected = true,
  ): PackageModel | undefined => {
    const model = allModels.get(name);
    if (model === undefined) {
      const hint = suggestName('package', name, allModels.keys(), index);
      fail(where, { problem: describeMissing('package', name, catalog), hint });
    } else if (mustBeSelected && !isSelected(name)) {
      const problem = `package ${quoteGo(name)} is not selected`;
      fail(where, { problem, hint: 'select it as well' });
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
    const models = [...allModels].filter(
      ([text]) => text === (of ?? text) && (of !== undefined || isSelected(text)),
    );
    if (models.some(([, packageModel]) => packageModel.channels.has(name))) return;
    const known = new Set(models.flatMap(([, packageModel]) => [...packageModel.channels.keys()]));
    const scope = of === undefined ? 'the chosen packages' : `package ${quoteGo(of)} of ${catalog}`;
    misnamed.add(of);
    const hint = suggestName('channel', name, known);
    fail(where, { problem: describeMissing('channel', name, scope), hint });
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
    const models = model === undefined ? [...allModels.values()] : [model];
    if (models.some(({ bundles }) => bundles.has(name))) continue;
    const known = new Set(models.flatMap(({ bundles }) => [...bundles.keys()]));
    const scope = of === undefined ? catalog : `package ${quoteGo(of)} of ${catalog}`;
    const hint = suggestName('bundle', name, known);
    fail(where, { problem: describeMissing('bundle', name, scope), hint });
  }
  return misnamed;
}

/** Selects content of one package, and adds it to a result. A package requested with a wrong name is already reported. */
function filterPackage(
  model: PackageModel,
  filter: CatalogFilter,
  options: FilterOptions,
  result: CatalogSelection,
  report: Fail,
  isMisnamed: boolean,
): void {
  const packageName = model.facts.name;
  const about = `package ${quoteGo(packageName)}`;
  const inCatalog = `${about} in ${options.catalog}`;
  const isPackageRequested = filter.packages?.some(({ name }) => name === packageName) !== false;
  const alsoWanted = filter.also.get(packageName) ?? new Map<string, ReadonlySet<string>>();
  const bundleVersions = readBundleVersions(model.bundles.values());
  const packageChanges: string[] = [];
  /** Reasons of omitted channels. */
  const leftOut: string[] = [];
  /** Channels without selected content. */
  const empty = new Map<string, string>();
  const keptBundles: KeptBundle[] = [];
  const undated = new Set<string>();
  let isAtFault = isMisnamed;
  const fail: Fail = (where, fault) => {
    isAtFault = true;
    report(where, fault);
  };
  const deprecations = readDeprecations(model.deprecations);
  const selected = isDeprecated(schemas.package, '') ? [] : chooseChannels();
  if (selected.length === 0) {
    leaveOut();
    return;
  }
  const { facts, kept, warnings, changes, packages } = result;
  const part = keepChannels(model, selected, chooseDefault(selected));
  addPart(facts, part.facts);
  packages.push(part.summary);
  for (const bundle of keptBundles) kept.push(bundle);
  for (const name of packageChanges) changes.push(name);
  for (const why of leftOut) warnings.push(`${about}: ${why}; omitted`);
  if (undated.size > 0) {
    const done = filter.undated === 'keep' ? 'included' : 'excluded';
    warnings.push(listNames(`${about}: ${done} bundles without a creation date:`, undated));
  }

  /** Omits a package without content: an error if it was requested by name. */
  function leaveOut(): void {
    if (isAtFault) return;
    const { packages = [], criteria, channels } = filter;
    const named: { where: RequestPlace }[] = [
      ...packages.filter(({ name }) => name === packageName),
      ...[...channels, ...criteria].filter((item) => item.package === packageName),
    ];
    const problem = `${inCatalog} has no matching content`;
    const why = whyNothing();
    const [first] = named;
    // Criteria that select nothing are to blame, not the request of the package.
    const blamed = criteria.findLast(
      ({ package: of = packageName, where }) =>
        empty.size > 0 && of === packageName && where.subject !== undefined,
    );
    if (first !== undefined) fail((blamed ?? first).where, { problem, hint: why || undefined });
    else {
      result.warnings.push(
        `${about}: omitted, as it has no matching content${why === '' ? '' : ` (${why})`}`,
      );
    }
  }

  function whyNothing(): string {
    if (isDeprecated(schemas.package, '')) return 'the package is deprecated';
    const deprecated = [...model.channels.keys()]
      .filter((name) => isDeprecated(schemas.channel, name))
      .map((name) => `channel ${quoteGo(name)} is deprecated`);
    const reasons = [...leftOut, ...deprecated];
    const shown = reasons.slice(0, maxReasons);
    const more = reasons.length - shown.length;
    return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
  }

  function chooseChannels(): ChannelFacts[] {
    const requested = getRequestedChannels();
    const dropped = filter.dropChannels.filter((request) => (request.package ?? packageName) === packageName);
    const droppedNames = new Set(dropped.map(({ name }) => name));
    const gone = droppedBundles();
    return [...model.channels.values()].flatMap((channel) => {
      const { name } = channel;
      const isRequested = isPackageRequested && requested?.has(name) !== false;
      if ((!isRequested && !alsoWanted.has(name)) || droppedNames.has(name)) return [];
      if (isDeprecated(schemas.channel, name)) return [];
      const left = repair(channel, gone);
      if (left.entries.length > 0 || channel.entries.length === 0) return chooseEntries(left, isRequested);
      leftOut.push(`channel ${quoteGo(name)} has dropped bundles only`);
      return [];
    });
  }

  /** Returns the requested channels; undefined for all. */
  function getRequestedChannels(): ReadonlySet<string> | undefined {
    const own = filter.channels.filter((request) => (request.package ?? packageName) === packageName);
    if (own.length === 0) return undefined;
    const names = new Set(own.map(({ name }) => name));
    if (![...names].some((name) => model.channels.has(name))) {
      const known = listNames('has', model.channels.keys());
      leftOut.push(`it ${known} and ${listNames('none of', names)}`);
    }
    return names;
  }

  function droppedBundles(): ReadonlySet<string> {
    const requested = filter.dropBundles.filter((item) => (item.package ?? packageName) === packageName);
    const gone = new Set(requested.map(({ name }) => name));
    for (const name of model.bundles.keys()) {
      if (isDeprecated(schemas.bundle, name)) gone.add(name);
    }
    return gone;
  }

  function isDeprecated(schema: string, name: string): boolean {
    return filter.dropDeprecated && deprecations.has(deprecationKey(schema, name));
  }

  function repair(channel: ChannelFacts, gone: ReadonlySet<string>): ChannelFacts {
    const { entries, changes } = repairChannel(channel.entries, gone, bundleVersions);
    if (entries.length === channel.entries.length) return channel;
    const subject = `${about}, channel ${quoteGo(channel.name)}`;
    for (const change of changes) packageChanges.push(`${subject}: ${change}`);
    return { ...channel, entries };
  }

  /** Returns the selected entries of a channel with those they need; none if empty. */
  function chooseEntries(channel: ChannelFacts, isRequested: boolean): ChannelFacts[] {
    const { criteria, where, isOfChannel } = getCriteria(channel.name);
    if (isRequested && Object.keys(criteria).length === 0) return [channel];
    const graph = readGraph(channel.entries);
    const also = [...(alsoWanted.get(channel.name) ?? [])].filter((name) => graph.entries.has(name));
    const wanted = isRequested ? findWanted(channel, graph, where, criteria) : new Set<string>();
    if (wanted === undefined) return [];
    if (wanted.size + also.length === 0) {
      if (isRequested) leaveOutChannel(channel, criteria, isOfChannel ? where : undefined);
      return [];
    }
    if (filter.keep === 'nothing') {
      const names = new Set([...wanted, ...also]);
      const rest = channel.entries.filter(({ name }) => !names.has(name)).map(({ name }) => name);
      return [repair(channel, new Set(rest))];
    }
    const kept = keep(channel, graph, criteria, wanted, also);
    if (kept === undefined) {
      failGraph(where, channel, describeGraphFault(graph));
      return [];
    }
    const entries = channel.entries.filter(({ name }) => kept.names.has(name));
    if (entries.length === 0) {
      leaveOutChannel(channel, criteria, isOfChannel ? where : undefined);
      return [];
    }
    for (const { name: bundle } of entries) {
      const reason = kept.reasons.get(bundle);
      if (reason === undefined) continue;
      keptBundles.push({ package: packageName, channel: channel.name, bundle, reason });
    }
    const head = getOnlyHead(graph);
    const [newHead] = readGraph(entries).heads;
    if (newHead !== head) {
      const subject = `${about}, channel ${quoteGo(channel.name)}`;
      packageChanges.push(
        `${subject}: head is now ${quoteGo(newHead ?? '')}; ${quoteGo(head ?? '')} is omitted`,
      );
    }
    return [{ ...channel, entries }];
  }

  /** Returns the wanted entries of a channel with those they need; undefined for a chain with a cycle. */
  function keep(
    channel: ChannelFacts,
    graph: ChannelGraph,
    criteria: Criteria,
    wanted: ReadonlySet<string>,
    also: readonly string[],
  ): KeptEntries | undefined {
    const alone = { names: wanted, reasons: new Map<string, string>() };
    if (filter.keep === 'needed') {
      return new ChannelWays(channel.entries, bundleVersions).keep(new Set([...wanted, ...also]));
    }
    const isOne = criteria.latest === 1 || criteria.version !== undefined || wanted.size === 0;
    const requested = isOne
      ? alone
      : keepChain(channel.entries, graph, (name) => {
          const version = wanted.has(name) ? bundleVersions.get(name) : undefined;
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

  function failGraph(
    where: RequestPlace,
    channel: ChannelFacts,
    fault = 'its upgrade chain is a cycle',
  ): void {
    fail(where, {
      code: 'invalid-value',
      subject: inCatalog,
      problem: `channel ${quoteGo(channel.name)}: ${fault}`,
      hint: 'fix the problems that opmate validate lists',
    });
  }

  /** Omits a channel without content: an error if its criteria are for this channel. */
  function leaveOutChannel(channel: ChannelFacts, criteria: Criteria, where: RequestPlace | undefined): void {
    const problem = `channel ${quoteGo(channel.name)} has no bundle ${describeCriteria(criteria)}`;
    const hint = nearest(channel, criteria);
    empty.set(channel.name, problem);
    if (where === undefined) leftOut.push(`${problem}${hint === undefined ? '' : ` (${hint})`}`);
    else {
      fail(where, { subject: inCatalog, problem, hint });
    }
  }

  /** Returns the criteria of a channel, the place of the narrowest, and whether that is for this channel. */
  function getCriteria(channel: string): { criteria: Criteria; where: RequestPlace; isOfChannel: boolean } {
    const scoped = filter.criteria.filter(
      (scopedCriteria) =>
        (scopedCriteria.package ?? packageName) === packageName &&
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
  function findWanted(
    channel: ChannelFacts,
    graph: ChannelGraph,
    where: RequestPlace,
    criteria: Criteria,
  ): Set<string> | undefined {
    const fault = filter.keep === 'chain' ? describeHeadFault(graph) : describeGraphFault(graph);
    if (fault !== undefined) {
      failGraph(where, channel, fault);
      return undefined;
    }
    if (criteria.version !== undefined) return exactVersion(graph, criteria.version);
    return wantedBy(criteria, channel, new ChannelWays(channel.entries, bundleVersions));
  }

  function exactVersion({ entries, chain }: ChannelGraph, text: string): Set<string> {
    const wanted = parseVersion(text);
    const isExact = (name: string): boolean => {
      const version = bundleVersions.get(name);
      return version !== undefined && compareVersions(version, wanted) === 0;
    };
    const rank = (name: string): number => {
      if (formatVersion(bundleVersions.get(name) as Version) === text) return -1;
      const place = chain.indexOf(name);
      return place < 0 ? chain.length : place;
    };
    const matches = [...entries.keys()].filter(isExact);
    return new Set(matches.sort((a, b) => rank(a) - rank(b) || compareBytes(a, b)).slice(0, 1));
  }

  function wantedBy(criteria: Criteria, { entries }: ChannelFacts, ways: ChannelWays): Set<string> {
    const { versions, minVersion, maxVersion, reachableFrom, createdSince, latest } = criteria;
    const tests: ((name: string) => boolean)[] = [];
    if (versions !== undefined) {
      tests.push((name) => testVersion(name, (version) => versions.range.contains(version)));
    }
    if (minVersion !== undefined || maxVersion !== undefined) {
      const isInRange = toRange({ minVersion, maxVersion }, [...bundleVersions.values()]);
      tests.push((name) => testVersion(name, isInRange));
    }
    if (reachableFrom !== undefined) {
      const reachable = findReachable(entries, ways, reachableFrom);
      tests.push((name) => reachable.has(name));
    }
    if (createdSince !== undefined) tests.push((name) => isCreatedSince(name, createdSince));
    const order = latest === undefined ? entries.map(({ name }) => name) : ways.newestFirst();
    const wanted = new Set<string>();
    for (const name of order) {
      if (wanted.size === latest) break;
      if (tests.every((test) => test(name))) wanted.add(name);
    }
    return wanted;
  }

  function testVersion(name: string, test: (version: Version) => boolean): boolean {
    const version = bundleVersions.get(name);
    return version !== undefined && test(version);
  }

  function isCreatedSince(name: string, since: string): boolean {
    const day = options.dayOf?.(packageName, name);
    if (day !== undefined) return day >= since;
    undated.add(name);
    return filter.undated === 'keep';
  }

  /**
   * Returns entries reachable from a bundle by name, or from all that a version may stand for: such names end with
   * it.
   */
  function findReachable(
    entries: readonly ChannelEntry[],
    ways: ChannelWays,
    installed: string,
  ): ReadonlySet<string> {
    const version = tryParse(parseVersion, installed);
    if (version === undefined) {
      const suffix = /\.v?(\d+\.\d+\.\d+.*)$/.exec(installed)?.[1];
      const known = bundleVersions.get(installed) ?? tryParse(parseVersion, suffix ?? '');
      return ways.reachableFrom(new Set([installed]), known);
    }
    const names = new Set<string>();
    for (const [name, item] of bundleVersions) if (compareVersions(item, version) === 0) names.add(name);
    for (const { replaces, skips } of entries) {
      for (const name of [replaces, ...skips]) {
        const isCalledSo = name.endsWith(`.v${installed}`) || name.endsWith(`.${installed}`);
        if (isCalledSo && !bundleVersions.has(name)) names.add(name);
      }
    }
    return ways.reachableFrom(names, version);
  }

  /** Returns the versions nearest to the requested ones. */
  function nearest({ entries }: ChannelFacts, criteria: Criteria): string | undefined {
    const { version, minVersion = version, maxVersion = version, reachableFrom, versions } = criteria;
    const known = entries.map(({ name }) => bundleVersions.get(name));
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

  function chooseDefault(channels: readonly ChannelFacts[]): string {
    const names = new Set(channels.map(({ name }) => name));
    const own = model.facts.defaultChannel;
    const requested = filter.defaultChannels.filter((item) => item.package === packageName).at(-1);
    if (requested !== undefined) {
      if (!names.has(requested.name)) {
        const problem = `channel ${quoteGo(requested.name)} has no matching content, so it cannot be the default channel`;
        const hint = listNames('use a known channel:', names);
        if (model.channels.has(requested.name)) fail(requested.where, { subject: inCatalog, problem, hint });
      } else if (requested.name !== own) {
        packageChanges.push(`${about}: default channel is now ${quoteGo(requested.name)}`);
      }
      return requested.name;
    }
    if (names.has(own)) return own;
    if (!isPackageRequested) return [...alsoWanted.keys()].find((name) => names.has(name)) ?? own;
    if (filter.lostDefault === 'refuse') {
      refuseDefault(own, names);
      return own;
    }
    const heads = new Map(channels.map(({ name, entries }) => [name, readGraph(entries).heads[0] ?? '']));
    const chosen = findHighestChannel(heads, bundleVersions);
    packageChanges.push(`${about}: default channel is now ${quoteGo(chosen)}; ${quoteGo(own)} is omitted`);
    return chosen;
  }

  function refuseDefault(own: string, names: ReadonlySet<string>): void {
    if (isAtFault) return;
    const { packages, criteria } = filter;
    const [{ where } = { where: {} }] = [
      ...(packages ?? []).filter(({ name }) => name === packageName),
      ...criteria,
    ];
    const set = `set defaultChannel to one of ${joinNames([...names])}`;
    const reason = empty.get(own);
    const problem = reason ?? `its default channel ${quoteGo(own)} is not selected`;
    const hint =
      reason === undefined
        ? `add it, or ${set}`
        : `${set}, or choose other versions: it is the default channel`;
    fail(where, { subject: inCatalog, problem, hint });
  }
}
