import { useEffect, useRef } from 'preact/hooks';
import type { CatalogOverview } from '../responses.js';
import { useResponse, useStatePoll } from './requests.js';
import { ClusterView } from './cluster-view.js';
import { CompareView } from './compare-view.js';
import { EditView } from './edit/edit-view.js';
import { KeyboardHelp } from './bar/keyboard-help.js';
import { PackageView } from './package/package-view.js';
import { PackagesView } from './packages-view.js';
import { ImagesView } from './images-view.js';
import { MirrorView } from './mirror-view.js';
import { Missing, Waiting, formatCount } from './parts.js';
import { ProblemsView } from './problems-view.js';
import { getUrl, allPackages, emptySelection, go, useRoute } from './route.js';
import { ThemeSwitch } from './bar/theme.js';

/** Page of a catalog, or of a mirror, which has no catalog. */
export function App() {
  return useRoute().view === 'mirror' ? <MirrorPage /> : <CatalogPage />;
}

function MirrorPage() {
  return (
    <>
      <SkipLink />
      <header class="bar">
        <p class="brand">
          <strong>opmate</strong>
        </p>
        <ThemeSwitch />
      </header>
      <main id="content">
        <MirrorView />
      </main>
    </>
  );
}

function SkipLink() {
  return (
    <a class="skip-link" href="#content" onClick={focusContent}>
      Skip to content
    </a>
  );
}

/** Navigation bar and the view of the current route. */
function CatalogPage() {
  const { value: catalog, error } = useResponse<CatalogOverview>('api/catalog');
  const problem = useStatePoll();
  return (
    <>
      <SkipLink />
      <Bar catalog={catalog} />
      <main id="content">
        {catalog !== undefined && problem !== undefined && (
          <p class="note error" role="alert">
            <strong>Not current.</strong> <bdi>{problem}</bdi>
          </p>
        )}
        {catalog === undefined ? <Waiting error={error} /> : <View catalog={catalog} />}
      </main>
      {catalog !== undefined && catalog.errors > 0 && <InvalidBanner errors={catalog.errors} />}
      <ReloadStatus catalog={catalog} />
    </>
  );
}

/** Says that the catalog has errors, below the window's content: it may appear late, and must not move what is read. */
function InvalidBanner({ errors }: { errors: number }) {
  return (
    <p class="banner" role="status">
      <strong>Invalid catalog:</strong>{' '}
      <a href={getUrl({ view: 'problems', package: '', severity: 'error', check: '' })}>
        {formatCount(errors, 'error')}
      </a>
    </p>
  );
}

/** Number of findings of a severity in the bar. */
function Count({ severity, amount }: { severity: 'error' | 'warning'; amount: number }) {
  if (amount === 0) return null;
  return (
    <span class={`number ${severity}`} title={formatCount(amount, severity)}>
      {amount.toLocaleString('en')}
      <span class="unseen"> {amount === 1 ? severity : `${severity}s`}</span>
    </span>
  );
}

/** Announces reloads of the catalog to screen readers. */
function ReloadStatus({ catalog }: { catalog: CatalogOverview | undefined }) {
  const first = useRef<string>(undefined);
  if (catalog !== undefined) first.current ??= catalog.run;
  const readAt = catalog !== undefined && catalog.run !== first.current ? catalog.readAt : undefined;
  return (
    <p class="unseen" role="status">
      {readAt === undefined ? '' : `The catalog has changed and was read again at ${formatTime(readAt)}`}
    </p>
  );
}

function formatTime(iso: string): string {
  return new Date(iso).toLocaleTimeString('en', { hour12: false });
}

/** Moves the focus, since the fragment of the URL is the route. */
function focusContent(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('main h1')?.focus();
}

function View({ catalog }: { catalog: CatalogOverview }) {
  const route = useRoute();
  switch (route.view) {
    case 'packages':
      return <PackagesView catalog={catalog} route={route} />;
    case 'package':
      return <PackageView key={route.package} route={route} catalog={catalog} />;
    case 'problems':
      return <ProblemsView route={route} isChecking={catalog.isChecking} />;
    case 'compare':
      return <CompareView package={route.package} />;
    case 'images':
      return <ImagesView catalog={catalog} route={route} />;
    case 'cluster':
      return <ClusterView catalog={catalog} route={route} />;
    case 'edit':
      return <EditView catalog={catalog} route={route} />;
    case 'mirror':
      return <MirrorView />;
    case 'unknown':
      return <Missing error={`Page not found: ${route.path}`} />;
  }
}

function Bar({ catalog }: { catalog: CatalogOverview | undefined }) {
  const route = useRoute();
  // The link returns to the last selection from other views.
  const lastSelection = useRef(getUrl(emptySelection));
  if (route.view === 'edit') lastSelection.current = getUrl(route);
  const current = (view: string) => (route.view === view ? { 'aria-current': 'page' as const } : {});
  return (
    <header class="bar">
      <p class="brand">
        <strong>opmate</strong>
        {catalog !== undefined && (
          <span class="catalog" title={catalog.name}>
            {catalog.name}
          </span>
        )}
        {catalog?.readAt !== undefined && (
          <time class="read" dateTime={catalog.readAt} title={`read at ${catalog.readAt}`}>
            read {formatTime(catalog.readAt)}
          </time>
        )}
      </p>
      <nav aria-label="Catalog">
        <a href={getUrl(allPackages)} {...current('packages')}>
          Packages
        </a>
        <a href={getUrl({ view: 'problems', package: '', severity: '', check: '' })} {...current('problems')}>
          Problems
          <Count severity="error" amount={catalog?.errors ?? 0} />
          <Count severity="warning" amount={catalog?.warnings ?? 0} />
        </a>
        {catalog?.hasCluster === true && (
          <a href={getUrl({ view: 'cluster', state: '' })} {...current('cluster')}>
            Cluster
          </a>
        )}
        {catalog?.edit !== undefined && (
          <a href={lastSelection.current} {...current('edit')}>
            Selection
          </a>
        )}
        {catalog?.comparedWith !== undefined && (
          <a href={getUrl({ view: 'compare', package: '' })} {...current('compare')}>
            Compare
          </a>
        )}
      </nav>
      <Search />
      <KeyboardHelp />
      <ThemeSwitch />
    </header>
  );
}

/** Search field; the list of packages shows the results. */
function Search() {
  const route = useRoute();
  const field = useRef<HTMLInputElement>(null);
  const query = route.view === 'packages' ? route.query : '';
  useEffect(() => {
    const jump = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener('keydown', jump);
    return () => removeEventListener('keydown', jump);
  }, []);
  const search = (event: Event): void => {
    const { value } = event.currentTarget as HTMLInputElement;
    const packages = route.view === 'packages' ? route : allPackages;
    go({ ...packages, query: value }, route.view === 'packages' ? 'replace' : 'push');
  };
  return (
    <search>
      <input
        ref={field}
        type="search"
        aria-label="Search packages and bundles"
        placeholder="Name, API, image, version  ( / )"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={query}
        onInput={search}
      />
    </search>
  );
}
