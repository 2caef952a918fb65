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
import { silentLogger } from '../core/log.js';
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
import { type ComparedCatalogs, diffByPackage } from './compared-catalogs.js';
import {
  type Icon,
  type PackageHeading,
  readDecodedBlob,
  readIcon,
  readPackageHeading,
} from './package-heading.js';
import { type SearchIndex, type SearchedPackage, searchCatalog } from './search.js';
import { type PackageGraphFacts, countBySeverity, createPackageGraph } from './package-graph.js';
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

interface CatalogViewOptions extends Pick<MetasOptions, 'signal' | 'logger'> {
  /** Older catalog to show the differences from. */
  compareWith?: ViewedCatalog | undefined;
  /**
   * Runs the checks of `catalog doctor` before the catalog is read for the page, which takes less memory than both at once,
   * instead of later with `startChecks`.
   */
  checksFirst?: boolean | undefined;
}

/** Contents of the responses about one catalog. Methods throw OpmateError NOT_FOUND for unknown names. */
export type CatalogView = Awaited<ReturnType<typeof openCatalogView>>;

/**
 * Reads a catalog for the page. Names, edges and findings stay in memory, about 1 KB per bundle; descriptions, icons
 * and bundles are read on request, so the catalog must stay open. Unreadable parts of a catalog become findings.
 * Throws OpmateError if nothing can be read.
 */
