import { notFound } from '../core/suggest.js';
import { formatMessage } from '../core/diagnostic.js';
import { collectFacts } from '../catalog/facts.js';
import { placeDiagnostics } from '../catalog/locate.js';
import type { Catalog, MetasOptions } from '../catalog/catalog.js';
import { diffCatalogs } from '../catalog/diff/diff.js';
import { takeSnapshot } from '../catalog/diff/snapshot.js';
import type { Meta } from '../catalog/meta.js';
import { OpmateError, getMessage, throwIfCancelled } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import { quoteGo } from '../document/go-json.js';
import { silentLogger } from '../core/log.js';
import { compareBytes } from '../core/order.js';
import { type BundleBlob, schemas } from '../model/declarative-config.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../model/catalog-diagnostic.js';
import { decodeBundle, decodePackage } from '../model/decode.js';
import type { CatalogFacts } from '../model/facts.js';
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
import { CatalogIndex } from './catalog-index.js';
import { ComparedCatalogs } from './compared-catalogs.js';
import { type Icon, readBlob, readIcon, readPackageHeading } from './package-heading.js';
import { type SearchIndex, type SearchedPackage, searchCatalog } from './search.js';
import { PackageGraph, type PackageGraphFacts, countBySeverity, deprecationKey } from './package-graph.js';
import { type ProblemFilter, compareSeverity, selectProblems } from './problem-window.js';
import {
  type ViewedPackage,
  addDeprecations,
  byNumbers,
  createViewedPackage,
  findDefaultHead,
  summarizeChannels,
} from './viewed-package.js';
import { findPlaces } from './bundle-places.js';

/** Maximum problems in the response for a package or bundle. */
const maxProblems = 50;
/** Maximum offset of a problem with a line number: lines are counted from the start of the file. */
const maxLineOffset = 64 * 1024 * 1024;

/** Catalog with its reference as the user wrote it. */
export interface NamedCatalog {
  name: string;
  catalog: Catalog;
}

interface CatalogViewOptions extends Pick<MetasOptions, 'signal' | 'logger'> {
  /** Older catalog to show the differences from. */
  compareWith?: NamedCatalog | undefined;
}

/**
 * Reads a catalog for the page. Names, edges and findings stay in memory, about 1 KB per bundle; descriptions, icons
 * and bundles are read on request, so the catalog must stay open. Unreadable parts of a catalog become findings.
 * Throws OpmateError if nothing can be read.
 */
export async function openCatalogView(
  { name, catalog }: NamedCatalog,
  options: CatalogViewOptions = {},
): Promise<CatalogView> {
  const { compareWith, signal, logger } = options;
  const faults: OpmateError[] = [];
  const index = new CatalogIndex();
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
    const diff = await diffCatalogs(before, after, { signal });
    compared = new ComparedCatalogs(compareWith.name, name, diff, before.facts.channels);
    facts = after.facts;
  }
  const findings = await readFindings(facts, faults, signal);
  const view = new CatalogView({ name, catalog, facts, index, findings, compared });
  await view.readHeadings(signal);
  return view;
}

type OverviewContent = Omit<CatalogOverview, keyof ViewState>;

/** Open catalog with its facts and the images of its bundles. */
interface Selectable {
  catalog: Catalog;
  facts: CatalogFacts;
  getImages(packageName: string, bundle: string): string[];
}

interface CatalogViewContent {
  name: string;
  catalog: Catalog;
  facts: CatalogFacts;
  index: CatalogIndex;
  findings: CatalogDiagnostic[];
  compared: ComparedCatalogs | undefined;
}

/** Contents of the responses about one catalog. Methods throw OpmateError NOT_FOUND for unknown names. */
export class CatalogView {
  readonly #name: string;
  readonly #catalog: Catalog;
  readonly #index: CatalogIndex;
  readonly #facts: CatalogFacts;
  #search: SearchIndex | undefined;
  readonly #packages = new Map<string, ViewedPackage>();
  #findings: CatalogDiagnostic[] = [];
  /** Reset when findings or headings change. */
  #overview: OverviewContent | undefined;
  #checking: Promise<void> | undefined;
  readonly #compared: ComparedCatalogs | undefined;

