import { useEffect, useMemo, useState } from 'preact/hooks';
import type { CatalogAnswer, PackageSummary, SearchAnswer } from '../answers.js';
import { question, useAnswer } from './ask.js';
import { Badge, NamePath, PageHeading, ProblemBadges, count } from './parts.js';
import { addressOfPackage, go } from './route.js';

/** What the list may be narrowed to. */
const filters: Record<string, { label: string; has(one: PackageSummary): boolean }> = {
  problems: { label: 'with problems', has: ({ errors, warnings }) => errors + warnings > 0 },
  deprecated: { label: 'deprecated', has: ({ isDeprecated }) => isDeprecated },
  changed: { label: 'that differ', has: ({ change }) => change !== undefined },
};

/** The list of packages, or of what a search has found. */
export function PackagesView({
  catalog,
  query,
  only,
}: {
  catalog: CatalogAnswer;
  query: string;
  only: string;
}) {
  const found = useMemo(() => findPackages(catalog, query, only), [catalog, query, only]);
  const isNarrowed = query.trim() !== '' || only !== '';
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
        <label class="filter">
          Show{' '}
          <select
            value={only}
            onChange={(event) => go({ view: 'packages', query, only: event.currentTarget.value }, 'replace')}
          >
            <option value="">all packages</option>
            {Object.entries(filters)
              .filter(([name]) => name !== 'changed' || catalog.comparedWith !== undefined)
              .map(([name, { label }]) => (
                <option key={name} value={name}>
                  those {label}
                </option>
              ))}
          </select>
        </label>
      </div>
      {found.length === 0 && (
        <p class="note">{isNarrowed ? 'No package has these words.' : 'The catalog has no packages.'}</p>
      )}
      <ul class="cards">
        {found.map((one) => (
          <PackageCard key={one.name} package={one} run={catalog.run} />
        ))}
      </ul>
      <FoundBundles query={query.trim()} />
    </>
  );
}

function PackageCard({ package: one, run }: { package: PackageSummary; run: string }) {
  return (
    <li class="card">
      <a href={addressOfPackage(one.name)}>
        <PackageIcon name={one.name} hasIcon={one.hasIcon} run={run} />
        <span class="names">
          <strong>{one.displayName || one.name}</strong>
          <span class="id">{one.name}</span>
        </span>
        <span class="summary">{one.summary}</span>
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
  const address = `icon?${new URLSearchParams({ package: name, run }).toString()}`;
  return (
    <span class="icon">
      <img src={address} alt="" loading="lazy" decoding="async" onError={() => setBroken(true)} />
    </span>
  );
}

/** Bundles that have the words, asked for once the typing rests. */
function FoundBundles({ query }: { query: string }) {
  const [settled, setSettled] = useState(query);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(query), 150);
    return () => clearTimeout(timer);
  }, [query]);
  const { value } = useAnswer<SearchAnswer>(
    settled.length >= 2 && query.length >= 2 ? question('search', { q: settled }) : undefined,
  );
  if (value === undefined || value.total === 0) return null;
  const { bundles, total } = value;
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
              <strong>{one.bundle}</strong>
            </a>
            <span class="id">
              <NamePath names={[one.package, one.channel]} />
            </span>
            <code class="image">{one.image}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}

function findPackages({ packages }: CatalogAnswer, query: string, only: string): PackageSummary[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const filter = Object.hasOwn(filters, only) ? filters[only] : undefined;
  const found = packages.filter((one) => {
    if (filter?.has(one) === false) return false;
    const text = `${one.name} ${one.displayName} ${one.provider} ${one.summary}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  if (words.length === 0) return found;
  // Who is called so comes before who only speaks of it.
  const rank = (one: PackageSummary): number =>
    words.every((word) => `${one.name} ${one.displayName}`.toLowerCase().includes(word)) ? 0 : 1;
  return found.sort((a, b) => rank(a) - rank(b));
}