export async function openCatalogView(
  { name: catalogName, catalog }: ViewedCatalog,
  { compareWith, checksFirst = false, signal, logger = silentLogger }: CatalogViewOptions = {},
) {
  /** Returns the findings of the checks; undefined, with a warning, if they stopped. */
  const check = async (): Promise<CatalogDiagnostic[] | undefined> => {
    const { examineCatalog } = await import('../catalog/doctor/diagnose.js');
    return examineCatalog(catalog, { signal }).catch((error: unknown) => {
      if (signal?.aborted !== true) logger.log('warn', `checks stopped: ${getMessage(error)}`);
      return undefined;
    });
  };
  const checked = checksFirst ? await check() : undefined;
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
    compared = diffByPackage(compareWith.name, catalogName, diff, before.facts.channels);
    facts = after.facts;
  }
  const packages = collectPackages(facts);
  let findings: CatalogDiagnostic[] = [];
  /** Reset when findings change. */
  let overview: OverviewContent | undefined;
  const setFindings = (next: CatalogDiagnostic[]): void => {
    findings = next;
    overview = undefined;
    for (const viewedPackage of packages.values()) viewedPackage.problems = [];
    for (const finding of next) packages.get(finding.package ?? '')?.problems.push(finding);
  };
  setFindings(checked ?? (await readFindings(facts, faults, signal)));
  const headings = new Map<string, PackageHeading>();
  for (const [name, viewedPackage] of packages) {
    throwIfCancelled(signal);
    headings.set(name, await readPackageHeading(catalog, viewedPackage));
  }

  const getHeading = (name: string): PackageHeading => headings.get(name) as PackageHeading;
  const requirePackage = (name: string): ViewedPackage => {
    const viewedPackage = packages.get(name);
    if (viewedPackage !== undefined) return viewedPackage;
    throw notFound('package', name, packages.keys());
  };
  const requireCompared = (): ComparedCatalogs => {
    if (compared !== undefined) return compared;
    throw new OpmateError('NOT_FOUND', 'no catalog to compare with');
  };
  const locate = async (diagnostics: readonly CatalogDiagnostic[]): Promise<LocatedProblem[]> =>
    (await placeDiagnostics(catalog, diagnostics.map(withoutFarPlace), { signal })).map((finding) => {
      const { severity, code, hint = '', package: packageName = '', channel = '', bundle = '' } = finding;
      const { file = '', line } = finding;
      return {
        ...{ severity, check: code, message: formatMessage(finding), hint },
        ...{ package: packageName, channel, bundle, file },
        ...(line !== undefined && { line }),
      };
    });

  const summarize = (viewedPackage: ViewedPackage): PackageSummary => {
    const { name, facts: packageFacts, channels, bundles, deprecations, problems } = viewedPackage;
    const head = findDefaultHead(viewedPackage);
    const change = compared?.getPackageChange(name);
    const { displayName, provider, summary, hasIcon, categories, openshift } = getHeading(name);
    return {
      ...{ name, displayName, provider, summary, hasIcon, categories },
      ...(openshift !== undefined && { openshift }),
      defaultChannel: packageFacts?.defaultChannel ?? '',
      head,
      version: formatBundleVersion(bundles.get(head)?.packageProperties[0]),
      channels: channels.size,
      bundles: bundles.size,
      isDeprecated: deprecations.has(deprecationKey(schemas.package)),
      ...countBySeverity(problems),
      ...(change !== undefined && { change }),
    };
  };
  const createOverview = (): OverviewContent => {
    const summaries = sortByName(packages).map(summarize);
    const sum = (count: (packageSummary: PackageSummary) => number): number =>
      summaries.reduce((total, packageSummary) => total + count(packageSummary), 0);
    return {
      name: catalogName,
      ...(compared && { comparedWith: compared.from }),
      bundles: sum(({ bundles }) => bundles),
      channels: sum(({ channels }) => channels),
      ...countBySeverity(findings),
      packages: summaries,
      openshift: listOpenShiftChoices(
        summaries.flatMap(({ openshift }) => [openshift?.min ?? [], openshift?.max ?? []].flat()),
      ),
    };
  };

  let searchIndex: SearchIndex | undefined;
  const listSearched = function* (): Generator<SearchedPackage> {
    for (const viewedPackage of sortByName(packages))
      yield toSearchedPackage(viewedPackage, getHeading(viewedPackage.name), index);
  };
  const getSearchIndex = (): SearchIndex =>
    (searchIndex ??= { packages: [...listSearched()], images: index.images });

  /** Returns the facts of the graphs and upgrade paths of a package. */
  const graphFacts = (packageName: string): PackageGraphFacts => {
    const {
      name,
      facts: packageFacts,
      channels,
      bundles,
      deprecations,
      problems,
    } = requirePackage(packageName);
    const toEntries = (list: Iterable<ChannelFacts>): PackageGraphFacts['channels'] =>
      [...list].map(({ name: channel, entries }) => ({ name: channel, entries }));
    return {
      package: name,
      defaultChannel: packageFacts?.defaultChannel ?? '',
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
  };

  const describePackage = async (name: string): Promise<Omit<PackageDetails, 'problems'>> => {
    const viewedPackage = requirePackage(name);
    const { facts: packageFacts, bundles, deprecations, problems } = viewedPackage;
    const { displayName, provider, hasIcon } = getHeading(name);
    const deprecation = deprecations.get(deprecationKey(schemas.package));
    const blob = await readDecodedBlob(catalog, packageFacts, decodePackage);
    const head = await readDecodedBlob(catalog, bundles.get(findDefaultHead(viewedPackage)), (value) =>
      readBundleHeading(decodeBundle(value)),
    );
    return {
      ...{ name, displayName, provider },
      description: blob?.description || head?.description || '',
      defaultChannel: packageFacts?.defaultChannel ?? '',
      hasIcon,
      isDefined: packageFacts !== undefined,
      bundles: bundles.size,
      ...(deprecation !== undefined && { deprecation }),
      lifecycle: [...(index.lifecycles.get(name) ?? [])]
        .sort((a, b) => byNumbers.compare(b.name, a.name))
        .map(({ name: version, phases, platforms }) => ({ version, phases, platforms })),
      channels: summarizeChannels(viewedPackage),
      problemCount: problems.length,
    };
  };
  const describeBundle = async (packageName: string, name: string): Promise<BundleDescription> => {
    const viewedPackage = requirePackage(packageName);
    const bundleFacts = viewedPackage.bundles.get(name);
    const deprecation = viewedPackage.deprecations.get(deprecationKey(schemas.bundle, name));
    const details =
      (await readDecodedBlob(catalog, bundleFacts, (value) => readBundleDetails(decodeBundle(value)))) ??
      readBundleDetails(emptyBundle);
    return {
      package: packageName,
      name,
      version: formatBundleVersion(bundleFacts?.packageProperties[0]),
      ...details,
      ...(deprecation !== undefined && { deprecation }),
    };
  };

  let checking: Promise<void> | undefined;
  return {
    /**
     * Starts the checks of `catalog doctor`, which read the catalog again; until they end, problems are those of
     * `validate`. The catalog must stay open until `endChecks`.
     */
    startChecks(): void {
      checking = check()
        .then((found) => {
          if (found !== undefined) setFindings(found);
        })
        .finally(() => {
          checking = undefined;
        });
    },
    isChecking: (): boolean => checking !== undefined,
    /** Waits for the checks, which the signal of the view cancels. */
    endChecks: async (): Promise<void> => checking,

    /** Returns the list of packages and the totals. */
    overview: (): OverviewContent => (overview ??= createOverview()),
    /** Returns the data that a selection is planned with. */
    selectable: () => ({
      catalog,
      facts,
      getImages: (packageName: string, bundle: string): string[] =>
        index.getImages(packageName, bundle).flatMap((position) => index.images[position] ?? []),
    }),
    search: (query: string): SearchResult => searchCatalog(getSearchIndex(), query),
    searchIndex: getSearchIndex,
    /** Returns the search index with its packages one by one. */
    streamSearchIndex: () => ({ packages: listSearched(), images: index.images }),
    graphFacts,
    graph: (packageName: string) => createPackageGraph(graphFacts(packageName)),

    /** Returns the details of a package without its problems. */
    describePackage,
    async package(name: string): Promise<PackageDetails> {
      const { problems } = requirePackage(name);
      return { ...(await describePackage(name)), problems: await locate(selectFirst(problems)) };
    },

    async icon(name: string): Promise<Icon> {
      const icon = await readDecodedBlob(catalog, requirePackage(name).facts, (value) =>
        readIcon(decodePackage(value)),
      );
      if (icon !== undefined) return icon;
      throw new OpmateError('NOT_FOUND', `package ${quoteGo(name)} has no icon`);
    },

    /** Returns what the blob of a bundle says, and what deprecates it; never fails for a name without a blob. */
    describeBundle,
    async bundle(packageName: string, name: string): Promise<BundleDetails> {
      const { bundles, problems } = requirePackage(packageName);
      const places = createPackageGraph(graphFacts(packageName)).places(name);
      if (!bundles.has(name) && places.length === 0) {
        throw notFound('bundle', name, bundles.keys(), { scope: `package ${quoteGo(packageName)}` });
      }
      return {
        ...(await describeBundle(packageName, name)),
        places,
        problems: await locate(selectFirst(problems.filter(({ bundle }) => bundle === name))),
      };
    },

    /** Returns all problems of a package, most severe first. */
    packageProblems: (name: string): Promise<LocatedProblem[]> =>
      locate([...requirePackage(name).problems].sort(compareSeverity)),
    /** Returns all problems, most severe first, some at a time. */
    async *streamProblems(): AsyncGenerator<LocatedProblem[]> {
      const sorted = [...findings].sort(compareSeverity);
      for (let start = 0; start < sorted.length; start += problemsAtOnce)
        yield await locate(sorted.slice(start, start + problemsAtOnce));
    },
    async problems(filter: ProblemFilter): Promise<ProblemWindow> {
      const { window, ...choices } = selectProblems(findings, filter, (finding) => ({
        ...{ severity: finding.severity, check: finding.code, package: finding.package ?? '' },
      }));
      return { problems: await locate(window), ...choices };
    },
    compare: (): CatalogComparison => requireCompared().summarize(),
    comparePackage: (name: string): PackageDifferences => requireCompared().package(name),
  };
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
    ...{ name, displayName, provider, categories, keywords, description },
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
