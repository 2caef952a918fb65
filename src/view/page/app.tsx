import { useEffect, useRef } from 'preact/hooks';
import type { CatalogOverview } from '../answers.js';
import { useAnswer, useStatePoll } from './requests.js';
import { CompareView } from './compare-view.js';
import { EditView } from './edit/edit-view.js';
import { PackageView } from './package/package-view.js';
import { PackagesView } from './packages-view.js';
import { ImagesView } from './images-view.js';
import { Missing, Waiting } from './parts.js';
import { ProblemsView } from './problems-view.js';
import { getAddress, allPackages, emptySelection, go, useRoute } from './route.js';
import { ThemeSwitch } from './theme.js';

/** The whole page: a bar above, and below it what the address says. */
export function App() {
  const { value: catalog, error } = useAnswer<CatalogOverview>('api/catalog');
  const problem = useStatePoll();
  return (
    <>
      <a class="skip-link" href="#content" onClick={toContent}>
        Skip to content
      </a>
      <Bar catalog={catalog} />
      <main id="content">
        {catalog !== undefined && problem !== undefined && (
          <p class="note error" role="alert">
            <strong>Not current.</strong> <bdi>{problem}</bdi>
          </p>
        )}
        {catalog === undefined ? <Waiting error={error} /> : <View catalog={catalog} />}
      </main>
      <Changes catalog={catalog} />
    </>
  );
}

/** Announces that the catalog was read again, for readers who cannot see the page change. */
function Changes({ catalog }: { catalog: CatalogOverview | undefined }) {
  const first = useRef<string>(undefined);
  if (catalog !== undefined) first.current ??= catalog.run;
  const hasChanged = catalog !== undefined && catalog.run !== first.current;
  return (
    <p class="unseen" role="status">
      {hasChanged ? `The catalog has changed and was read again at ${parseTime(catalog.readAt)}` : ''}
    </p>
  );
}

function parseTime(iso: string): string {
  return new Date(iso).toLocaleTimeString('en', { hour12: false });
}

/** The address behind `#` says what is shown, so the jump is made by hand. */
function toContent(event: Event): void {
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
      return (
        <ProblemsView
          package={route.package}
          severity={route.severity}
          check={route.check}
          isChecking={catalog.isChecking}
        />
      );
    case 'compare':
      return <CompareView package={route.package} />;
    case 'images':
      return <ImagesView catalog={catalog} route={route} />;
    case 'edit':
      return <EditView catalog={catalog} route={route} />;
    case 'unknown':
      return <Missing error={`Page not found: ${route.path}`} />;
  }
}

function Bar({ catalog }: { catalog: CatalogOverview | undefined }) {
  const route = useRoute();
  // The way back to what was selected, also from elsewhere.
  const lastSelection = useRef(getAddress(emptySelection));
  if (route.view === 'edit') lastSelection.current = getAddress(route);
  const problems = (catalog?.errors ?? 0) + (catalog?.warnings ?? 0);
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
        {catalog !== undefined && (
          <time class="read" dateTime={catalog.readAt} title={`read at ${catalog.readAt}`}>
            read {parseTime(catalog.readAt)}
          </time>
        )}
      </p>
      <nav aria-label="Catalog">
        <a href={getAddress(allPackages)} {...current('packages')}>
          Packages
        </a>
        <a
          href={getAddress({ view: 'problems', package: '', severity: '', check: '' })}
          {...current('problems')}
        >
          Problems
          {problems > 0 && (
            <span
              class={`number ${(catalog?.errors ?? 0) > 0 ? 'error' : 'warning'}`}
              title="errors and warnings"
            >
              {problems.toLocaleString('en')}
            </span>
          )}
        </a>
        {catalog?.edit !== undefined && (
          <a href={lastSelection.current} {...current('edit')}>
            Selection
          </a>
        )}
        {catalog?.comparedWith !== undefined && (
          <a href={getAddress({ view: 'compare', package: '' })} {...current('compare')}>
            Compare
          </a>
        )}
      </nav>
      <Search />
      <ThemeSwitch />
    </header>
  );
}

/** Looks for packages and bundles; the list of packages shows what is found. */
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
    const now = route.view === 'packages' ? route : allPackages;
    go({ ...now, query: value }, route.view === 'packages' ? 'replace' : 'push');
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
