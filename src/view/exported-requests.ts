import { OpmateError } from '../core/errors.js';
import { notFound } from '../core/suggest.js';
import type {
  BundleDetails,
  ExportedRequestHandler,
  CatalogComparison,
  PackageDetails,
  PackageDifferences,
  LocatedProblem,
  ProblemWindow,
} from './responses.js';
import { type PackageGraphFacts, PackageGraph } from './package-graph.js';
import { selectFirst, selectProblems } from './problem-window.js';
import { type SearchIndex, searchCatalog } from './search.js';

/** Content of the script of a package. Its size is in proportion to the package, unlike the places of all bundles. */
export interface ExportedPackage {
  details: Omit<PackageDetails, 'problems'>;
  /** By name. */
  bundles: Record<string, Omit<BundleDetails, 'places' | 'problems'>>;
  /** All of the package, most severe first. */
  problems: LocatedProblem[];
  graph: PackageGraphFacts;
  /** Undefined without a catalog to compare with. */
  differences?: PackageDifferences;
}

/** Content of the script of differences. */
export interface ExportedComparison {
  compare: CatalogComparison;
  /** Packages of the other catalog only. */
  packages: Record<string, PackageDifferences>;
}

/**
 * Handles a request of an exported page as the server does, in the browser: graphs and upgrades are computed from the
 * facts of the package. Throws Error for unknown names.
 */
export const handleExportedRequest: ExportedRequestHandler = async (page, address, load) => {
  const [path = '', parameters = ''] = address.split(/\?(.*)/s);
  const query = new URLSearchParams(parameters);
  const name = query.get('package') ?? '';
  switch (path) {
    case 'api/state':
    case 'api/catalog':
      return page.catalog;
    case 'api/index':
      return load('index');
    case 'api/search':
      return searchCatalog((await load('index')) as SearchIndex, query.get('q') ?? '');
    case 'api/problems':
      return findProblems((await load('problems')) as LocatedProblem[], query);
    case 'api/compare':
      return ((await load('compare')) as ExportedComparison).compare;
  }
  try {
    const files = Object.hasOwn(page.files, name) ? page.files[name] : undefined;
    if (files === undefined) {
      const removed =
        path === 'api/compare/package' ? ((await load('compare')) as ExportedComparison).packages : {};
      if (Object.hasOwn(removed, name)) return removed[name];
      throw notFound('package', name, Object.keys(page.files));
    }
    const { details, bundles, problems, graph, differences } = (await load(files.part)) as ExportedPackage;
    const channels = query.getAll('channel');
    switch (path) {
      case 'api/package':
        return { ...details, problems: selectFirst(problems) };
      case 'api/compare/package':
        return differences;
      case 'api/channel':
        return await new PackageGraph(graph).channel(channels, query.get('compare') === 'yes');
      case 'api/path':
        return new PackageGraph(graph).path(channels, query.get('from') ?? '', query.get('to') ?? '');
    }
    const bundle = query.get('bundle') ?? '';
    if (!Object.hasOwn(bundles, bundle)) {
      throw notFound(
        'bundle',
        bundle,
        graph.bundles.map((known) => known.name),
      );
    }
    return {
      ...bundles[bundle],
      places: new PackageGraph(graph).places(bundle),
      problems: selectFirst(problems.filter((problem) => problem.bundle === bundle)),
    };
  } catch (error) {
    if (!(error instanceof OpmateError) || error.hint === undefined) throw error;
    throw new Error(`${error.message} (${error.hint})`, { cause: error });
  }
};

function findProblems(all: readonly LocatedProblem[], query: URLSearchParams): ProblemWindow {
  const get = (name: string): string => query.get(name) ?? '';
  const filter = {
    from: Number(get('from')),
    package: get('package'),
    severity: get('severity'),
    check: get('check'),
  };
  const { window, ...choices } = selectProblems(all, filter, (problem) => problem);
  return { problems: window, ...choices };
}
