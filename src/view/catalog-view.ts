import { deprecationKey } from '../model/deprecations.js';
import { notFound } from '../core/suggest.js';
import { formatMessage } from '../core/diagnostic.js';
import { collectFacts } from '../catalog/facts.js';
import { placeDiagnostics } from '../catalog/locate.js';
import type { Catalog, MetasOptions } from '../catalog/catalog.js';
import { diffSnapshots } from '../catalog/diff/diff.js';
import { takeSnapshot } from '../catalog/diff/snapshot.js';
import type { Meta } from '../catalog/meta.js';
import { OpmateError, getMessage, throwIfCancelled } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import { quoteGo } from '../document/go-json.js';
import { type Logger, silentLogger } from '../core/log.js';
import { listOpenShiftChoices } from '../core/openshift-version.js';
import { compareBytes } from '../core/order.js';
import { type BundleBlob, schemas } from '../model/declarative-config.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../model/catalog-diagnostic.js';
import { decodeBundle, decodePackage } from '../model/decode.js';
import type { CatalogFacts, ChannelFacts } from '../model/facts.js';
import { formatBundleVersion } from '../graph/bundle-version.js';
import { validateInTurns } from '../graph/validate.js';
import type {
  BundleDetails,
  CatalogOverview,
  CatalogComparison,
  PackageDifferences,
  PackageDetails,
  PackageSummary,
  LocatedProblem,
  ProblemWindow,
  SearchResult,
  ViewState,
} from './responses.js';
import { readBundleDetails, readBundleHeading } from './bundle-details.js';
import { type PageIndex, createCatalogIndex } from './catalog-index.js';
import { ComparedCatalogs } from './compared-catalogs.js';
import {
  type Icon,
  type PackageHeading,
  readDecodedBlob,
  readIcon,
  readPackageHeading,
} from './package-heading.js';
import { type SearchIndex, type SearchedPackage, searchCatalog } from './search.js';
import { type PackageGraphFacts, PackageGraph, countBySeverity } from './package-graph.js';
import { type ProblemFilter, compareSeverity, selectFirst, selectProblems } from './problem-window.js';
import {
  type ViewedPackage,
  byNumbers,
  collectPackages,
  findDefaultHead,
  summarizeChannels,
} from './viewed-package.js';

/** Problems whose lines are looked up together. */
const problemsAtOnce = 1000;

/** Maximum offset of a problem with a line number: lines are counted from the start of the file. */
const maxLineOffset = 64 * 1024 * 1024;

/** Catalog with its reference as the user wrote it. */
export interface ViewedCatalog {
  name: string;
  catalog: Catalog;
}

/** Details of a bundle that do not depend on channels and checks. */
type BundleDescription = Omit<BundleDetails, 'places' | 'problems'>;

type OverviewContent = Omit<CatalogOverview, keyof ViewState>;

export interface CatalogViewOptions extends Pick<MetasOptions, 'signal' | 'logger'> {
  /** Older catalog to show the differences from. */
  compareWith?: ViewedCatalog | undefined;
  /**
   * Runs the checks of `catalog doctor` before the catalog is read for the page, which takes less memory than both at once,
   * instead of later with `startChecks`.
   */
  checksFirst?: boolean | undefined;
  /** Rewords problems and hints, which name options and verbs of the library (default: as they are). */
  reword?: ((text: string) => string) | undefined;
}

/**
 * Reads a catalog for the page. Names, edges and findings stay in memory, about 1 KB per bundle; descriptions, icons
 * and bundles are read on request, so the catalog must stay open. Unreadable parts of a catalog become findings.
 * Throws OpmateError if nothing can be read.
 */