  constructor({ name, catalog, facts, index, findings, compared }: CatalogViewContent) {
    this.#name = name;
    this.#catalog = catalog;
    this.#index = index;
    this.#facts = facts;
    for (const packageFacts of facts.packages) this.#addPackage(packageFacts.name).facts ??= packageFacts;
    for (const channel of facts.channels) {
      const { channels } = this.#addPackage(channel.package);
      if (!channels.has(channel.name)) channels.set(channel.name, channel);
    }
    for (const bundle of facts.bundles) {
      const { bundles } = this.#addPackage(bundle.package);
      if (!bundles.has(bundle.name)) bundles.set(bundle.name, bundle);
    }
    for (const deprecations of facts.deprecations) {
      addDeprecations(this.#addPackage(deprecations.package), deprecations);
    }
    this.#setFindings(findings);
    this.#compared = compared;
  }

  #setFindings(findings: CatalogDiagnostic[]): void {
    this.#findings = findings;
    this.#overview = undefined;
    for (const viewedPackage of this.#packages.values()) viewedPackage.problems = [];
    for (const finding of findings) this.#packages.get(finding.package ?? '')?.problems.push(finding);
  }

  /**
   * Starts the checks of `catalog doctor`, which read the catalog again; until they end, problems are those of
   * `validate`. The catalog must stay open until `endChecks`.
   */
  startChecks({ signal, logger = silentLogger }: Pick<CatalogViewOptions, 'signal' | 'logger'> = {}): void {
    const check = async (): Promise<void> => {
      const { diagnoseCatalog } = await import('../catalog/doctor/diagnose.js');
      this.#setFindings(await diagnoseCatalog(this.#catalog, { signal }));
    };
    this.#checking = check()
      .catch((error: unknown) => {
        if (signal?.aborted !== true) logger.log('warn', `checks stopped: ${getMessage(error)}`);
      })
      .finally(() => {
        this.#checking = undefined;
      });
  }

  get isChecking(): boolean {
    return this.#checking !== undefined;
  }

  /** Waits for the checks, which the signal of `startChecks` cancels. */
  async endChecks(): Promise<void> {
    await this.#checking;
  }

  #addPackage(name: string): ViewedPackage {
    return getOrAdd(this.#packages, name, () => createViewedPackage(name));
  }

  async readHeadings(signal: AbortSignal | undefined): Promise<void> {
    for (const viewedPackage of this.#packages.values()) {
      throwIfCancelled(signal);
      viewedPackage.heading = await readPackageHeading(this.#catalog, viewedPackage);
    }
  }

  /** Returns the list of packages and the totals. */
  overview(): OverviewContent {
    return (this.#overview ??= this.#createOverview());
  }

  #createOverview(): OverviewContent {
    const packages = [...this.#packages.values()]
      .map((viewedPackage) => this.#summarize(viewedPackage))
      .sort((a, b) => compareBytes(a.name, b.name));
    const sum = (count: (packageSummary: PackageSummary) => number): number =>
      packages.reduce((total, packageSummary) => total + count(packageSummary), 0);
    return {
      name: this.#name,
      ...(this.#compared && { comparedWith: this.#compared.from }),
      bundles: sum(({ bundles }) => bundles),
      channels: sum(({ channels }) => channels),
      ...countBySeverity(this.#findings),
      packages,
    };
  }

  #summarize(viewedPackage: ViewedPackage): PackageSummary {
    const { name, facts, channels, bundles, deprecations, heading, problems } = viewedPackage;
    const defaultChannel = facts?.defaultChannel ?? '';
    const head = findDefaultHead(viewedPackage);
    const change = this.#compared?.getPackageChange(name);
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

  /** Returns the data that a selection is planned with. */
  selectable(): Selectable {
    const { images } = this.#index;
    return {
      catalog: this.#catalog,
      facts: this.#facts,
      getImages: (packageName, bundle) =>
        this.#index.getImages(packageName, bundle).flatMap((position) => images[position] ?? []),
    };
  }

  search(query: string): SearchResult {
    return searchCatalog(this.searchIndex(), query);
  }

  searchIndex(): SearchIndex {
    return (this.#search ??= {
      packages: [...this.#packages.values()]
        .sort((a, b) => compareBytes(a.name, b.name))
        .map((viewedPackage) => this.#toSearchedPackage(viewedPackage)),
      images: this.#index.images,
    });
  }

  #toSearchedPackage({ name, facts, heading, channels, bundles }: ViewedPackage): SearchedPackage {
    const { displayName, provider, categories, keywords, description } = heading;
    const bundleChannels = new Map<string, string>();
    const defaultChannel = channels.get(facts?.defaultChannel ?? '');
    for (const channel of [defaultChannel, ...channels.values()]) {
      for (const entry of channel?.entries ?? [])
        getOrAdd(bundleChannels, entry.name, () => channel?.name ?? '');
    }
    return {
      ...{ name, displayName, provider, categories, keywords, description },
      apis: this.#index.getApis(name),
      bundles: [...bundles.values()].map((bundle) => ({
        name: bundle.name,
        version: formatBundleVersion(bundle.packageProperties[0]),
        channel: bundleChannels.get(bundle.name) ?? '',
        images: this.#index.getImages(name, bundle.name),
      })),
    };
  }

  async package(name: string): Promise<PackageDetails> {
    const viewedPackage = this.#requirePackage(name);
    const { facts, heading, bundles, deprecations, problems } = viewedPackage;
    const deprecation = deprecations.get(deprecationKey(schemas.package, ''));
    const blob = await readBlob(this.#catalog, facts, decodePackage);
    const head = await readBlob(this.#catalog, bundles.get(findDefaultHead(viewedPackage)), (value) =>
      readBundleHeading(decodeBundle(value)),
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
      channels: summarizeChannels(viewedPackage),
      problems: await this.#locate([...problems].sort(compareSeverity).slice(0, maxProblems)),
      problemCount: problems.length,
    };
  }

  async icon(name: string): Promise<Icon> {
    const icon = await readBlob(this.#catalog, this.#requirePackage(name).facts, (value) =>
      readIcon(decodePackage(value)),
    );
    if (icon !== undefined) return icon;
    throw new OpmateError('NOT_FOUND', `package ${quoteGo(name)} has no icon`);
  }

  graph(packageName: string): PackageGraph {
    return new PackageGraph(this.graphFacts(packageName));
  }

  /** Returns the facts of the graphs and update paths of a package. */
  graphFacts(packageName: string): PackageGraphFacts {
    const { name, facts, channels, bundles, deprecations, problems } = this.#requirePackage(packageName);
    return {
      package: name,
      defaultChannel: facts?.defaultChannel ?? '',
      channels: [...channels.values()].map((channel) => ({ name: channel.name, entries: channel.entries })),
      bundles: [...bundles.values()].map((bundle) => {
        const { version, release } = bundle.packageProperties[0] ?? { version: '', release: '' };
        const change = this.#compared?.getBundleChange(name, bundle.name);
        return { name: bundle.name, version, release, ...(change !== undefined && { change }) };
      }),
      deprecations: [...deprecations],
      problems: problems.map(({ severity, channel, bundle }) => ({ severity, channel, bundle })),
      before: this.#compared?.getOlderChannels(name) ?? [],
    };
  }

  async bundle(packageName: string, name: string): Promise<BundleDetails> {
    const viewedPackage = this.#requirePackage(packageName);
    const facts = viewedPackage.bundles.get(name);
    const places = findPlaces(viewedPackage, name);
    if (facts === undefined && places.length === 0) {
      throw notFound('bundle', name, viewedPackage.bundles.keys(), {
        scope: `package ${quoteGo(packageName)}`,
      });
    }
    const deprecation = viewedPackage.deprecations.get(deprecationKey(schemas.bundle, name));
    const details =
      (await readBlob(this.#catalog, facts, (value) => readBundleDetails(decodeBundle(value)))) ??
      readBundleDetails(emptyBundle);
    return {
      package: packageName,
      name,
      version: formatBundleVersion(facts?.packageProperties[0]),
      ...details,
      ...(deprecation !== undefined && { deprecation }),
      places,
      problems: await this.#locate(
        viewedPackage.problems
          .filter(({ bundle }) => bundle === name)
          .sort(compareSeverity)
          .slice(0, maxProblems),
      ),
    };
  }

  async problems(filter: ProblemFilter): Promise<ProblemWindow> {
    const { window, ...choices } = selectProblems(this.#findings, filter, (finding) => ({
      ...{ severity: finding.severity, check: finding.code, package: finding.package ?? '' },
    }));
    return { problems: await this.#locate(window), ...choices };
  }

  compare(): CatalogComparison {
    return this.#requireCompared().summarize();
  }

  comparePackage(name: string): PackageDifferences {
    return this.#requireCompared().package(name);
  }

  #requireCompared(): ComparedCatalogs {
    if (this.#compared !== undefined) return this.#compared;
    throw new OpmateError('NOT_FOUND', 'no catalog to compare with');
  }

  #requirePackage(name: string): ViewedPackage {
    const viewedPackage = this.#packages.get(name);
    if (viewedPackage !== undefined) return viewedPackage;
    throw notFound('package', name, this.#packages.keys());
  }

  async #locate(findings: readonly CatalogDiagnostic[]): Promise<LocatedProblem[]> {
    const diagnostics = findings.map((diagnostic): CatalogDiagnostic => {
      const { origin } = diagnostic;
      const isFar = origin !== undefined && origin.offset > maxLineOffset;
      return isFar ? { ...diagnostic, origin: undefined, file: origin.file, line: undefined } : diagnostic;
    });
    return (await placeDiagnostics(this.#catalog, diagnostics)).map((finding) => {
      const { severity, code, hint = '', package: packageName = '', channel = '', bundle = '' } = finding;
      const { file = '', line } = finding;
      return {
        ...{ severity, check: code, message: formatMessage(finding), hint },
        ...{ package: packageName, channel, bundle, file },
        ...(line !== undefined && { line }),
      };
    });
  }
}

/** Blob for the details of a bundle that only channels name. */
const emptyBundle: BundleBlob = {
  ...{ schema: schemas.bundle, name: '', package: '', image: '', properties: [], relatedImages: [] },
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
