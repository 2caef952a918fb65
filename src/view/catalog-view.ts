import { notFound } from '../core/suggest.js';
import { formatMessage } from '../core/diagnostic.js';
import { examineBundle } from '../catalog/doctor/examine-bundle.js';
import { FindingList } from '../catalog/doctor/finding-list.js';
import { allowedOpenShift } from '../catalog/doctor/openshift.js';
import { collectFacts } from '../catalog/facts.js';
import { placeDiagnostics } from '../catalog/locate.js';
import type { Catalog, MetasOptions } from '../catalog/catalog.js';
import { type CatalogDiff, diffCatalogs } from '../catalog/diff/diff.js';
import { takeSnapshot } from '../catalog/diff/snapshot.js';
import type { Meta } from '../catalog/meta.js';
import { OpmateError, getMessage, throwIfCancelled } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { silentLogger } from '../core/log.js';
import { compareBytes } from '../core/order.js';
import { type BundleBlob, schemas } from '../model/declarative-config.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../model/catalog-diagnostic.js';
import { decodeBundle, decodePackage } from '../model/decode.js';
import type { BlobOrigin, BundleFacts, CatalogFacts, ChannelFacts, PackageFacts } from '../model/facts.js';
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
} from './answers.js';
import { readBundleDetails, readBundleHeading } from './bundle-details.js';
import { CatalogIndex } from './catalog-index.js';
import { ComparedCatalogs } from './compared-catalogs.js';
import { type Icon, readIcon } from './icon.js';
import { type SearchIndex, type SearchedPackage, searchCatalog } from './search.js';
import { PackageGraph, type PackageGraphFacts, countBySeverity, deprecationKey } from './package-graph.js';
import { type ProblemFilter, compareSeverity, selectProblems } from './problem-window.js';
import { summarizeText } from './summary.js';
import {
  type ViewedPackage,
  addDeprecations,
  byNumbers,
  createViewedPackage,
  findDefaultHead,
  summarizeChannels,
} from './viewed-package.js';
import { findPlaces } from './bundle-places.js';

/** Problems of a package or bundle that one answer has. */
const maxProblems = 50;
/** Lines are counted from the beginning of a file; beyond this byte a problem has none, so that no answer takes long. */
const maxLineOffset = 64 * 1024 * 1024;
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
  const findings = await readFindings(facts, faults, signal);
  const view = new CatalogView({ name, catalog, facts, index, findings, compared });
  await view.readHeadings(signal);
  return view;
}