export async function openCatalogView(
  viewed: ViewedCatalog,
  { compareWith, checksFirst = false, signal, logger = silentLogger, reword }: CatalogViewOptions = {},
): Promise<CatalogView> {
  const { catalog } = viewed;
  const checked = checksFirst ? await runChecks(catalog, { signal, logger }) : undefined;
  const faults: OpmateError[] = [];
  const index = createCatalogIndex();
  const readOptions = {
    signal,
    logger,
    withoutManifests: false,
    onFault: (fault: OpmateError): unknown => faults.push(fault),
    onBundle: (blob: BundleBlob): void => index.addBundle(blob),
    onOther: (meta: Meta): void => index.addOther(meta),
  };
  let facts: CatalogFacts;
  let compared: ComparedCatalogs | undefined;
  if (compareWith === undefined) facts = await collectFacts(catalog, readOptions);
  else {
    const before = await takeSnapshot(compareWith.catalog, { signal, logger, onFault: () => undefined });
    const after = await takeSnapshot(catalog, readOptions);
    const diff = await diffSnapshots(before, after, { signal });
    compared = new ComparedCatalogs(compareWith.name, viewed.name, diff, before.facts.channels);
    facts = after.facts;
  }
  const packages = collectPackages(facts);
  const findings = checked ?? (await readFindings(facts, faults, signal));
  const headings = new Map<string, PackageHeading>();
  for (const [name, viewedPackage] of packages) {
    throwIfCancelled(signal);
    headings.set(name, await readPackageHeading(catalog, viewedPackage));
  }
  const content = { facts, index, compared, packages, headings };
  return new CatalogView(viewed, content, findings, { signal, logger, reword });
}

/** Returns the findings of the checks of `catalog doctor`; undefined, with a warning, if they stopped. */
async function runChecks(
  catalog: Catalog,
  { signal, logger }: { signal: AbortSignal | undefined; logger: Logger },
): Promise<CatalogDiagnostic[] | undefined> {
  const { examineCatalog } = await import('../catalog/doctor/diagnose.js');
  return examineCatalog(catalog, { signal }).catch((error: unknown) => {
    if (signal?.aborted !== true) logger.log('warn', `checks stopped: ${getMessage(error)}`);
    return undefined;
  });
}

/** Content of a catalog in memory. */
interface ViewedContent {
  facts: CatalogFacts;
  index: PageIndex;
  compared: ComparedCatalogs | undefined;
  packages: Map<string, ViewedPackage>;
  headings: ReadonlyMap<string, PackageHeading>;
}

/** Contents of the responses about one catalog. Methods throw OpmateError NOT_FOUND for unknown names. */
export class CatalogView {
  readonly #name: string;
  readonly #catalog: Catalog;
  readonly #content: ViewedContent;
  readonly #signal: AbortSignal | undefined;
  readonly #logger: Logger;
  readonly #reword: (text: string) => string;
  #findings: CatalogDiagnostic[] = [];
  /** Reset when findings change. */
  #overview: OverviewContent | undefined;
  #searchIndex: SearchIndex | undefined;
  #checking: Promise<void> | undefined;

  constructor(
    { name, catalog }: ViewedCatalog,
    content: ViewedContent,
    findings: CatalogDiagnostic[],
    {
      signal,
      logger,
      reword = (text) => text,
    }: Pick<CatalogViewOptions, 'signal' | 'reword'> & { logger: Logger },
  ) {
    this.#name = name;
    this.#catalog = catalog;
    this.#content = content;
    this.#signal = signal;
    this.#logger = logger;
    this.#reword = reword;
    this.#setFindings(findings);
  }

  /**
   * Starts the checks of `catalog doctor`, which read the catalog again; until they end, problems are those of
   * `validate`. The catalog must stay open until `endChecks`.
   */
  startChecks(): void {
    this.#checking = runChecks(this.#catalog, { signal: this.#signal, logger: this.#logger })
      .then((found) => {
        if (found !== undefined) this.#setFindings(found);
      })
      .finally(() => {
        this.#checking = undefined;
      });
  }

  isChecking(): boolean {
    return this.#checking !== undefined;
  }

  /** Waits for the checks, which the signal of the view cancels. */
  async endChecks(): Promise<void> {
    await this.#checking;
  }

