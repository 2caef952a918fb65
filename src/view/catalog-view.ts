import { notFound } from '../core/suggest.js';
import { type Severity, formatMessage } from '../core/diagnostic.js';
import { groupBy, pushTo } from '../core/groups.js';
import { severities } from '../catalog/doctor/checks.js';
import { examineBundle } from '../catalog/doctor/examine-bundle.js';
import { FindingList } from '../catalog/doctor/finding-list.js';
import { allowedOpenShift } from '../catalog/doctor/openshift.js';
import { collectFacts } from '../catalog/facts.js';
import { placeDiagnostics } from '../catalog/locate.js';
import type { Catalog, MetasOptions } from '../catalog/catalog.js';
import { type CatalogDiff, diffCatalogs } from '../catalog/diff/diff.js';
import { takeSnapshot } from '../catalog/diff/snapshot.js';
import type { Meta } from '../catalog/meta.js';
import { takeTurn } from '../core/concurrency.js';
import { OpmateError, messageOf, throwIfCancelled } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { silentLogger } from '../core/log.js';
import { compareBytes } from '../core/order.js';
import { type Version, parseVersion, tryParse } from '../core/semver.js';
import { type BundleBlob, type ChannelEntry, schemas } from '../model/declarative-config.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../model/catalog-diagnostic.js';
import { decodeBundle, decodePackage } from '../model/decode.js';
import type {
  BlobOrigin,
  BundleFacts,
  CatalogFacts,
  ChannelFacts,
  DeprecationsFacts,
  PackageFacts,
} from '../model/facts.js';
import { formatBundleVersion, readBundleVersion, readBundleVersions } from '../graph/bundle-version.js';
import { type BundleVersion, type PackageBundle, parseBundleVersion } from '../graph/resolve-content.js';
import {
  type UpgradeFrom,
  UpgradeGraph,
  longestPath,
  readableVersion,
  shortestPath,
} from '../graph/upgrade-graph.js';
import { UpgradeRules } from '../graph/upgrade-rules.js';
import { type ChannelGraph, describeGraphFault, findHead, readGraph } from '../graph/channel-graph.js';
import { validateInTurns } from '../graph/validate.js';
import type {
  BundleAnswer,
  BundlePlace,
  CatalogAnswer,
  ChannelAnswer,
  ChannelSummary,
  CompareAnswer,
  ComparedPackageAnswer,
  GraphEdge,
  GraphRow,
  PackageAnswer,
  PackageSummary,
  PathAnswer,
  PathStep,
  ProblemAnswer,
  ProblemsAnswer,
  RowMark,
  SearchAnswer,
  StateAnswer,
} from './answers.js';
import { readBundleDetails, readBundleHeading } from './bundle-details.js';
import { CatalogIndex } from './catalog-index.js';
import { layOutChannel } from './channel-rows.js';
import { ComparedCatalogs } from './compared-catalogs.js';
import { drawSvg } from './graph-svg.js';
import { type Icon, iconOf } from './icon.js';
import { type SearchIndex, type SearchedPackage, searchCatalog } from './search.js';
import { summaryOf } from './summary.js';

/** Problems that one answer has. */
const problemWindow = 50;
/** Lines are counted from the beginning of a file; beyond this byte a problem has none, so that no answer takes long. */
const maxLineOffset = 64 * 1024 * 1024;
/** Channels that one graph shows. */
const maxChannels = 20;
/** Characters of a description that are searched. */
const maxSearched = 20_000;

/** A catalog and how the user named it. */
export interface NamedCatalog {
  name: string;
  catalog: Catalog;
}

interface CatalogViewOptions extends Pick<MetasOptions, 'signal' | 'logger'> {
  /** An older catalog: what differs from it is shown. */
  compareWith?: NamedCatalog | undefined;
}

/** A package with all that belongs to it; of several with one name, the first. */
interface ViewedPackage {
  name: string;
  facts: PackageFacts | undefined;
  channels: Map<string, ChannelFacts>;
  bundles: Map<string, BundleFacts>;
  deprecations: Map<string, string>;
  heading: Heading;
  problems: CatalogDiagnostic[];
}

interface Heading {
  displayName: string;
  provider: string;
  summary: string;
  hasIcon: boolean;
  categories: string[];
  keywords: string[];
  description: string;
  openshift?: { min?: number; max?: number };
}

