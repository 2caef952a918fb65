import { useEffect, useState } from 'preact/hooks';

/** What the page shows, as its address has it behind the `#`. */
export type Route =
  | ({ view: 'packages' } & PackagesRoute)
  | ({ view: 'package' } & PackageRoute)
  | { view: 'problems'; package: string; severity: string; check: string }
  | { view: 'compare'; package: string }
  | ({ view: 'images' } & ImagesRoute)
  | ({ view: 'edit' } & EditRoute)
  | { view: 'unknown'; path: string };

/** A package, a channel of it, and a bundle; empty where none is chosen. */
interface PackageRoute {
  package: string;
  channel: string;
  bundle: string;
  /** Channels in the same graph. */
  beside: string[];
  /** Ends of the update path that is shown. */
  from: string;
  to: string;
  /** `no` hides what differs from the other catalog. */
  compare: string;
}

/** What narrows and orders the list of packages; empty where nothing does. */
export interface PackagesRoute {
  query: string;
  only: string;
  category: string;
  provider: string;
  /** A minor version of OpenShift, `4.18`. */
  openshift: string;
  sort: string;
}

/** A selection and the document to make of it. */
export interface EditRoute {
  /** See `parsePick`. */
  picks: string[];
  /** `imageset` or `filter`; what fits the catalog where it is empty. */
  kind: string;
  /** Image of the catalog, if it is not the one that is shown. */
  catalog: string;
  /** See `parseDefaults`. */
  defaults: string[];
  /** `yes` to drop all other bundles. */
  exact: string;
}

/** Of which packages images are shown: of one, or of those that the list of packages would show. */
export interface ImagesRoute extends PackagesRoute {
  package: string;
  /** `all` for all bundles; else those at the heads of default channels. */
  scope: string;
}

/** A selection of nothing. */
export const emptySelection: Extract<Route, { view: 'edit' }> = {
  ...{ view: 'edit', picks: [], kind: '', catalog: '', defaults: [], exact: '' },
};

/** The list of all packages. */
export const allPackages: Extract<Route, { view: 'packages' }> = {
  ...{ view: 'packages', query: '', only: '', category: '', provider: '', openshift: '', sort: '' },
};

/** A package of which nothing is chosen. */
const wholePackage: Extract<Route, { view: 'package' }> = {
  ...{ view: 'package', package: '', channel: '', bundle: '', beside: [], from: '', to: '', compare: '' },
};

/** Reads an address. */
function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view, ...names] = path.split('/').map(decode);
  const values = new URLSearchParams(query);
  const [first = '', channel = '', bundle = ''] = names;
  const narrowing: PackagesRoute = {
    query: values.get('q') ?? '',
    only: values.get('only') ?? '',
    category: values.get('category') ?? '',
    provider: values.get('provider') ?? '',
    openshift: values.get('openshift') ?? '',
    sort: values.get('sort') ?? '',
  };
  switch (view) {
    case 'package':
      return {
        ...{ view, package: first, channel, bundle, beside: values.getAll('beside') },
        ...{ from: values.get('from') ?? '', to: values.get('to') ?? '' },
        compare: values.get('compare') ?? '',
      };
    case 'problems':
      return {
        ...{ view, package: values.get('package') ?? '', severity: values.get('severity') ?? '' },
        check: values.get('check') ?? '',
      };
    case 'compare':
      return { view, package: first };
    case 'edit':
      return {
        view,
        picks: values.getAll('pick'),
        kind: values.get('kind') ?? '',
        catalog: values.get('catalog') ?? '',
        defaults: values.getAll('default'),
        exact: values.get('exact') ?? '',
      };
    case 'images':
      return { ...narrowing, view, package: first, scope: values.get('scope') ?? '' };
    default:
      if (view !== '' && view !== undefined) return { view: 'unknown', path };
      return { view: 'packages', ...narrowing };
  }
}

/** The address of what is to be shown. */
export function getAddress(route: Route): string {
  switch (route.view) {
    case 'packages':
      return `#/${toQuery(getNarrowing(route))}`;
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
      return `#/images/${encodeURIComponent(route.package)}${toQuery({ ...getNarrowing(route), scope: route.scope })}`;
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

/** The address of a package, channel or bundle. */
export function addressOfPackage(name: string, channel = '', bundle = ''): string {
  return getAddress({ ...wholePackage, package: name, channel, bundle });
}

/** Shows something else. With `replace` the way back skips what is shown now. */
export function go(route: Route, how: 'push' | 'replace' = 'push'): void {
  const address = getAddress(route);
  if (how === 'push') location.hash = address;
  else {
    history.replaceState(null, '', address);
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
}

/** What is to be shown now. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const change = (): void => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

function getNarrowing({
  query,
  only,
  category,
  provider,
  openshift,
  sort,
}: PackagesRoute): Record<string, string> {
  return { q: query, only, category, provider, openshift, sort };
}

function toQuery(values: Record<string, string | string[]>): string {
  const pairs = Object.entries(values)
    .flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((text) => [name, text]))
    .filter(([, value]) => value !== '');
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
