import { useEffect, useState } from 'preact/hooks';

/** View and its state, which the fragment of the URL encodes. */
type Route =
  | ({ view: 'packages' } & PackagesRoute)
  | PackageRoute
  | ProblemsRoute
  | { view: 'compare'; package: string }
  | ({ view: 'images' } & ImagesRoute)
  | ({ view: 'edit' } & EditRoute)
  | { view: 'unknown'; path: string };

/** Selected package, channel and bundle; empty for none. */
export interface PackageRoute {
  view: 'package';
  package: string;
  channel: string;
  bundle: string;
  /** Further channels in the graph. */
  beside: string[];
  /** Ends of the update path. */
  from: string;
  to: string;
  /** `no` hides differences from the other catalog. */
  compare: string;
}

/** Filters of the findings; empty for none. */
export interface ProblemsRoute {
  view: 'problems';
  package: string;
  severity: string;
  check: string;
}

/** Search, filters and sort order of the list of packages; empty for none. */
export interface PackagesRoute {
  query: string;
  only: string;
  category: string;
  provider: string;
  /** A minor version of OpenShift, `4.18`. */
  openshift: string;
  sort: string;
}

/** Selection and the document to create. */
export interface EditRoute {
  /** See `parsePick`. */
  picks: string[];
  /** `imageset` or `filter`; empty for the default of the catalog. */
  kind: string;
  /** Image of the catalog; empty for the open one. */
  catalog: string;
  /** See `parseDefaults`. */
  defaults: string[];
  /** `yes` to keep only the selected bundles. */
  exact: string;
}

/** Images of one package, or of those that the list of packages shows. */
export interface ImagesRoute extends PackagesRoute {
  package: string;
  /** `all` for all bundles; empty for heads of default channels. */
  scope: string;
}

/** Empty selection. */
export const emptySelection: Extract<Route, { view: 'edit' }> = {
  ...{ view: 'edit', picks: [], kind: '', catalog: '', defaults: [], exact: '' },
};

/** The list of all packages. */
export const allPackages: Extract<Route, { view: 'packages' }> = {
  ...{ view: 'packages', query: '', only: '', category: '', provider: '', openshift: '', sort: '' },
};

const emptyPackage: PackageRoute = {
  ...{ view: 'package', package: '', channel: '', bundle: '', beside: [], from: '', to: '', compare: '' },
};

function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view, ...names] = path.split('/').map(decode);
  const values = new URLSearchParams(query);
  const get = (key: string): string => values.get(key) ?? '';
  const [first = '', channel = '', bundle = ''] = names;
  const filters: PackagesRoute = {
    ...{ query: get('q'), only: get('only'), category: get('category'), provider: get('provider') },
    ...{ openshift: get('openshift'), sort: get('sort') },
  };
  switch (view) {
    case 'package':
      return {
        ...{ view, package: first, channel, bundle, beside: values.getAll('beside') },
        ...{ from: get('from'), to: get('to'), compare: get('compare') },
      };
    case 'problems':
      return { view, package: get('package'), severity: get('severity'), check: get('check') };
    case 'compare':
      return { view, package: first };
    case 'edit':
      return {
        ...{ view, picks: values.getAll('pick'), defaults: values.getAll('default') },
        ...{ kind: get('kind'), catalog: get('catalog'), exact: get('exact') },
      };
    case 'images':
      return { ...filters, view, package: first, scope: get('scope') };
    default:
      if (view !== '' && view !== undefined) return { view: 'unknown', path };
      return { view: 'packages', ...filters };
  }
}

/** Returns the URL of a route. */
export function getUrl(route: Route): string {
  switch (route.view) {
    case 'packages':
      return `#/${toQuery(getFilters(route))}`;
    case 'package': {
      const { beside, from, to, compare } = route;
      const names = [route.package, route.channel, route.bundle].map(encodeURIComponent);
      return `#/package/${names.join('/').replace(/\/+$/, '')}${toQuery({ beside, from, to, compare })}`;
    }
    case 'problems': {
      const { package: name, severity, check } = route;
      return `#/problems${toQuery({ package: name, severity, check })}`;
    }
    case 'images':
      return `#/images/${encodeURIComponent(route.package)}${toQuery({ ...getFilters(route), scope: route.scope })}`;
    case 'edit': {
      const { picks, kind, catalog, defaults, exact } = route;
      return `#/edit${toQuery({ pick: picks, kind, catalog, default: defaults, exact })}`;
    }
    case 'unknown':
      return `#${route.path}`;
    case 'compare':
      return `#/compare${route.package === '' ? '' : `/${encodeURIComponent(route.package)}`}`;
  }
}

/** Returns the URL of a package, channel or bundle. */
export function getPackageUrl(name: string, channel = '', bundle = ''): string {
  return getUrl({ ...emptyPackage, package: name, channel, bundle });
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

function getFilters({ query, ...route }: PackagesRoute): Record<string, string> {
  const { only, category, provider, openshift, sort } = route;
  return { q: query, only, category, provider, openshift, sort };
}

function toQuery(values: Record<string, string | string[]>): string {
  const pairs = Object.entries(values)
    .flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((text) => [name, text]))
    .filter(([, value]) => value !== '');
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`;
}

/** Decodes a component of a URL; returns invalid ones unchanged. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
