import { compareBytes } from '../../core/order.js';
import { pushTo } from '../../core/groups.js';
import { hasPackage } from './predicates.js';
import type { Predicate } from './predicates.js';
import {
  type CatalogKey,
  type ResolverCatalog,
  type ResolverEntry,
  existingCatalog,
} from './resolver-types.js';
import { getApiKey } from '../../model/csv.js';

/** Reports whether two keys name the same catalog. */
export function isSameCatalogKey(a: CatalogKey, b: CatalogKey): boolean {
  return a.name === b.name && a.namespace === b.namespace;
}

/** A catalog with indexes of its entries. */
interface IndexedCatalog extends ResolverCatalog {
  byName: Map<string, ResolverEntry[]>;
  byPackage: Map<string, ResolverEntry[]>;
  byApi: Map<string, ResolverEntry[]>;
}

const indexes = new WeakMap<ResolverCatalog, IndexedCatalog>();

function indexCatalog(catalog: ResolverCatalog): IndexedCatalog {
  const known = indexes.get(catalog);
  if (known !== undefined) return known;
  const indexed: IndexedCatalog = {
    ...catalog,
    byName: new Map(),
    byPackage: new Map(),
    byApi: new Map(),
  };
  for (const entry of catalog.entries) {
    pushTo(indexed.byName, entry.name, entry);
    const packages = new Set([entry.package, ...entry.packages.map(({ name }) => name)]);
    for (const name of packages) pushTo(indexed.byPackage, name, entry);
    for (const api of new Set(entry.apis.map(getApiKey))) pushTo(indexed.byApi, api, entry);
  }
  indexes.set(catalog, indexed);
  return indexed;
}

/** Returns the entries of a package in a catalog, in their order. */
export function listPackageEntries(catalog: ResolverCatalog, name: string): readonly ResolverEntry[] {
  return indexCatalog(catalog).byPackage.get(name) ?? [];
}

/** The catalogs and installed versions that one namespace sees. */
export class ResolverSources {
  readonly #catalogs: readonly IndexedCatalog[];
  readonly #namespace: string;

  constructor(catalogs: readonly ResolverCatalog[], namespace: string) {
    this.#catalogs = catalogs.map(indexCatalog);
    this.#namespace = namespace;
  }

  /** Returns entries of one catalog; of all of them for an empty key. */
  list(key: CatalogKey): readonly ResolverEntry[] {
    if (key.name === '' && key.namespace === '')
      return this.#sorted(undefined, '').flatMap(({ entries }) => entries);
    return this.#find(key)?.entries ?? [];
  }

  /** Returns entries of a package as `list` does. */
  listPackage(key: CatalogKey, name: string): readonly ResolverEntry[] {
    if (key.name === '' && key.namespace === '')
      return this.#sorted(undefined, '').flatMap(({ byPackage }) => byPackage.get(name) ?? []);
    return this.#find(key)?.byPackage.get(name) ?? [];
  }

  /** Returns entries of one catalog with a name, in a channel unless it is empty. */
  listNamed(key: CatalogKey, name: string, channel = ''): ResolverEntry[] {
    const named = this.#find(key)?.byName.get(name) ?? [];
    return channel === '' ? named : named.filter((entry) => entry.channel === channel);
  }

  /**
   * Returns the entries of all channels that have a match, preferred catalogs first: installed versions, `asking`, then
   * by priority, namespace and name.
   */
  listAround(predicate: Predicate, asking: CatalogKey): ResolverEntry[] {
    return this.#sorted(asking, this.#namespace).flatMap((catalog) => {
      const matches = findMatches(catalog, predicate);
      if (catalog.key.name === existingCatalog) {
        const names = new Set(matches.map(({ name }) => name));
        return catalog.entries.filter(({ name }) => names.has(name));
      }
      const around = new Set<ResolverEntry>();
      const channels = new Map(matches.map((entry) => [`${entry.package}/${entry.channel}`, entry]));
      for (const { package: packageName, channel } of channels.values())
        for (const entry of catalog.byPackage.get(packageName) ?? [])
          if (entry.channel === channel && hasPackage(entry, packageName)) around.add(entry);
      return [...around];
    });
  }

  #find(key: CatalogKey): IndexedCatalog | undefined {
    return this.#catalogs.find((catalog) => isSameCatalogKey(catalog.key, key));
  }

  #sorted(asking: CatalogKey | undefined, namespace: string): IndexedCatalog[] {
    const rank = ({ key }: IndexedCatalog): number => {
      if (key.name === existingCatalog && key.namespace === namespace) return 0;
      return asking !== undefined && isSameCatalogKey(key, asking) ? 1 : 2;
    };
    const isElsewhere = ({ key }: IndexedCatalog): number => Number(key.namespace !== namespace);
    return [...this.#catalogs].sort(
      (a, b) =>
        rank(a) - rank(b) ||
        b.priority - a.priority ||
        isElsewhere(a) - isElsewhere(b) ||
        compareBytes(a.key.name, b.key.name) ||
        compareBytes(a.key.namespace, b.key.namespace),
    );
  }
}

function findMatches(catalog: IndexedCatalog, { index, test }: Predicate): ResolverEntry[] {
  const entries =
    index === undefined
      ? catalog.entries
      : 'api' in index
        ? (catalog.byApi.get(getApiKey(index.api)) ?? [])
        : (catalog.byPackage.get(index.package) ?? []);
  return entries.filter(test);
}
