import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CatalogOverview, PackageSummary, SearchResult, SearchMatch } from '../responses.js';
import { toApiUrl, useResponse } from './requests.js';
import { Badge, Choice, NamePath, PageHeading, ProblemBadges, formatCount } from './parts.js';
import { exportedPage } from './exported.js';
import { comparePackages, keepsPackage, orderOptions, packageFilters } from './package-filters.js';
import { type PackagesRoute, getUrl, getPackageUrl, allPackages, go } from './route.js';

/** Cards of the first paint: more than any screen shows. */
const firstCards = 60;
/** Cards that are added when the last one is scrolled into view. */
const cardsPerStep = 400;

/** List of packages, or results of a search. */
export function PackagesView({ catalog, route }: { catalog: CatalogOverview; route: PackagesRoute }) {
  const { query } = route;
  const search = useSearch(query.trim());
  const matches = useFoundPackages(catalog, route);
  const isNarrowed = query.trim() !== '' || packageFilters.some(({ field }) => route[field] !== '');
  const isPending = query.trim() !== '' && search === undefined;
  const isEmpty = matches.length === 0 && !isPending && (search?.total ?? 0) === 0;
  return (
    <>
      <div class="heading">
        <PageHeading title="Packages" />
        <p class="sums" role="status">
          {isNarrowed
            ? `${matches.length} of ${formatCount(catalog.packages.length, 'package')}`
            : [
                formatCount(catalog.packages.length, 'package'),
                formatCount(catalog.channels, 'channel'),
                formatCount(catalog.bundles, 'bundle'),
              ].join(' · ')}
        </p>
      </div>
      <Filters catalog={catalog} route={route} isNarrowed={isNarrowed} />
      {isEmpty && <p class="note">{isNarrowed ? 'No matches.' : 'No packages in this catalog.'}</p>}
      <Cards matches={matches} run={catalog.run} words={splitWords(query)} />
      <BundleResults result={search} words={splitWords(query)} />
    </>
  );
}

function Filters(props: { catalog: CatalogOverview; route: PackagesRoute; isNarrowed: boolean }) {
  const { catalog, route, isNarrowed } = props;
  const filters = useMemo(
    () => packageFilters.map((filter) => ({ ...filter, options: filter.options(catalog) })),
    [catalog],
  );
  const change = (next: Partial<PackagesRoute>): void =>
    go({ view: 'packages', ...route, ...next }, 'replace');
  const [byName, ...otherOrders] = orderOptions;
  return (
    <div class="filters" role="group" aria-label="Filters">
      {filters
        .filter(({ field, options }) => options.length > 0 || route[field] !== '')
        .map(({ field, label, all, options }) => (
          <Choice
            key={field}
            label={label}
            all={all}
            options={options}
            value={route[field]}
            onChange={(value) => change({ [field]: value })}
          />
        ))}
      <Choice
        label="Sort by"
        all={byName?.label ?? ''}
        options={otherOrders}
        value={route.sort}
        onChange={(sort) => change({ sort })}
      />
      <a href={getUrl({ ...route, view: 'images', package: '', scope: '' })}>Images of these</a>
      {isNarrowed && (
        <button type="button" class="quiet" onClick={() => go({ ...allPackages, sort: route.sort })}>
          Clear
        </button>
      )}
    </div>
  );
}

interface FoundPackage {
  package: PackageSummary;
  matches: SearchMatch[];
}

/** Cards of packages, more when scrolled to the end. */
function Cards({ matches, run, words }: { matches: FoundPackage[]; run: string; words: string[] }) {
  const [limit, setLimit] = useState(firstCards);
  const end = useRef<HTMLButtonElement>(null);
  // Paint the visible cards first.
  useEffect(() => {
    const timer = setTimeout(() => setLimit((before) => Math.max(before, cardsPerStep)));
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    if (end.current === null) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setLimit((before) => before + cardsPerStep);
      },
      { rootMargin: '800px' },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [matches, limit]);
  return (
    <>
      <ul class="cards">
        {matches.slice(0, limit).map((item) => (
          <PackageCard key={item.package.name} match={item} run={run} words={words} />
        ))}
      </ul>
      {matches.length > limit && (
        <button ref={end} type="button" class="more" onClick={() => setLimit(limit + cardsPerStep)}>
          Show more ({limit.toLocaleString('en')} of {matches.length.toLocaleString('en')})
        </button>
      )}
    </>
  );
}

