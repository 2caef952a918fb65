import { useEffect, useRef, useState } from 'preact/hooks';
import type { CatalogAnswer } from '../answers.js';
import { forgetAnswers, question, useAnswer, watchCatalog } from './ask.js';
import { CompareView } from './compare-view.js';
import { PackageView } from './package-view.js';
import { PackagesView } from './packages-view.js';
import { Waiting } from './parts.js';
import { ProblemsView } from './problems-view.js';
import { addressOf, go, useRoute } from './route.js';
import { ThemeSwitch } from './theme.js';

const checkAgainMs = 1_500;

/** The whole page: a bar above, and below it what the address says. */
export function App() {
  const { catalog, error } = useCatalog();
  return (
    <>
      <a class="skip-link" href="#content" onClick={toContent}>
        Skip to content
      </a>
      <Bar catalog={catalog} />
      <main id="content">
        {catalog === undefined ? <Waiting error={error} /> : <View key={catalog.run} catalog={catalog} />}
      </main>
    </>
  );
}

/** The catalog; asked for again while checks are running, when it has changed, and when the user comes back to the page. */
function useCatalog(): { catalog: CatalogAnswer | undefined; error: string | undefined } {
  const [times, setTimes] = useState(0);
  const { value, error } = useAnswer<CatalogAnswer>(question('catalog', { times: String(times) }));
  const last = useRef<CatalogAnswer>(undefined);
  useEffect(() => {
    const askAgain = (): void => setTimes((before) => before + 1);
    const unwatch = watchCatalog(askAgain);
    addEventListener('focus', askAgain);
    return () => {
      unwatch();
      removeEventListener('focus', askAgain);
    };
  }, []);
  const catalog = value ?? last.current;
  useEffect(() => {
    if (value === undefined) return undefined;
    if (!value.isChecking) {
      // What was told of problems before is no longer all of them.
      if (last.current?.isChecking === true) forgetAnswers();
      last.current = value;
      return undefined;
    }
    last.current = value;
    const timer = setTimeout(() => setTimes((before) => before + 1), checkAgainMs);
    return () => clearTimeout(timer);
  }, [value, times]);
  return { catalog, error: catalog === undefined ? error : undefined };
}

/** The address behind `#` says what is shown, so the jump is made by hand. */
function toContent(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('main h1')?.focus();
}

function View({ catalog }: { catalog: CatalogAnswer }) {
  const route = useRoute();
  switch (route.view) {
    case 'packages':
      return <PackagesView catalog={catalog} query={route.query} only={route.only} />;
    case 'package':
      return <PackageView key={route.package} route={route} catalog={catalog} />;
    case 'problems':
      return (
        <ProblemsView package={route.package} severity={route.severity} isChecking={catalog.isChecking} />
      );
    case 'compare':
      return <CompareView package={route.package} />;
  }
}

function Bar({ catalog }: { catalog: CatalogAnswer | undefined }) {
  const route = useRoute();
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
      </p>
      <nav aria-label="Catalog">
        <a href={addressOf({ view: 'packages', query: '', only: '' })} {...current('packages')}>
          Packages
        </a>
        <a href={addressOf({ view: 'problems', package: '', severity: '' })} {...current('problems')}>
          Problems
          {problems > 0 && (
            <span class={`number ${(catalog?.errors ?? 0) > 0 ? 'error' : 'warning'}`}>
              {problems.toLocaleString('en')}
            </span>
          )}
        </a>
        {catalog?.comparedWith !== undefined && (
          <a href={addressOf({ view: 'compare', package: '' })} {...current('compare')}>
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
    const only = route.view === 'packages' ? route.only : '';
    go({ view: 'packages', query: value, only }, route.view === 'packages' ? 'replace' : 'push');
  };
  return (
    <search>
      <input
        ref={field}
        type="search"
        aria-label="Search packages and bundles"
        placeholder="Search packages and bundles  ( / )"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={query}
        onInput={search}
      />
    </search>
  );
}