/**
 * Reads a catalog once and answers what its page asks. Names, edges and findings stay in memory, about a kilobyte a
 * bundle; descriptions, icons and bundles are read again when they are asked for, so the catalog must stay open. A
 * catalog with faults is shown as far as it can be read. Throws OpmateError where it cannot be read at all.
 */
export async function openCatalogView(
  { name, catalog }: NamedCatalog,
  options: CatalogViewOptions = {},
): Promise<CatalogView> {
  const { compareWith, signal, logger } = options;
  const faults: OpmateError[] = [];
  const onFault = (fault: OpmateError): unknown => faults.push(fault);
  const reading = { signal, logger, withoutManifests: false, onFault };
  let facts: CatalogFacts;
  let compared: CatalogViewContent['compared'];
  const index = new CatalogIndex();
  const onBundle = (blob: BundleBlob): void => index.addBundle(blob);
  const onOther = (_: BlobOrigin, meta: Meta): void => index.addOther(meta);
  const keeping = { ...reading, onBundle, onOther };
  if (compareWith === undefined) facts = await collectFacts(catalog, keeping);
  else {
    const before = await takeSnapshot(compareWith.catalog, { signal, logger, onFault: () => undefined });
    const after = await takeSnapshot(catalog, keeping);
    compared = {
      from: compareWith.name,
      diff: await diffCatalogs(before, after, { signal }),
      channels: before.facts.channels,
    };
    facts = after.facts;
  }
  const findings = await findingsOf(facts, faults, signal);
  const view = new CatalogView({ name, catalog, facts, index, findings, compared });
  await view.readHeadings(signal);
  return view;
}

/** An open catalog, its facts, and the images that a bundle is and needs. */
interface Selectable {
  catalog: Catalog;
  facts: CatalogFacts;
  imagesOf(packageName: string, bundle: string): string[];
}

interface CatalogViewContent {
  name: string;
  catalog: Catalog;
  facts: CatalogFacts;
  index: CatalogIndex;
  findings: CatalogDiagnostic[];
  compared: { from: string; diff: CatalogDiff; channels: readonly ChannelFacts[] } | undefined;
}

/** The answers about one catalog. Methods throw OpmateError NOT_FOUND for names that it does not have. */
export class CatalogView {
  readonly #name: string;
  readonly #catalog: Catalog;
  readonly #index: CatalogIndex;
  readonly #facts: CatalogFacts;
  #search: SearchIndex | undefined;
  readonly #packages = new Map<string, ViewedPackage>();
  #findings: CatalogDiagnostic[] = [];
  #checking: Promise<void> | undefined;
  readonly #versions = new Map<string, Version | undefined>();
  readonly #compared: ComparedCatalogs | undefined;

  constructor({ name, catalog, facts, index, findings, compared }: CatalogViewContent) {
    this.#name = name;
    this.#catalog = catalog;
    this.#index = index;
    this.#facts = facts;
    for (const one of facts.packages) this.#packageOf(one.name).facts ??= one;
    for (const one of facts.channels) {
      const { channels } = this.#packageOf(one.package);
      if (!channels.has(one.name)) channels.set(one.name, one);
    }
    for (const one of facts.bundles) {
      const { bundles } = this.#packageOf(one.package);
      if (!bundles.has(one.name)) bundles.set(one.name, one);
    }
    for (const one of facts.deprecations) this.#addDeprecations(one);
    this.#setFindings(findings);
    this.#compared = compared && new ComparedCatalogs(compared.from, name, compared.diff, compared.channels);
  }

  #setFindings(findings: CatalogDiagnostic[]): void {
    this.#findings = findings;
    for (const one of this.#packages.values()) one.problems = [];
    for (const finding of findings) this.#packages.get(finding.package ?? '')?.problems.push(finding);
  }

  /**
   * Lets the doctor read the catalog once more, beside what is asked meanwhile; until it has, there are the problems
   * that make a catalog invalid, and mistakes in its graphs. The catalog must stay open until `endChecks`.
   */
  startChecks({ signal, logger = silentLogger }: Pick<CatalogViewOptions, 'signal' | 'logger'> = {}): void {
    const check = async (): Promise<void> => {
      const { diagnoseCatalog } = await import('../catalog/doctor/diagnose.js');
      this.#setFindings(await diagnoseCatalog(this.#catalog, { signal }));
    };
    this.#checking = check()
      .catch((error: unknown) => {
        if (signal?.aborted !== true) logger.log('warn', `checks ended early: ${messageOf(error)}`);
      })
      .finally(() => {
        this.#checking = undefined;
      });
  }