function PackageCard(props: { match: FoundPackage; run: string; words: string[] }) {
  const {
    match: { package: packageSummary, matches },
    run,
    words,
  } = props;
  return (
    <li class="card">
      <a href={getPackageUrl(packageSummary.name)}>
        <PackageIconView name={packageSummary.name} hasIcon={packageSummary.hasIcon} run={run} />
        <span class="names">
          <strong title={packageSummary.displayName || packageSummary.name}>
            <Marked text={packageSummary.displayName || packageSummary.name} words={words} />
          </strong>
          <span class="id" title={packageSummary.name}>
            <Marked text={packageSummary.name} words={words} />
          </span>
        </span>
        {matches.length === 0 ? (
          <span class="summary">{packageSummary.summary}</span>
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
          {packageSummary.version !== '' && <span class="version">{packageSummary.version}</span>}
          {packageSummary.defaultChannel !== '' && <span>{packageSummary.defaultChannel}</span>}
          <span>{formatCount(packageSummary.channels, 'channel')}</span>
          <span>{formatCount(packageSummary.bundles, 'bundle')}</span>
        </span>
        <span class="badges">
          {packageSummary.change !== undefined && (
            <Badge kind={packageSummary.change}>
              {packageSummary.change === 'added' ? 'new' : 'changed'}
            </Badge>
          )}
          {packageSummary.isDeprecated && <Badge kind="deprecated">deprecated</Badge>}
          <ProblemBadges errors={packageSummary.errors} warnings={packageSummary.warnings} />
        </span>
      </a>
    </li>
  );
}

/** Text with the words of the search marked. */
function Marked({ text, words }: { text: string; words: string[] }) {
  const lower = text.toLowerCase();
  const parts: { text: string; isMatch: boolean }[] = [];
  let from = 0;
  // Do not mark texts whose length changes in lower case: offsets would differ.
  while (words.length > 0 && lower.length === text.length) {
    let [index, length] = [-1, 0];
    for (const word of words) {
      const start = lower.indexOf(word, from);
      if (start >= 0 && (index < 0 || start < index)) [index, length] = [start, word.length];
    }
    if (index < 0) break;
    parts.push({ text: text.slice(from, index), isMatch: false });
    parts.push({ text: text.slice(index, index + length), isMatch: true });
    from = index + length;
  }
  parts.push({ text: text.slice(from), isMatch: false });
  return (
    <>
      {parts.map((part, index) =>
        part.isMatch ? <mark key={index}>{part.text}</mark> : <Fragment key={index}>{part.text}</Fragment>,
      )}
    </>
  );
}

/** Icon of a package, or its first letter. */
export function PackageIconView({ name, hasIcon, run }: { name: string; hasIcon: boolean; run: string }) {
  const [isBroken, setBroken] = useState(false);
  if (!hasIcon || isBroken) {
    return (
      <span class="icon letter" aria-hidden="true">
        {[...name][0]?.toUpperCase() ?? '?'}
      </span>
    );
  }
  const url =
    exportedPage?.files[name]?.icon ?? `icon?${new URLSearchParams({ package: name, run }).toString()}`;
  return (
    <span class="icon">
      <img src={url} alt="" loading="lazy" decoding="async" onError={() => setBroken(true)} />
    </span>
  );
}

/** Returns the packages that match the search and the filters of a route. */
export function useFoundPackages(catalog: CatalogOverview, route: PackagesRoute): FoundPackage[] {
  const { query, only, category, provider, openshift, sort } = route;
  const search = useSearch(query.trim());
  return useMemo(
    () => findPackages(catalog, search, route),
    [catalog, query, search, only, category, provider, openshift, sort],
  );
}

/** Requests the results of a search, after a pause in typing. */
function useSearch(query: string): SearchResult | undefined {
  const [settled, setSettled] = useState(query);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(query), 120);
    return () => clearTimeout(timer);
  }, [query]);
  const { value } = useResponse<SearchResult>(
    settled !== '' && query !== '' ? toApiUrl('search', { q: settled }) : undefined,
  );
  // Results of a previous query are not those of this one.
  return settled === query ? value : undefined;
}

function BundleResults({ result, words }: { result: SearchResult | undefined; words: string[] }) {
  if (result === undefined || result.total === 0) return null;
  const { bundles, total } = result;
  return (
    <section aria-labelledby="found-bundles">
      <h2 id="found-bundles">
        Bundles{' '}
        <small>
          {total > bundles.length ? `the first ${bundles.length} of ${formatCount(total, 'bundle')}` : total}
        </small>
      </h2>
      <ul class="rows">
        {bundles.map((item) => (
          <li key={`${item.package}/${item.bundle}`}>
            <a href={getPackageUrl(item.package, item.channel, item.bundle)}>
              <strong>
                <Marked text={item.bundle} words={words} />
              </strong>
            </a>
            <span class="id">
              <NamePath names={[item.package, item.channel]} />
            </span>
            {item.match !== undefined && <small>{item.match.field}</small>}
            <code class="image">
              <Marked text={item.match?.text ?? item.image} words={words} />
            </code>
          </li>
        ))}
      </ul>
    </section>
  );
}

function splitWords(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Returns the matching packages; until the server responds, those whose visible fields match. */
function findPackages(
  catalog: CatalogOverview,
  search: SearchResult | undefined,
  route: PackagesRoute,
): FoundPackage[] {
  const { packages } = catalog;
  const words = splitWords(route.query);
  let results: FoundPackage[];
  if (words.length === 0 || search === undefined) {
    results = packages
      .filter(({ name, displayName, provider, summary }) => {
        const text = `${name} ${displayName} ${provider} ${summary}`.toLowerCase();
        return words.every((word) => text.includes(word));
      })
      .map((summary) => ({ package: summary, matches: [] }));
  } else {
    const byName = new Map(packages.map((summary) => [summary.name, summary]));
    results = search.packages.flatMap(({ package: name, matches }) => {
      const summary = byName.get(name);
      return summary === undefined ? [] : [{ package: summary, matches }];
    });
  }
  const kept = results.filter((match) => keepsPackage(match.package, route, catalog));
  // A stable sort: results keep their rank in the default order.
  const compare = comparePackages(route.sort);
  return kept.sort((a, b) => compare(a.package, b.package));
}