/** What the first view shows of a catalog. */
type OverviewContent = Omit<CatalogOverview, keyof ViewState>;

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
  /** Made again when the findings or headings change. */
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
    this.#compared = compared && new ComparedCatalogs(compared.from, name, compared.diff, compared.channels);
  }

  #setFindings(findings: CatalogDiagnostic[]): void {
    this.#findings = findings;
    this.#overview = undefined;
    for (const viewedPackage of this.#packages.values()) viewedPackage.problems = [];
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
        if (signal?.aborted !== true) logger.log('warn', `checks ended early: ${getMessage(error)}`);
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

  #addPackage(name: string): ViewedPackage {
    let viewedPackage = this.#packages.get(name);
    if (viewedPackage === undefined) {
      viewedPackage = createViewedPackage(name);
      this.#packages.set(name, viewedPackage);
    }
    return viewedPackage;
  }

  /** Reads what the list of packages shows: the package's blob, and the bundle at the head of its default channel. */
  async readHeadings(signal: AbortSignal | undefined): Promise<void> {
    this.#overview = undefined;
    for (const viewedPackage of this.#packages.values()) {
      throwIfCancelled(signal);
      const { heading } = viewedPackage;
      const blob = await this.#readAgain(viewedPackage.facts, decodePackage);
      heading.hasIcon = blob !== undefined && readIcon(blob) !== undefined;
      const head = await this.#readAgain(
        viewedPackage.bundles.get(findDefaultHead(viewedPackage)),
        (value, origin) => {
          const bundle = decodeBundle(value);
          return { ...readBundleHeading(bundle), openshift: readOpenShift(bundle, origin) };
        },
      );
      heading.displayName = head?.displayName ?? '';
      heading.provider = head?.provider ?? '';
      heading.summary = summarizeText([head?.summary, blob?.description, head?.description]);
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
  overview(): OverviewContent {
    this.#overview ??= this.#makeOverview();
    return this.#overview;
  }

  #makeOverview(): OverviewContent {
    const packages = [...this.#packages.values()]
      .map((viewedPackage) => this.#summarizeText(viewedPackage))
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

  #summarizeText(viewedPackage: ViewedPackage): PackageSummary {
    const { name, facts, channels, bundles, deprecations, heading, problems } = viewedPackage;
    const defaultChannel = facts?.defaultChannel ?? '';
    const head = findDefaultHead(viewedPackage);
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
        this.#index.getImages(packageName, bundle).flatMap((place) => images[place] ?? []),
    };
  }

  /** Packages and bundles that have all the words. */
  search(query: string): SearchResult {
    return searchCatalog(this.searchIndex(), query);
  }

  /** What a search looks through. */
  searchIndex(): SearchIndex {
    this.#search ??= {
      packages: [...this.#packages.values()]
        .sort((a, b) => compareBytes(a.name, b.name))
        .map((viewedPackage) => this.#searchedPackage(viewedPackage)),
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
      apis: this.#index.getApis(name),
      bundles: [...bundles.values()].map((bundle) => ({
        name: bundle.name,
        version: formatBundleVersion(bundle.packageProperties[0]),
        channel: channelsOfBundles.get(bundle.name) ?? '',
        images: this.#index.getImages(name, bundle.name),
      })),
    };
  }

  /** A package with its channels and the first of its problems. */
  async package(name: string): Promise<PackageDetails> {
    const viewedPackage = this.#requirePackage(name);
    const { facts, heading, bundles, deprecations, problems } = viewedPackage;
    const deprecation = deprecations.get(deprecationKey(schemas.package, ''));
    const blob = await this.#readAgain(facts, decodePackage);
    const head = await this.#readAgain(bundles.get(findDefaultHead(viewedPackage)), (value) =>
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
      problems: await this.#place([...problems].sort(compareSeverity).slice(0, maxProblems)),
      problemCount: problems.length,
    };
  }

  /** The icon of a package. */
  async icon(name: string): Promise<Icon> {
    const icon = await this.#readAgain(this.#requirePackage(name).facts, (value) =>
      readIcon(decodePackage(value)),
    );
    if (icon !== undefined) return icon;
    throw new OpmateError('NOT_FOUND', `package ${quoteGo(name)} has no icon`);
  }

  /** Graphs and update paths of a package. */
  graph(packageName: string): PackageGraph {
    return new PackageGraph(this.graphFacts(packageName));
  }

  /** All that graphs and update paths of a package are made of. */
  graphFacts(packageName: string): PackageGraphFacts {
    const { name, facts, channels, bundles, deprecations, problems } = this.#requirePackage(packageName);
    return {
      package: name,
      defaultChannel: facts?.defaultChannel ?? '',
      channels: [...channels.values()].map((channel) => ({ name: channel.name, entries: channel.entries })),
      bundles: [...bundles.values()].map((bundle) => {
        const { version, release } = bundle.packageProperties[0] ?? { version: '', release: '' };
        const change = this.#compared?.changeOfBundle(name, bundle.name);
        return { name: bundle.name, version, release, ...(change !== undefined && { change }) };
      }),
      deprecations: [...deprecations],
      problems: problems.map(({ severity, channel, bundle }) => ({ severity, channel, bundle })),
      before: this.#compared?.channelsBefore(name) ?? [],
    };
  }

  /** Everything about a bundle that people want to know. */
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
        viewedPackage.problems
          .filter(({ bundle }) => bundle === name)
          .sort(compareSeverity)
          .slice(0, maxProblems),
      ),
    };
  }

  /** A window on the problems, the worst first. */
  async problems(filter: ProblemFilter): Promise<ProblemWindow> {
    const { window, ...choices } = selectProblems(this.#findings, filter, (finding) => ({
      ...{ severity: finding.severity, check: finding.code, package: finding.package ?? '' },
    }));
    return { problems: await this.#place(window), ...choices };
  }

  /** What differs from the other catalog, as sums. */
  compare(): CatalogComparison {
    return this.#requireCompared().sums();
  }

  /** What differs in a package. */
  comparePackage(name: string): PackageDifferences {
    return this.#requireCompared().package(name);
  }

  #requireCompared(): ComparedCatalogs {
    if (this.#compared !== undefined) return this.#compared;
    throw new OpmateError('NOT_FOUND', 'the catalog is compared with no other');
  }

  #requirePackage(name: string): ViewedPackage {
    const viewedPackage = this.#packages.get(name);
    if (viewedPackage !== undefined) return viewedPackage;
    throw notFound('package', name, this.#packages.keys());
  }

  /** With the lines at which they stand; each is looked for in its file. */
  async #place(findings: readonly CatalogDiagnostic[]): Promise<LocatedProblem[]> {
    // Lines far down a file would take long to count.
    const near = findings.map((diagnostic): CatalogDiagnostic => {
      const { origin } = diagnostic;
      const isFar = origin !== undefined && origin.offset > maxLineOffset;
      return isFar ? { ...diagnostic, origin: undefined, file: origin.file, line: undefined } : diagnostic;
    });
    return (await placeDiagnostics(this.#catalog, near)).map((finding) => {
      const { severity, code, hint = '', package: packageName = '', channel = '', bundle = '' } = finding;
      const { file = '', line } = finding;
      const message = formatMessage(finding);
      const place = { file, ...(line !== undefined && { line }) };
      return { severity, check: code, message, hint, package: packageName, channel, bundle, ...place };
    });
  }
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
async function readFindings(
  facts: CatalogFacts,
  faults: readonly OpmateError[],
  signal: AbortSignal | undefined,
): Promise<CatalogDiagnostic[]> {
  if (faults.length > 0) return diagnoseFaults(faults);
  const { problems, warnings } = await validateInTurns(facts, { signal });
  return [...problems, ...warnings];
}

/** Versions of OpenShift that a bundle allows; undefined where it does not say, or cannot be read. */
function readOpenShift(bundle: BundleBlob, origin: BlobOrigin): PackageSummary['openshift'] {
  try {
    return allowedOpenShift(examineBundle(bundle, origin, new FindingList(new Set(), undefined)));
  } catch {
    // The checks report it.
    return undefined;
  }
}
