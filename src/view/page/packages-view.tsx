import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CatalogAnswer, PackageSummary, SearchAnswer, SearchMatch } from '../answers.js';
import { question, useAnswer } from './ask.js';
import { Badge, NamePath, PageHeading, ProblemBadges, count } from './parts.js';
import { staticPage } from './static-answers.js';
import { type PackagesRoute, addressOf, addressOfPackage, allPackages, go } from './route.js';

/** Cards that are in the document before one scrolls to the last of them. */
const firstCards = 400;

/** What the list may be narrowed to. */
const filters: Record<string, { label: string; has(one: PackageSummary): boolean }> = {
  problems: { label: 'with problems', has: ({ errors, warnings }) => errors + warnings > 0 },
  deprecated: { label: 'deprecated', has: ({ isDeprecated }) => isDeprecated },
  current: { label: 'not deprecated', has: ({ isDeprecated }) => !isDeprecated },
  changed: { label: 'that differ', has: ({ change }) => change !== undefined },
};

/** Orders of the list; the first is that of the names. */
const orders: Record<string, { label: string; compare(a: PackageSummary, b: PackageSummary): number }> = {
  '': { label: 'name', compare: () => 0 },
  problems: {
    label: 'problems',
    compare: (a, b) => b.errors - a.errors || b.warnings - a.warnings,
  },
  provider: { label: 'provider', compare: (a, b) => compareTexts(a.provider, b.provider) },
  bundles: { label: 'number of bundles', compare: (a, b) => b.bundles - a.bundles },
};

/** The list of packages, or of what a search has found. */
export function PackagesView({ catalog, route }: { catalog: CatalogAnswer; route: PackagesRoute }) {
  const { query, only, category, provider, openshift } = route;
  const search = useSearch(query.trim());
  const found = useFoundPackages(catalog, route);
  const isNarrowed = [query.trim(), only, category, provider, openshift].some(Boolean);
  return (
    <>
      <div class="heading">
        <PageHeading title="Packages" />
        <p class="sums" role="status">
          {isNarrowed
            ? `${found.length} of ${count(catalog.packages.length, 'package')}`
            : [
                count(catalog.packages.length, 'package'),
                count(catalog.channels, 'channel'),
                count(catalog.bundles, 'bundle'),
              ].join(' · ')}
        </p>
      </div>
      <Filters catalog={catalog} route={route} isNarrowed={isNarrowed} />
      {found.length === 0 && (
        <p class="note">{isNarrowed ? 'No package matches.' : 'The catalog has no packages.'}</p>
      )}
      <Cards found={found} run={catalog.run} words={wordsOf(query)} />
      <FoundBundles answer={search} words={wordsOf(query)} />
    </>
  );
}

function Filters({
  catalog: { packages, comparedWith },
  route,
  isNarrowed,
}: {
  catalog: CatalogAnswer;
  route: PackagesRoute;
  isNarrowed: boolean;
}) {
  const choices = useMemo(() => choicesOf(packages), [packages]);
  const change = (next: Partial<PackagesRoute>): void =>
    go({ view: 'packages', ...route, ...next }, 'replace');
  const shown = Object.entries(filters)
    .filter(([name]) => name !== 'changed' || comparedWith !== undefined)
    .map(([value, { label }]) => ({ value, label: `those ${label}` }));
  const asChoices = (values: string[]) => values.map((value) => ({ value, label: value }));
  return (
    <div class="filters" role="group" aria-label="Filters">
      <Choice
        label="Show"
        all="all packages"
        choices={shown}
        value={route.only}
        onChange={(only) => change({ only })}
      />
      <Choice
        label="Category"
        all="any"
        choices={asChoices(choices.categories)}
        value={route.category}
        onChange={(category) => change({ category })}
      />
      <Choice
        label="Provider"
        all="any"
        choices={asChoices(choices.providers)}
        value={route.provider}
        onChange={(provider) => change({ provider })}
      />
      <Choice
        label="OpenShift"
        all="any"
        choices={asChoices(choices.versions)}
        value={route.openshift}
        onChange={(openshift) => change({ openshift })}
      />
      <Choice
        label="Sort by"
        all="name"
        choices={Object.entries(orders).flatMap(([value, { label }]) =>
          value === '' ? [] : { value, label },
        )}
        value={route.sort}
        onChange={(sort) => change({ sort })}
      />
      <a href={addressOf({ ...route, view: 'images', package: '', scope: '' })}>Images of these</a>
      {isNarrowed && (
        <button type="button" class="quiet" onClick={() => go({ ...allPackages, sort: route.sort })}>
          Clear
        </button>
      )}
    </div>
  );
}