  /** Whether checks are still running: numbers of problems may grow. */
  get isChecking(): boolean {
    return this.#checking !== undefined;
  }

  /** Waits until no check reads the catalog; the signal that they were started with ends them. */
  async endChecks(): Promise<void> {
    await this.#checking;
  }

  #packageOf(name: string): ViewedPackage {
    let found = this.#packages.get(name);
    if (found === undefined) {
      const lists = { categories: [], keywords: [] };
      const heading = {
        displayName: '',
        provider: '',
        summary: '',
        hasIcon: false,
        description: '',
        ...lists,
      };
      found = {
        name,
        facts: undefined,
        channels: new Map(),
        bundles: new Map(),
        deprecations: new Map(),
        heading,
        problems: [],
      };
      this.#packages.set(name, found);
    }
    return found;
  }

  #addDeprecations({ package: packageName, entries }: DeprecationsFacts): void {
    const { deprecations } = this.#packageOf(packageName);
    for (const { reference, message } of entries) {
      const key = deprecationKey(reference.schema, reference.name);
      if (!deprecations.has(key)) deprecations.set(key, message);
    }
  }

  /** Reads what the list of packages shows: the package's blob, and the bundle at the head of its default channel. */
  async readHeadings(signal: AbortSignal | undefined): Promise<void> {
    for (const one of this.#packages.values()) {
      throwIfCancelled(signal);
      const { heading } = one;
      const blob = await this.#readAgain(one.facts, decodePackage);
      heading.hasIcon = blob !== undefined && iconOf(blob) !== undefined;
      const head = await this.#readAgain(
        one.bundles.get(findHead(one.channels.get(one.facts?.defaultChannel ?? '')?.entries ?? [])),
        (value, origin) => {
          const bundle = decodeBundle(value);
          return { ...readBundleHeading(bundle), openshift: openShiftOf(bundle, origin) };
        },
      );
      heading.displayName = head?.displayName ?? '';
      heading.provider = head?.provider ?? '';
      heading.summary = summaryOf([head?.summary, blob?.description, head?.description]);
      heading.description = (blob?.description || head?.description || '').slice(0, maxSearched);
      heading.categories = head?.categories ?? [];
      heading.keywords = head?.keywords ?? [];
      if (head?.openshift !== undefined) heading.openshift = head.openshift;
    }
  }

  /** What is made of a blob; undefined where it cannot be read, or is not there. */
  async #readAgain<T>(
    facts: PackageFacts | BundleFacts | undefined,
    decode: (value: Awaited<ReturnType<Catalog['read']>>, origin: BlobOrigin) => T,
  ): Promise<T | undefined> {
    if (facts?.origin === undefined) return undefined;
    return decode(await this.#catalog.read(facts.origin), facts.origin);
  }

  /** All packages, as the list shows them. */
  overview(): Omit<CatalogAnswer, keyof StateAnswer> {
    const packages = [...this.#packages.values()]
      .map((one) => this.#summaryOf(one))
      .sort((a, b) => compareBytes(a.name, b.name));
    const sum = (count: (one: PackageSummary) => number): number =>
      packages.reduce((total, one) => total + count(one), 0);
    return {
      name: this.#name,
      ...(this.#compared && { comparedWith: this.#compared.from }),
      bundles: sum(({ bundles }) => bundles),
      channels: sum(({ channels }) => channels),
      ...countBySeverity(this.#findings),
      packages,
    };
  }

  #summaryOf(one: ViewedPackage): PackageSummary {
    const { name, facts, channels, bundles, deprecations, heading, problems } = one;
    const defaultChannel = facts?.defaultChannel ?? '';
    const head = findHead(channels.get(defaultChannel)?.entries ?? []);
    const change = this.#compared?.changeOfPackage(name);
    const { displayName, provider, summary, hasIcon, categories, openshift } = heading;
    return {
      ...{ name, displayName, provider, summary, hasIcon, categories },
      ...(openshift !== undefined && { openshift }),
      defaultChannel,
      head,
      version: formatBundleVersion(bundles.get(head)?.packageProperties[0]),
      channels: channels.size,
      bundles: bundles.size,
      isDeprecated: deprecations.has(deprecationKey(schemas.package, '')),
      ...countBySeverity(problems),
      ...(change !== undefined && { change }),
    };
  }

  /** The catalog with what selecting a part of it needs. */
  selectable(): Selectable {
    const { images } = this.#index;
    return {
      catalog: this.#catalog,
      facts: this.#facts,
      imagesOf: (packageName, bundle) =>
        this.#index.imagesOf(packageName, bundle).flatMap((place) => images[place] ?? []),
    };
  }

  /** Packages and bundles that have all the words. */
  search(query: string): SearchAnswer {
    return searchCatalog(this.searchIndex(), query);
  }

  /** What a search looks through. */
  searchIndex(): SearchIndex {
    this.#search ??= {
      packages: [...this.#packages.values()]
        .sort((a, b) => compareBytes(a.name, b.name))
        .map((one) => this.#searchedPackage(one)),
      images: this.#index.images,
    };
    return this.#search;
  }

  #searchedPackage({ name, facts, heading, channels, bundles }: ViewedPackage): SearchedPackage {
    const { displayName, provider, categories, keywords, description } = heading;
    const channelsOfBundles = new Map<string, string>();
    const usual = channels.get(facts?.defaultChannel ?? '');
    for (const channel of [...(usual === undefined ? [] : [usual]), ...channels.values()]) {
      for (const entry of channel.entries) {
        if (!channelsOfBundles.has(entry.name)) channelsOfBundles.set(entry.name, channel.name);
      }
    }
    return {
      ...{ name, displayName, provider, categories, keywords, description },
      apis: this.#index.apisOf(name),
      bundles: [...bundles.values()].map((bundle) => ({
        name: bundle.name,
        version: formatBundleVersion(bundle.packageProperties[0]),
        channel: channelsOfBundles.get(bundle.name) ?? '',
        images: this.#index.imagesOf(name, bundle.name),
      })),
    };
  }

  /** A package with its channels and the first of its problems. */
  async package(name: string): Promise<PackageAnswer> {
    const one = this.#find(name);
    const { facts, heading, bundles, deprecations, problems } = one;
    const deprecation = deprecations.get(deprecationKey(schemas.package, ''));
    const blob = await this.#readAgain(facts, decodePackage);
    const head = await this.#readAgain(
      bundles.get(findHead(one.channels.get(facts?.defaultChannel ?? '')?.entries ?? [])),
      (value) => readBundleHeading(decodeBundle(value)),
    );
    return {
      name,
      displayName: heading.displayName,
      provider: heading.provider,
      description: blob?.description || head?.description || '',
      defaultChannel: facts?.defaultChannel ?? '',
      hasIcon: heading.hasIcon,
      isDefined: facts !== undefined,
      bundles: bundles.size,
      ...(deprecation !== undefined && { deprecation }),
      lifecycle: [...(this.#index.lifecycles.get(name) ?? [])]
        .sort((a, b) => byNumbers.compare(b.name, a.name))
        .map(({ name: version, phases, platforms }) => ({ version, phases, platforms })),
      channels: channelsOf(one),
      problems: await this.#place([...problems].sort(worstFirst).slice(0, problemWindow)),
      problemCount: problems.length,
    };
  }

  /** The icon of a package. */
  async icon(name: string): Promise<Icon> {
    const icon = await this.#readAgain(this.#find(name).facts, (value) => iconOf(decodePackage(value)));
    if (icon !== undefined) return icon;
    throw new OpmateError('NOT_FOUND', `package ${quoteGo(name)} has no icon`);
  }

  /**
   * The upgrade graph of a channel, or of several in one; `isCompared` adds what the channels have in the other catalog
   * only, and marks edges that differ.
   */
  async channel(packageName: string, names: readonly string[], isCompared = false): Promise<ChannelAnswer> {
    const one = this.#find(packageName);
    const channels = [...new Set(names)].slice(0, maxChannels).map((name) => channelOf(one, name));
    const [first] = channels as [ChannelFacts];
    const compared = isCompared ? this.#compared : undefined;
    const before = channels.flatMap(({ name }) => compared?.entriesBefore(packageName, name) ?? []);
    const graphs = channels.map((channel) => readGraph(channel.entries));
    const { entries, more, edgesBefore } = joinEntries(
      graphs.flatMap((graph) => [...graph.entries.values()]),
      before,
    );
    const laid = await layOutChannel(entries, (bundle) => this.#bundleVersion(one.bundles.get(bundle)), {
      more,
      chain: graphs[0]?.chain ?? [],
    });
    const findings = groupBy(
      one.problems.filter(({ channel }) => channel === undefined || names.includes(channel)),
      ({ bundle }) => bundle ?? '',
    );
    const faults = graphs.flatMap((graph) => describeGraphFault(graph) ?? []);
    const deprecation = one.deprecations.get(deprecationKey(schemas.channel, first.name));
    const stranded = graphs.map((graph) => new Set(graph.stranded));
    const rows: GraphRow[] = [];
    for (const { entry, lane, older, newer, skippedBy } of laid.rows) {
      const { name } = entry;
      const inChannels = graphs.flatMap((graph, at) => (graph.entries.has(name) ? [at] : []));
      const bundle = one.bundles.get(name);
      const reason = one.deprecations.get(deprecationKey(schemas.bundle, name));
      const change = this.#compared?.changeOfBundle(packageName, name);
      const marks: RowMark[] = [];
      const isIn = (has: (graph: ChannelGraph) => boolean): boolean =>
        inChannels.some((at) => has(graphs[at] as ChannelGraph));
      if (isIn(({ heads }) => heads.includes(name))) marks.push('head');
      if (isIn(({ skipped }) => skipped.has(name))) marks.push('skipped');
      if (inChannels.some((at) => stranded[at]?.has(name))) marks.push('stranded');
      if (reason !== undefined) marks.push('deprecated');
      if (bundle === undefined && inChannels.length > 0) marks.push('undefined');
      if (change !== undefined) marks.push(change);
      const old = edgesBefore.get(name);
      const isRewired = inChannels.length > 0 && old !== undefined && !hasSameEdges(entry, old);
      if (isRewired) marks.push('rewired');
      if (inChannels.length === 0) marks.push('removed');
      rows.push({
        name,
        version: formatBundleVersion(bundle?.packageProperties[0]),
        lane,
        marks,
        replaces: entry.replaces,
        skips: entry.skips.length,
        skipRange: entry.skipRange,
        ...(channels.length > 1 && { channels: inChannels }),
        ...(isRewired && {
          before: { replaces: old.replaces, skips: old.skips.length, skipRange: old.skipRange },
        }),
        ...(older !== undefined && { older }),
        ...(newer !== undefined && { newer }),
        ...(skippedBy !== undefined && { skippedBy }),
        ...(reason !== undefined && { deprecation: reason }),
        ...countBySeverity(findings.get(name) ?? []),
      });
      await takeTurn();
    }
    const edges = laid.edges.map((edge): GraphEdge => {
      const change = compared && changeOfEdge(rows[edge.from], rows[edge.to]?.name ?? '', edgesBefore);
      return change === undefined ? edge : { ...edge, change };
    });
    const { lanes, brackets, bracketColumns, hiddenBrackets } = laid;
    return {
      package: packageName,
      channel: first.name,
      channels: channels.map(({ name }) => name),
      isDefault: one.facts?.defaultChannel === first.name,
      ...(deprecation !== undefined && { deprecation }),
      ...(faults[0] !== undefined && { fault: faults[0] }),
      ...{ rows, lanes, edges, brackets, bracketColumns, hiddenBrackets },
    };
  }

  /**
   * How an installed bundle gets to another one in some channels; both are names or versions, and what is installed
   * need not be in the catalog. Throws OpmateError NOT_FOUND, USAGE for what is neither a bundle nor a version.
   */
  path(packageName: string, names: readonly string[], fromText: string, toText: string): PathAnswer {
    const one = this.#find(packageName);
    const channels = [...new Set(names)].slice(0, maxChannels).map((name) => channelOf(one, name));
    const bundles = new Map(
      [...one.bundles.values()].map((bundle): [string, PackageBundle] => {
        const { name, image } = bundle;
        return [name, { name, image, version: bundleVersionOf(bundle) ?? '', dependencies: [] }];
      }),
    );
    const find = (text: string): PackageBundle | undefined =>
      bundles.get(text) ??
      [...bundles.values()].find(({ version }) => typeof version !== 'string' && version.text === text);
    const start = find(fromText);
    const version = start === undefined ? tryParse(parseBundleVersion, fromText) : readableVersion(start);
    if (start === undefined && version === undefined) {
      throw new OpmateError('USAGE', `from: ${quoteGo(fromText)} is neither a bundle nor a version`);
    }
    const to = find(toText);
    if (to === undefined)
      throw notFound('bundle', toText, bundles.keys(), { scope: `package ${quoteGo(packageName)}` });
    const from: UpgradeFrom = { name: start?.name ?? '', version };
    const graph = new UpgradeGraph(channels);
    const edges = shortestPath(graph, bundles, from, ({ name }) => name === to.name);
    const longest = edges === undefined ? undefined : longestPath(graph, bundles, from, to.name)?.length;
    const steps = edges?.map(({ to: name, channel, kind, range }, at): PathStep => {
      const reached = readableVersion(bundles.get(name))?.text ?? '';
      const before = edges[at - 1]?.to ?? start?.name ?? fromText;
      return {
        from: before,
        to: name,
        version: reached,
        channel,
        kind,
        ...(range !== undefined && { range }),
      };
    });
    return {
      from: start?.name ?? fromText,
      to: to.name,
      ...(steps !== undefined && { steps }),
      ...(longest !== undefined && { longest }),
    };
  }

  /** The upgrade graph of a channel as SVG. */
  async *channelSvg(packageName: string, name: string): AsyncGenerator<string, void> {
    const one = this.#find(packageName);
    const { entries } = channelOf(one, name);
    yield* drawSvg([
      {
        ...{ package: packageName, name, entries },
        versionOf: (bundle) => formatBundleVersion(one.bundles.get(bundle)?.packageProperties[0]),
        deprecationOf: (bundle) => one.deprecations.get(deprecationKey(schemas.bundle, bundle)),
      },
    ]);
  }

  /** Everything about a bundle that people want to know. */
  async bundle(packageName: string, name: string): Promise<BundleAnswer> {
    const one = this.#find(packageName);
    const facts = one.bundles.get(name);
    const places = this.#placesOf(one, name);
    if (facts === undefined && places.length === 0) {
      throw notFound('bundle', name, one.bundles.keys(), { scope: `package ${quoteGo(packageName)}` });
    }
    const deprecation = one.deprecations.get(deprecationKey(schemas.bundle, name));
    const details =
      (await this.#readAgain(facts, (value) => readBundleDetails(decodeBundle(value)))) ??
      readBundleDetails(nothing);
    return {
      package: packageName,
      name,
      version: formatBundleVersion(facts?.packageProperties[0]),
      ...details,
      ...(deprecation !== undefined && { deprecation }),
      places,
      problems: await this.#place(
        one.problems
          .filter(({ bundle }) => bundle === name)
          .sort(worstFirst)
          .slice(0, problemWindow),
      ),
    };
  }

  #placesOf({ channels, bundles, facts }: ViewedPackage, name: string): BundlePlace[] {
    const rules = new UpgradeRules(readBundleVersions(bundles.values()));
    const version = readBundleVersion(bundles.get(name));
    const source = { name, version: version && { version } };
    return [...channels.values()].flatMap((channel): BundlePlace[] => {
      const entry = channel.entries.find((other) => other.name === name);
      if (entry === undefined) return [];
      const others = channel.entries.filter((other) => other.name !== name);
      const covered = others
        .filter((other) => rules.isInSkipRange(other.name, entry))
        .map((other) => other.name);
      // A skipped one is passed over, unless nothing else leads on.
      const { skipped } = readGraph(channel.entries);
      const edges = new UpgradeGraph([channel], rules.ranges).edgesFrom(source);
      const leadOn = edges.map(({ to }) => to).filter((to) => to !== name);
      const installed = leadOn.filter((other) => !skipped.has(other));
      const updatesTo = installed.length > 0 ? installed : leadOn;
      const known = new Set(channel.entries.map((other) => other.name));
      const updatesFrom = [...new Set([entry.replaces, ...entry.skips, ...covered])].filter((other) =>
        known.has(other),
      );
      const { replaces, skips, skipRange } = entry;
      const isDefault = channel.name === facts?.defaultChannel;
      const place = { channel: channel.name, isDefault, replaces, skips, skipRange };
      const absent = [replaces, ...skips].filter((other) => other !== '' && !known.has(other));
      return [{ ...place, absent, covered, updatesTo, updatesFrom }];
    });
  }

  /** A window on the problems, of a package, severity or check where one is given. */
  async problems(
    from: number,
    packageName: string,
    severity: string,
    check: string,
  ): Promise<ProblemsAnswer> {
    const ofAllChecks = this.#findings.filter(
      (one) =>
        (packageName === '' || one.package === packageName) && (severity === '' || one.severity === severity),
    );
    const wanted = ofAllChecks.filter(({ code }) => check === '' || code === check).sort(worstFirst);
    const checks = [...groupBy(ofAllChecks, ({ code }) => code)]
      .map(([name, found]) => ({ name, count: found.length }))
      .sort((a, b) => b.count - a.count || compareBytes(a.name, b.name));
    return {
      problems: await this.#place(wanted.slice(from, from + problemWindow)),
      total: wanted.length,
      packages: [...new Set(this.#findings.map((one) => one.package ?? ''))]
        .filter((name) => name !== '')
        .sort(compareBytes),
      checks,
    };
  }

  /** What differs from the other catalog, as sums. */
  compare(): CompareAnswer {
    return this.#requireCompared().sums();
  }

  /** What differs in a package. */
  comparePackage(name: string): ComparedPackageAnswer {
    return this.#requireCompared().package(name);
  }

  #requireCompared(): ComparedCatalogs {
    if (this.#compared !== undefined) return this.#compared;
    throw new OpmateError('NOT_FOUND', 'the catalog is compared with no other');
  }

  #find(name: string): ViewedPackage {
    const found = this.#packages.get(name);
    if (found !== undefined) return found;
    throw notFound('package', name, this.#packages.keys());
  }

  /** With the lines at which they stand; each is looked for in its file. */
  async #place(findings: readonly CatalogDiagnostic[]): Promise<ProblemAnswer[]> {
    // Lines far down a file would take long to count.
    const near = findings.map((one): CatalogDiagnostic => {
      const { origin } = one;
      const isFar = origin !== undefined && origin.offset > maxLineOffset;
      return isFar ? { ...one, origin: undefined, file: origin.file, line: undefined } : one;
    });
    return (await placeDiagnostics(this.#catalog, near)).map((finding) => {
      const { severity, code, hint = '', package: packageName = '', channel = '', bundle = '' } = finding;
      const { file = '', line } = finding;
      const message = formatMessage(finding);
      const place = { file, ...(line !== undefined && { line }) };
      return { severity, check: code, message, hint, package: packageName, channel, bundle, ...place };
    });
  }

  #bundleVersion(bundle: BundleFacts | undefined): Version | undefined {
    const text = bundle?.packageProperties[0]?.version ?? '';
    if (!this.#versions.has(text)) this.#versions.set(text, tryParse(parseVersion, text));
    return this.#versions.get(text);
  }
}

/**
 * The entries of several channels as one list, each name once, followed by those that only the other catalog has; what an
 * entry replaces elsewhere; and the entries of the other catalog.
 */
function joinEntries(
  now: readonly ChannelEntry[],
  before: readonly ChannelEntry[],
): {
  entries: ChannelEntry[];
  more: Map<string, string[]>;
  edgesBefore: Map<string, ChannelEntry>;
} {
  const entries = new Map<string, ChannelEntry>();
  const more = new Map<string, string[]>();
  for (const entry of now) {
    const known = entries.get(entry.name);
    if (known === undefined) {
      entries.set(entry.name, entry);
      continue;
    }
    if (entry.replaces !== '' && entry.replaces !== known.replaces) pushTo(more, entry.name, entry.replaces);
    entries.set(entry.name, {
      ...known,
      replaces: known.replaces || entry.replaces,
      skips: [...new Set([...known.skips, ...entry.skips])],
      skipRange: known.skipRange || entry.skipRange,
    });
  }
  const edgesBefore = new Map<string, ChannelEntry>();
  for (const entry of before) {
    if (!edgesBefore.has(entry.name)) edgesBefore.set(entry.name, entry);
    const known = entries.get(entry.name);
    if (known === undefined) entries.set(entry.name, { ...entry, skips: [] });
    else if (entry.replaces !== '' && entry.replaces !== known.replaces) {
      pushTo(more, entry.name, entry.replaces);
    }
  }
  return { entries: [...entries.values()], more, edgesBefore };
}

function hasSameEdges(a: ChannelEntry, b: ChannelEntry): boolean {
  const skips = (entry: ChannelEntry): string => [...new Set(entry.skips)].sort().join('\0');
  return a.replaces === b.replaces && a.skipRange === b.skipRange && skips(a) === skips(b);
}

/** How the edge from a row to a bundle that it replaces differs from the other catalog. */
function changeOfEdge(
  row: GraphRow | undefined,
  older: string,
  edgesBefore: ReadonlyMap<string, ChannelEntry>,
): GraphEdge['change'] {
  if (row === undefined) return undefined;
  const was = edgesBefore.get(row.name)?.replaces === older;
  const is = !row.marks.includes('removed') && row.replaces === older;
  return was === is ? undefined : is ? 'added' : 'removed';
}

function bundleVersionOf({ packageProperties: [property] }: BundleFacts): BundleVersion | undefined {
  return (
    property && tryParse((text) => parseBundleVersion(text, property.release || undefined), property.version)
  );
}

/** Stands for the blob of a bundle that only channels name. */
const nothing: BundleBlob = {
  schema: schemas.bundle,
  name: '',
  package: '',
  image: '',
  properties: [],
  relatedImages: [],
};

/** What cannot be read makes the rest look faulty: then only that is told. */
async function findingsOf(
  facts: CatalogFacts,
  faults: readonly OpmateError[],
  signal: AbortSignal | undefined,
): Promise<CatalogDiagnostic[]> {
  if (faults.length > 0) return diagnoseFaults(faults);
  const { problems, warnings } = await validateInTurns(facts, { signal });
  return [...problems, ...warnings];
}

/** Versions of OpenShift that a bundle allows; undefined where it does not say, or cannot be read. */
function openShiftOf(bundle: BundleBlob, origin: BlobOrigin): PackageSummary['openshift'] {
  try {
    return allowedOpenShift(examineBundle(bundle, origin, new FindingList(new Set(), undefined)));
  } catch {
    // The checks report it.
    return undefined;
  }
}

/** Keeps the order of those that are as bad as each other. */
function worstFirst(a: CatalogDiagnostic, b: CatalogDiagnostic): number {
  return severities.indexOf(a.severity) - severities.indexOf(b.severity);
}

function countBySeverity(findings: readonly CatalogDiagnostic[]): { errors: number; warnings: number } {
  const count = (wanted: Severity): number => findings.filter(({ severity }) => severity === wanted).length;
  return { errors: count('error'), warnings: count('warning') };
}

/** `stable-3.9` before `stable-3.10`. */
const byNumbers = new Intl.Collator('en', { numeric: true });

function channelsOf(one: ViewedPackage): ChannelSummary[] {
  const defaultChannel = one.facts?.defaultChannel;
  return [...one.channels.values()]
    .map(({ name, entries }): ChannelSummary => {
      const head = findHead(entries);
      const deprecation = one.deprecations.get(deprecationKey(schemas.channel, name));
      return {
        name,
        isDefault: name === defaultChannel,
        head,
        version: formatBundleVersion(one.bundles.get(head)?.packageProperties[0]),
        entries: entries.length,
        ...(deprecation !== undefined && { deprecation }),
        ...countBySeverity(one.problems.filter(({ channel }) => channel === name)),
      };
    })
    .sort((a, b) => Number(b.isDefault) - Number(a.isDefault) || byNumbers.compare(a.name, b.name));
}

function channelOf(one: ViewedPackage, name: string): ChannelFacts {
  const channel = one.channels.get(name);
  if (channel !== undefined) return channel;
  throw notFound('channel', name, one.channels.keys(), { scope: `package ${quoteGo(one.name)}` });
}

function deprecationKey(schema: string, name: string): string {
  return schema === schemas.package ? schema : `${schema}\0${name}`;
}
