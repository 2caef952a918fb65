import { OpmateError } from '../core/errors.js';
import { notFound } from '../core/suggest.js';
import type {
  AnswerExported,
  CatalogComparison,
  PackageDifferences,
  LocatedProblem,
  ProblemWindow,
} from './answers.js';
import { PackageGraph, type PackageGraphFacts } from './package-graph.js';
import { selectProblems } from './problem-window.js';
import { type SearchIndex, searchCatalog } from './search.js';

/** What the script of a package holds. */
export interface ExportedPackage {
  /** By the address of the request. */
  answers: Record<string, unknown>;
  graph: PackageGraphFacts;
}

/** What the script of differences holds. */
export interface ExportedComparison {
  compare: CatalogComparison;
  /** Packages that only the other catalog has. */
  packages: Record<string, PackageDifferences>;
}

/**
 * Answers a request from the files of an exported page, as the server would; graphs and update paths are computed from
 * the facts of the package. Runs in the browser. Throws Error for what the files do not hold.
 */
export const answerExported: AnswerExported = async (page, address, load) => {
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
    const { answers: responses, graph } = (await load(files.part)) as ExportedPackage;
    const channels = query.getAll('channel');
    switch (path) {
      case 'api/channel':
        return await new PackageGraph(graph).channel(channels, query.get('compare') === 'yes');
      case 'api/path':
        return new PackageGraph(graph).path(channels, query.get('from') ?? '', query.get('to') ?? '');
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
  const [name = '', severity = '', check = ''] = ['package', 'severity', 'check'].map(
    (key) => query.get(key) ?? '',
  );
  const filter = { from: Number(query.get('from') ?? 0), package: name, severity, check };
  const { window, ...choices } = selectProblems(all, filter, (problem) => problem);
  return { problems: window, ...choices };
}