function Choice({
  label,
  all,
  choices,
  value,
  onChange,
}: {
  label: string;
  all: string;
  choices: { value: string; label: string }[];
  value: string;
  onChange: (value: string) => void;
}) {
  if (choices.length === 0 && value === '') return null;
  // What the address says stays a choice, even if no package has it.
  const isKnown = value === '' || choices.some((one) => one.value === value);
  return (
    <label class="filter">
      {label}{' '}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{all}</option>
        {(isKnown ? choices : [...choices, { value, label: value }]).map((one) => (
          <option key={one.value} value={one.value}>
            {one.label}
          </option>
        ))}
      </select>
    </label>
  );
}

interface Found {
  package: PackageSummary;
  matches: SearchMatch[];
}

/** The cards; as many as were scrolled to. */
function Cards({ found, run, words }: { found: Found[]; run: string; words: string[] }) {
  const [limit, setLimit] = useState(firstCards);
  const end = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (end.current === null) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setLimit((before) => before + firstCards);
      },
      { rootMargin: '800px' },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [found, limit]);
  return (
    <>
      <ul class="cards">
        {found.slice(0, limit).map((one) => (
          <PackageCard key={one.package.name} found={one} run={run} words={words} />
        ))}
      </ul>
      {found.length > limit && (
        <button ref={end} type="button" class="more" onClick={() => setLimit(limit + firstCards)}>
          Show more ({limit.toLocaleString('en')} of {found.length.toLocaleString('en')})
        </button>
      )}
    </>
  );
}

function PackageCard({
  found: { package: one, matches },
  run,
  words,
}: {
  found: Found;
  run: string;
  words: string[];
}) {
  return (
    <li class="card">
      <a href={addressOfPackage(one.name)}>
        <PackageIcon name={one.name} hasIcon={one.hasIcon} run={run} />
        <span class="names">
          <strong title={one.displayName || one.name}>
            <Marked text={one.displayName || one.name} words={words} />
          </strong>
          <span class="id" title={one.name}>
            <Marked text={one.name} words={words} />
          </span>
        </span>
        {matches.length === 0 ? (
          <span class="summary">{one.summary}</span>
        ) : (
          <span class="summary matches">
            {matches.map(({ field, text }) => (
              <span key={`${field} ${text}`}>
                <small>{field}</small> <Marked text={text} words={words} />
              </span>
            ))}
          </span>
        )}
        <span class="line">
          {one.version !== '' && <span class="version">{one.version}</span>}
          {one.defaultChannel !== '' && <span>{one.defaultChannel}</span>}
          <span>{count(one.channels, 'channel')}</span>
          <span>{count(one.bundles, 'bundle')}</span>
        </span>
        <span class="badges">
          {one.change !== undefined && (
            <Badge kind={one.change}>{one.change === 'added' ? 'new' : 'changed'}</Badge>
          )}
          {one.isDeprecated && <Badge kind="deprecated">deprecated</Badge>}
          <ProblemBadges errors={one.errors} warnings={one.warnings} />
        </span>
      </a>
    </li>
  );
}

/** A text with the words of the search marked in it. */
function Marked({ text, words }: { text: string; words: string[] }) {
  const lower = text.toLowerCase();
  const parts: { text: string; isMatch: boolean }[] = [];
  let from = 0;
  // Letters that change their length in lower case would shift the marks.
  while (words.length > 0 && lower.length === text.length) {
    let [at, length] = [-1, 0];
    for (const word of words) {
      const place = lower.indexOf(word, from);
      if (place >= 0 && (at < 0 || place < at)) [at, length] = [place, word.length];
    }
    if (at < 0) break;
    parts.push({ text: text.slice(from, at), isMatch: false });
    parts.push({ text: text.slice(at, at + length), isMatch: true });
    from = at + length;
  }
  parts.push({ text: text.slice(from), isMatch: false });
  return (
    <>
      {parts.map((part, at) =>
        part.isMatch ? <mark key={at}>{part.text}</mark> : <Fragment key={at}>{part.text}</Fragment>,
      )}
    </>
  );
}

/** The icon of a package, or its first letter. */
export function PackageIcon({ name, hasIcon, run }: { name: string; hasIcon: boolean; run: string }) {
  const [isBroken, setBroken] = useState(false);
  if (!hasIcon || isBroken) {
    return (
      <span class="icon letter" aria-hidden="true">
        {[...name][0]?.toUpperCase() ?? '?'}
      </span>
    );
  }
  const address =
    staticPage?.files[name]?.icon ?? `icon?${new URLSearchParams({ package: name, run }).toString()}`;
  return (
    <span class="icon">
      <img src={address} alt="" loading="lazy" decoding="async" onError={() => setBroken(true)} />
    </span>
  );
}

