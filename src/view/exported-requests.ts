import { OpmateError } from '../core/errors.js';
import { notFound } from '../core/suggest.js';
import type {
  ExportedRequestHandler,
  CatalogComparison,
  PackageDifferences,
  LocatedProblem,
  ProblemWindow,
} from './responses.js';
import { type PackageGraphFacts, createPackageGraph } from './package-graph.js';
import { selectProblems } from './problem-window.js';
import { type SearchIndex, searchCatalog } from './search.js';

/** Content of the script of a package. */
export interface ExportedPackage {
  /** By URL of the request. */
  responses: Record<string, unknown>;
  graph: PackageGraphFacts;
}

/** Content of the script of differences. */
export interface ExportedComparison {
  compare: CatalogComparison;
  /** Packages of the other catalog only. */
  packages: Record<string, PackageDifferences>;
}

/**
 * Handles a request of an exported page as the server does, in the browser: graphs and upgrade paths are computed from
 * the facts of the package. Throws Error for unknown names.
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
    const { responses, graph } = (await load(files.part)) as ExportedPackage;
    const channels = query.getAll('channel');
    switch (path) {
      case 'api/channel':
        return await createPackageGraph(graph).channel(channels, query.get('compare') === 'yes');
      case 'api/path':
        return createPackageGraph(graph).path(channels, query.get('from') ?? '', query.get('to') ?? '');
    }
    if (Object.hasOwn(responses, address)) return responses[address];
    throw notFound(
      'bundle',
      query.get('bundle') ?? '',
      graph.bundles.map((bundle) => bundle.name),
    );
  } catch (error) {
    if (!(error instanceof OpmateError) || error.hint === undefined) throw error;
    throw new Error(`${error.message} (${error.hint})`, { cause: error });
  }
};

function findProblems(all: readonly LocatedProblem[], query: URLSearchParams): ProblemWindow {
  const get = (name: string): string => query.get(name) ?? '';
  const filter = {
    ...{ from: Number(get('from')), package: get('package'), severity: get('severity'), check: get('check') },
  };
  const { window, ...choices } = selectProblems(all, filter, (problem) => problem);
  return { problems: window, ...choices };
}
