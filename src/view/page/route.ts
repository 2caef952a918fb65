import { useEffect, useState } from 'preact/hooks';

/** What the page shows, as its address has it behind the `#`. */
export type Route =
  | ({ view: 'packages' } & PackagesRoute)
  | { view: 'package'; package: string; channel: string; bundle: string }
  | { view: 'problems'; package: string; severity: string }
  | { view: 'compare'; package: string };

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

/** The list of all packages. */
export const allPackages: Extract<Route, { view: 'packages' }> = {
  ...{ view: 'packages', query: '', only: '', category: '', provider: '', openshift: '', sort: '' },
};

/** Reads an address; what is not known is the list of packages. */
function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view, ...names] = path.split('/').map(decode);
  const values = new URLSearchParams(query);
  const [first = '', channel = '', bundle = ''] = names;
  switch (view) {
    case 'package':
      return { view, package: first, channel, bundle };
    case 'problems':
      return { view, package: values.get('package') ?? '', severity: values.get('severity') ?? '' };
    case 'compare':
      return { view, package: first };
    default:
      return {
        view: 'packages',
        query: values.get('q') ?? '',
        only: values.get('only') ?? '',
        category: values.get('category') ?? '',
        provider: values.get('provider') ?? '',
        openshift: values.get('openshift') ?? '',
        sort: values.get('sort') ?? '',
      };
  }
}

/** The address of what is to be shown. */
export function addressOf(route: Route): string {
  switch (route.view) {
    case 'packages': {
      const { query, only, category, provider, openshift, sort } = route;
      return `#/${queryOf({ q: query, only, category, provider, openshift, sort })}`;
    }
    case 'package': {
      const names = [route.package, route.channel, route.bundle].map(encodeURIComponent);
      return `#/package/${names.join('/').replace(/\/+$/, '')}`;
    }
    case 'problems':
      return `#/problems${queryOf({ package: route.package, severity: route.severity })}`;
    case 'compare':
      return `#/compare${route.package === '' ? '' : `/${encodeURIComponent(route.package)}`}`;
  }
}

/** The address of a package, channel or bundle. */
export function addressOfPackage(name: string, channel = '', bundle = ''): string {
  return addressOf({ view: 'package', package: name, channel, bundle });
}

/** Shows something else. With `replace` the way back skips what is shown now. */
export function go(route: Route, how: 'push' | 'replace' = 'push'): void {
  const address = addressOf(route);
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

function queryOf(values: Record<string, string>): string {
  const given = Object.entries(values).filter(([, value]) => value !== '');
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
