import { useEffect, useState } from 'preact/hooks';

/** The list of all packages, without search, filters and sort order. `openshift` is a minor version, `4.18`. */
export const allPackages = {
  view: 'packages' as const,
  query: '',
  only: '',
  category: '',
  provider: '',
  openshift: '',
  sort: '',
};

/**
 * Empty selection. `picks` and `defaults` are those of `parsePicks` and `parseDefaults`, `kind` is `imageset` or
 * `filter`, empty for the default of the catalog, `catalog` an image, empty for the open one; `exact` is `yes` to keep
 * only the selected bundles.
 */
export const emptySelection = {
  view: 'edit' as const,
  picks: [] as string[],
  kind: '',
  catalog: '',
  defaults: [] as string[],
  exact: '',
};

/** Views by the first name in the fragment of the URL: empty routes, with their fields in the order of the URL. */
const views = {
  '': allPackages,
  /** `beside`: further channels in the graph, `from` and `to`: ends of the upgrade path, `compare`: `no` hides it. */
  package: {
    view: 'package' as const,
    package: '',
    channel: '',
    bundle: '',
    beside: [] as string[],
    from: '',
    to: '',
    compare: '',
  },
  problems: { view: 'problems' as const, package: '', severity: '', check: '' },
  compare: { view: 'compare' as const, package: '' },
  /** Images of one package, or of those that the list shows; `scope`: `all`, or empty for heads of default channels. */
  images: { ...allPackages, view: 'images' as const, package: '', scope: '' },
  /** `state`: only operators in this state. */
  cluster: { view: 'cluster' as const, state: '' },
  edit: emptySelection,
  /** The only view of a page without a catalog. */
  mirror: { view: 'mirror' as const },
};

/** View and its state, which the fragment of the URL encodes. */
type Route = (typeof views)[keyof typeof views] | { view: 'unknown'; path: string };
export type PackagesRoute = Omit<typeof allPackages, 'view'>;
export type PackageRoute = typeof views.package;
export type ProblemsRoute = typeof views.problems;
export type ImagesRoute = typeof views.images;
export type ClusterRoute = typeof views.cluster;
export type EditRoute = typeof emptySelection;

type Fields = Partial<Record<string, string | string[]>>;

/** Fields that are names in the path; the others are parameters. */
const pathFields: Partial<Record<Route['view'], string[]>> = {
  package: ['package', 'channel', 'bundle'],
  compare: ['package'],
  images: ['package'],
};
/** Parameters whose name differs from their field. */
const parameters: Partial<Record<string, string>> = { query: 'q', picks: 'pick', defaults: 'default' };

function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [first = '', ...names] = path.split('/').map(decode);
  if (!Object.hasOwn(views, first)) return { view: 'unknown', path };
  const empty = views[first as keyof typeof views];
  const values = new URLSearchParams(query);
  const read = ([field, value]: [string, string | string[]]): string | string[] => {
    const place = pathFields[empty.view]?.indexOf(field) ?? -1;
    const parameter = parameters[field] ?? field;
    if (field === 'view') return value;
    if (place >= 0) return names[place] ?? '';
    return Array.isArray(value) ? values.getAll(parameter) : (values.get(parameter) ?? '');
  };
  const route: Fields = Object.fromEntries(Object.entries(empty).map((entry) => [entry[0], read(entry)]));
  return route as Route;
}

/** Returns the URL of a route. */
export function getUrl(route: Route): string {
  const { view } = route;
  if (view === 'unknown') return `#${route.path}`;
  const first = view === 'packages' ? '' : view;
  const values: Fields = route;
  const inPath = pathFields[view] ?? [];
  const path = [first, ...inPath.map((field) => encodeURIComponent(String(values[field])))].join('/');
  const pairs = Object.keys(views[first])
    .filter((field) => field !== 'view' && !inPath.includes(field))
    .flatMap((field) => [values[field] ?? ''].flat().map((text) => [parameters[field] ?? field, text]))
    .filter(([, text]) => text !== '');
  const query = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`;
  return `#/${view === 'images' ? path : path.replace(/\/+$/, '')}${query}`;
}

/** Returns the URL of a package, channel or bundle. */
export function getPackageUrl(name: string, channel = '', bundle = ''): string {
  return getUrl({ ...views.package, package: name, channel, bundle });
}

/** Returns the URL of a package whose graph shows the upgrade path between two bundles. */
export function getPathUrl(name: string, channel: string, from: string, to: string): string {
  return getUrl({ ...views.package, package: name, channel, from, to });
}

/** Navigates to a route; `replace` replaces the current entry of the history. */
export function go(route: Route, how: 'push' | 'replace' = 'push'): void {
  const url = getUrl(route);
  if (how === 'push') location.hash = url;
  else {
    history.replaceState(null, '', url);
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
}

/** Returns the current route, and renders again when it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const change = (): void => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

/** Decodes a component of a URL; returns invalid ones unchanged. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