/** The packages that a search and filters find. */
export function useFoundPackages(catalog: CatalogAnswer, route: PackagesRoute): Found[] {
  const { query, only, category, provider, openshift, sort } = route;
  const search = useSearch(query.trim());
  return useMemo(
    () => findPackages(catalog, query, search, route),
    [catalog, query, search, only, category, provider, openshift, sort],
  );
}

/** What the server finds, asked for once the typing rests; what was found before stays until then. */
function useSearch(query: string): SearchAnswer | undefined {
  const [settled, setSettled] = useState(query);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(query), 120);
    return () => clearTimeout(timer);
  }, [query]);
  const { value } = useAnswer<SearchAnswer>(
    settled !== '' && query !== '' ? question('search', { q: settled }) : undefined,
  );
  // An answer to other words would hide what the new ones match.
  return settled === query ? value : undefined;
}

/** Bundles that have the words. */
function FoundBundles({ answer, words }: { answer: SearchAnswer | undefined; words: string[] }) {
  if (answer === undefined || answer.total === 0) return null;
  const { bundles, total } = answer;
  return (
    <section aria-labelledby="found-bundles">
      <h2 id="found-bundles">
        Bundles{' '}
        <small>
          {total > bundles.length ? `the first ${bundles.length} of ${count(total, 'bundle')}` : total}
        </small>
      </h2>
      <ul class="rows">
        {bundles.map((one) => (
          <li key={`${one.package}/${one.bundle}`}>
            <a href={addressOfPackage(one.package, one.channel, one.bundle)}>
              <strong>
                <Marked text={one.bundle} words={words} />
              </strong>
            </a>
            <span class="id">
              <NamePath names={[one.package, one.channel]} />
            </span>
            {one.match !== undefined && <small>{one.match.field}</small>}
            <code class="image">
              <Marked text={one.match?.text ?? one.image} words={words} />
            </code>
          </li>
        ))}
      </ul>
    </section>
  );
}

function wordsOf(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Packages that match; before the server has answered, those that match by what the list shows. */
function findPackages(
  { packages }: CatalogAnswer,
  query: string,
  search: SearchAnswer | undefined,
  { only, category, provider, openshift, sort }: PackagesRoute,
): Found[] {
  const filter = Object.hasOwn(filters, only) ? filters[only] : undefined;
  const minor = /^4\.(\d{1,3})$/.exec(openshift)?.[1];
  const isKept = (one: PackageSummary): boolean =>
    filter?.has(one) !== false &&
    (category === '' || one.categories.includes(category)) &&
    (provider === '' || one.provider === provider) &&
    (minor === undefined || allows(one, Number(minor)));
  const words = wordsOf(query);
  let found: Found[];
  if (words.length === 0 || search === undefined) {
    found = packages
      .filter((one) => {
        const text = `${one.name} ${one.displayName} ${one.provider} ${one.summary}`.toLowerCase();
        return isKept(one) && words.every((word) => text.includes(word));
      })
      .map((one) => ({ package: one, matches: [] }));
  } else {
    const byName = new Map(packages.map((one) => [one.name, one]));
    found = search.packages.flatMap(({ package: name, matches }) => {
      const one = byName.get(name);
      return one === undefined || !isKept(one) ? [] : [{ package: one, matches }];
    });
  }
  const order = Object.hasOwn(orders, sort) ? orders[sort] : undefined;
  if (order !== undefined && sort !== '') found.sort((a, b) => order.compare(a.package, b.package));
  return found;
}

function allows({ openshift }: PackageSummary, minor: number): boolean {
  const { min = 0, max = Infinity } = openshift ?? {};
  return minor >= min && minor <= max;
}

/** What packages may be narrowed to. */
function choicesOf(packages: readonly PackageSummary[]): {
  categories: string[];
  providers: string[];
  versions: string[];
} {
  const sorted = (texts: Iterable<string>): string[] =>
    [...new Set(texts)].filter(Boolean).sort(compareTexts);
  const limits = packages.flatMap(({ openshift }) => [openshift?.min, openshift?.max]);
  const minors = limits.filter((minor) => minor !== undefined);
  // One more than any limit, for what has none.
  const [first, last] = [Math.min(...minors), Math.max(...minors) + 1];
  const versions = minors.length === 0 ? [] : Array.from({ length: last - first + 1 }, (_, at) => last - at);
  return {
    categories: sorted(packages.flatMap(({ categories }) => categories)),
    providers: sorted(packages.map(({ provider }) => provider)),
    versions: versions.map((minor) => `4.${minor}`),
  };
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

function compareTexts(a: string, b: string): number {
  return collator.compare(a, b);
}
