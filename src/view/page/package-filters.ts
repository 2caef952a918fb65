import type { CatalogOverview, PackageSummary } from '../responses.js';
import type { PackagesRoute } from './route.js';

interface Option {
  value: string;
  label: string;
}

/** Filter of the list of packages. */
interface PackageFilter {
  field: 'only' | 'category' | 'provider' | 'openshift';
  label: string;
  /** Label of the option without a filter. */
  all: string;
  options(catalog: CatalogOverview): Option[];
  /** Unknown values match all packages. */
  keeps(summary: PackageSummary, value: string, catalog: CatalogOverview): boolean;
}

const states: Record<string, { label: string; has(summary: PackageSummary): boolean }> = {
  problems: { label: 'with problems', has: ({ errors, warnings }) => errors + warnings > 0 },
  deprecated: { label: 'deprecated', has: ({ isDeprecated }) => isDeprecated },
  current: { label: 'not deprecated', has: ({ isDeprecated }) => !isDeprecated },
  changed: { label: 'with differences', has: ({ change }) => change !== undefined },
};

export const packageFilters: readonly PackageFilter[] = [
  {
    field: 'only',
    label: 'Show',
    all: 'all packages',
    options: ({ comparedWith }) =>
      Object.entries(states)
        .filter(([value]) => value !== 'changed' || comparedWith !== undefined)
        .map(([value, { label }]) => ({ value, label })),
    keeps: (summary, value) => !Object.hasOwn(states, value) || states[value]?.has(summary) === true,
  },
  {
    field: 'category',
    label: 'Category',
    all: 'any',
    options: ({ packages }) => toOptions(packages.flatMap(({ categories }) => categories)),
    keeps: ({ categories }, value) => categories.includes(value),
  },
  {
    field: 'provider',
    label: 'Provider',
    all: 'any',
    options: ({ packages }) => toOptions(packages.map(({ provider }) => provider)),
    keeps: ({ provider }, value) => provider === value,
  },
  {
    field: 'openshift',
    label: 'OpenShift',
    all: 'any',
    options: ({ openshift }) => openshift.map((version) => ({ value: version, label: version })),
    keeps: ({ openshift: { min, max } = {} }, value, { openshift: versions }) => {
      const place = versions.indexOf(value);
      if (place < 0) return true;
      const isBelow = min !== undefined && place > versions.indexOf(min);
      const isAbove = max !== undefined && place < versions.indexOf(max);
      return !isBelow && !isAbove;
    },
  },
];

/** Sort orders by their value in the route; the default is by name. */
const orders: Record<string, { label: string; compare(a: PackageSummary, b: PackageSummary): number }> = {
  '': { label: 'name', compare: () => 0 },
  problems: { label: 'problems', compare: (a, b) => b.errors - a.errors || b.warnings - a.warnings },
  provider: { label: 'provider', compare: (a, b) => collator.compare(a.provider, b.provider) },
  bundles: { label: 'number of bundles', compare: (a, b) => b.bundles - a.bundles },
};

export const orderOptions: readonly Option[] = Object.entries(orders).map(([value, { label }]) => ({
  value,
  label,
}));

/** Reports whether a package matches all filters of a route. */
export function keepsPackage(
  summary: PackageSummary,
  route: PackagesRoute,
  catalog: CatalogOverview,
): boolean {
  return packageFilters.every(
    ({ field, keeps }) => route[field] === '' || keeps(summary, route[field], catalog),
  );
}

/** Returns the comparison of a sort order; an unknown one keeps the order. */
export function comparePackages(sort: string): (a: PackageSummary, b: PackageSummary) => number {
  return (Object.hasOwn(orders, sort) ? orders[sort] : orders[''])?.compare ?? (() => 0);
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

function toOptions(texts: readonly string[]): Option[] {
  const sorted = [...new Set(texts)].filter(Boolean).sort((a, b) => collator.compare(a, b));
  return sorted.map((text) => ({ value: text, label: text }));
}