  /** Returns the list of packages and the totals. */
  overview(): OverviewContent {
    return (this.#overview ??= this.#createOverview());
  }

  /** Returns the data that a selection is planned with. */
  selectable() {
    const { facts, index } = this.#content;
    return {
      catalog: this.#catalog,
      facts,
      getImages: (packageName: string, bundle: string): string[] =>
        index.getImages(packageName, bundle).flatMap((position) => index.images[position] ?? []),
    };
  }

  search(query: string): SearchResult {
    return searchCatalog(this.searchIndex(), query);
  }

  searchIndex(): SearchIndex {
    return (this.#searchIndex ??= {
      packages: [...this.#listSearched()],
      images: this.#content.index.images,
    });
  }

  /** Returns the search index with its packages one by one. */
  streamSearchIndex(): { packages: Generator<SearchedPackage>; images: string[] } {
    return { packages: this.#listSearched(), images: this.#content.index.images };
  }

  *#listSearched(): Generator<SearchedPackage> {
    const { packages, index } = this.#content;
    for (const viewedPackage of sortByName(packages))
      yield toSearchedPackage(viewedPackage, this.#getHeading(viewedPackage.name), index);
  }

  /** Returns the facts of the graphs and upgrade paths of a package. */
  graphFacts(packageName: string): PackageGraphFacts {
    const viewedPackage = this.#requirePackage(packageName);
    const { name, facts, channels, bundles, deprecations, problems } = viewedPackage;
    const { compared } = this.#content;
    const toEntries = (list: Iterable<ChannelFacts>): PackageGraphFacts['channels'] =>
      [...list].map(({ name: channel, entries }) => ({ name: channel, entries }));
    return {
      package: name,
      defaultChannel: facts?.defaultChannel ?? '',
      channels: toEntries(channels.values()),
      bundles: [...bundles.values()].map((bundle) => {
        const { version, release } = bundle.packageProperties[0] ?? { version: '', release: '' };
        const change = compared?.getBundleChange(name, bundle.name);
        return { name: bundle.name, version, release, ...(change !== undefined && { change }) };
      }),
      deprecations: [...deprecations],
      problems: problems.map(({ severity, channel, bundle }) => ({ severity, channel, bundle })),
      before: toEntries(compared?.getOlderChannels(name) ?? []),
    };
  }

  graph(packageName: string): PackageGraph {
    return new PackageGraph(this.graphFacts(packageName));
  }

  /** Returns the details of a package without its problems. */
  async describePackage(name: string): Promise<Omit<PackageDetails, 'problems'>> {
    const viewedPackage = this.#requirePackage(name);
    const { facts, bundles, deprecations, problems } = viewedPackage;
    const { displayName, provider, hasIcon } = this.#getHeading(name);
    const deprecation = deprecations.get(deprecationKey(schemas.package));
    const blob = await readDecodedBlob(this.#catalog, facts, decodePackage);
    const headFacts = bundles.get(findDefaultHead(viewedPackage));
    const head = await readDecodedBlob(this.#catalog, headFacts, (value) =>
      readBundleHeading(decodeBundle(value)),
    );
    return {
      name,
      displayName,
      provider,
      description: blob?.description || head?.description || '',
      defaultChannel: facts?.defaultChannel ?? '',
      hasIcon,
      isDefined: facts !== undefined,
      bundles: bundles.size,
      ...(deprecation !== undefined && { deprecation }),
      lifecycle: [...(this.#content.index.lifecycles.get(name) ?? [])]
        .sort((a, b) => byNumbers.compare(b.name, a.name))
        .map(({ name: version, phases, platforms }) => ({ version, phases, platforms })),
      channels: summarizeChannels(viewedPackage),
      problemCount: problems.length,
    };
  }

  async package(name: string): Promise<PackageDetails> {
    const { problems } = this.#requirePackage(name);
    return { ...(await this.describePackage(name)), problems: await this.#locate(selectFirst(problems)) };
  }

  async icon(name: string): Promise<Icon> {
    const { facts } = this.#requirePackage(name);
    const icon = await readDecodedBlob(this.#catalog, facts, (value) => readIcon(decodePackage(value)));
    if (icon !== undefined) return icon;
    throw new OpmateError('NOT_FOUND', `package ${quoteGo(name)} has no icon`);
  }

  /** Returns what the blob of a bundle says, and what deprecates it; never fails for a name without a blob. */
  async describeBundle(packageName: string, name: string): Promise<BundleDescription> {
    const { bundles, deprecations } = this.#requirePackage(packageName);
    const facts = bundles.get(name);
    const deprecation = deprecations.get(deprecationKey(schemas.bundle, name));
    const details =
      (await readDecodedBlob(this.#catalog, facts, (value) => readBundleDetails(decodeBundle(value)))) ??
      readBundleDetails(emptyBundle);
    return {
      package: packageName,
      name,
      version: formatBundleVersion(facts?.packageProperties[0]),
      ...details,
      ...(deprecation !== undefined && { deprecation }),
    };
  }

  async bundle(packageName: string, name: string): Promise<BundleDetails> {
    const { bundles, problems } = this.#requirePackage(packageName);
    const places = this.graph(packageName).places(name);
    if (!bundles.has(name) && places.length === 0) {
      throw notFound('bundle', name, bundles.keys(), { scope: `package ${quoteGo(packageName)}` });
    }
    return {
      ...(await this.describeBundle(packageName, name)),
      places,
      problems: await this.#locate(selectFirst(problems.filter(({ bundle }) => bundle === name))),
    };
  }

  /** Returns all problems of a package, most severe first. */
  packageProblems(name: string): Promise<LocatedProblem[]> {
    return this.#locate([...this.#requirePackage(name).problems].sort(compareSeverity));
  }

  /** Returns all problems, most severe first, some at a time. */
  async *streamProblems(): AsyncGenerator<LocatedProblem[]> {
    const sorted = [...this.#findings].sort(compareSeverity);
    for (let start = 0; start < sorted.length; start += problemsAtOnce)
      yield await this.#locate(sorted.slice(start, start + problemsAtOnce));
  }

  async problems(filter: ProblemFilter): Promise<ProblemWindow> {
    const { window, ...choices } = selectProblems(this.#findings, filter, (finding) => ({
      severity: finding.severity,
      check: finding.code,
      package: finding.package ?? '',
    }));
    return { problems: await this.#locate(window), ...choices };
  }

  compare(): CatalogComparison {
    return this.#requireCompared().summarize();
  }

  comparePackage(name: string): PackageDifferences {
    return this.#requireCompared().package(name);
  }

  #setFindings(findings: CatalogDiagnostic[]): void {
    const { packages } = this.#content;
    this.#findings = findings;
    this.#overview = undefined;
    for (const viewedPackage of packages.values()) viewedPackage.problems = [];
    for (const finding of findings) packages.get(finding.package ?? '')?.problems.push(finding);
  }

  #getHeading(name: string): PackageHeading {
    return this.#content.headings.get(name) as PackageHeading;
  }

  #requirePackage(name: string): ViewedPackage {
    const { packages } = this.#content;
    const viewedPackage = packages.get(name);
    if (viewedPackage !== undefined) return viewedPackage;
    throw notFound('package', name, packages.keys());
  }

  #requireCompared(): ComparedCatalogs {
    const { compared } = this.#content;
    if (compared !== undefined) return compared;
    throw new OpmateError('NOT_FOUND', 'no catalog to compare with');
  }

  async #locate(diagnostics: readonly CatalogDiagnostic[]): Promise<LocatedProblem[]> {
    const near = diagnostics.map(withoutFarPlace);
    const placed = await placeDiagnostics(this.#catalog, near, { signal: this.#signal });
    return placed.map((finding) => {
      const { severity, code, hint = '', package: packageName = '', channel = '', bundle = '' } = finding;
      const { file = '', line } = finding;
      return {
        severity,
        check: code,
        message: this.#reword(formatMessage(finding)),
        hint: this.#reword(hint),
        package: packageName,
        channel,
        bundle,
        file,
        ...(line !== undefined && { line }),
      };
    });
  }

  #createOverview(): OverviewContent {
    const { packages, compared } = this.#content;
    const summaries = sortByName(packages).map((viewedPackage) => this.#summarize(viewedPackage));
    const sum = (count: (packageSummary: PackageSummary) => number): number =>
      summaries.reduce((total, packageSummary) => total + count(packageSummary), 0);
    return {
      name: this.#name,
      ...(compared && { comparedWith: compared.from }),
      bundles: sum(({ bundles }) => bundles),
      channels: sum(({ channels }) => channels),
      ...countBySeverity(this.#findings),
      packages: summaries,
      openshift: listOpenShiftChoices(
        summaries.flatMap(({ openshift }) => [openshift?.min ?? [], openshift?.max ?? []].flat()),
      ),
    };
  }

  #summarize(viewedPackage: ViewedPackage): PackageSummary {
    const { name, facts, channels, bundles, deprecations, problems } = viewedPackage;
    const head = findDefaultHead(viewedPackage);
    const change = this.#content.compared?.getPackageChange(name);
    const { displayName, provider, summary, hasIcon, categories, openshift } = this.#getHeading(name);
    return {
      name,
      displayName,
      provider,
      summary,
      hasIcon,
      categories,
      ...(openshift !== undefined && { openshift }),
      defaultChannel: facts?.defaultChannel ?? '',
      head,
      version: formatBundleVersion(bundles.get(head)?.packageProperties[0]),
      channels: channels.size,
      bundles: bundles.size,
      isDeprecated: deprecations.has(deprecationKey(schemas.package)),
      ...countBySeverity(problems),
      ...(change !== undefined && { change }),
    };
  }
}

function sortByName(packages: ReadonlyMap<string, ViewedPackage>): ViewedPackage[] {
  return [...packages.values()].sort((a, b) => compareBytes(a.name, b.name));
}

/** Removes a place whose line would be expensive to find. */
function withoutFarPlace(diagnostic: CatalogDiagnostic): CatalogDiagnostic {
  const { origin } = diagnostic;
  if (origin === undefined || origin.offset <= maxLineOffset) return diagnostic;
  return { ...diagnostic, origin: undefined, file: origin.file, line: undefined };
}

function toSearchedPackage(
  { name, facts, channels, bundles }: ViewedPackage,
  { displayName, provider, categories, keywords, description }: PackageHeading,
  index: PageIndex,
): SearchedPackage {
  const bundleChannels = new Map<string, string>();
  const defaultChannel = channels.get(facts?.defaultChannel ?? '');
  for (const channel of [defaultChannel, ...channels.values()]) {
    for (const entry of channel?.entries ?? [])
      getOrAdd(bundleChannels, entry.name, () => channel?.name ?? '');
  }
  return {
    name,
    displayName,
    provider,
    categories,
    keywords,
    description,
    apis: index.getApis(name),
    bundles: [...bundles.values()].map((bundle) => ({
      name: bundle.name,
      version: formatBundleVersion(bundle.packageProperties[0]),
      channel: bundleChannels.get(bundle.name) ?? '',
      images: index.getImages(name, bundle.name),
    })),
  };
}

/** Blob for the details of a bundle that only channels name. */
const emptyBundle: BundleBlob = {
  schema: schemas.bundle,
  name: '',
  package: '',
  image: '',
  properties: [],
  relatedImages: [],
};

/** Returns the findings of `validate`; only faults if there are any, since they cause further findings. */
async function readFindings(
  facts: CatalogFacts,
  faults: readonly OpmateError[],
  signal: AbortSignal | undefined,
): Promise<CatalogDiagnostic[]> {
  if (faults.length > 0) return diagnoseFaults(faults);
  const { problems, warnings } = await validateInTurns(facts, { signal });
  return [...problems, ...warnings];
}
