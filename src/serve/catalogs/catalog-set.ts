import { compareBytes } from '../../core/order.js';
import type { StoredContent } from './stored-content.js';

/** A served catalog. */
export interface ServedCatalog {
  name: string;
  content: StoredContent;
  labels: Readonly<Record<string, string>>;
  priority: number;
  /** Time of the last change of the content; default `storedAt`. */
  changedAt?: Date | undefined;
}

/** The presently served catalogs. */
export type CatalogSet = ReturnType<typeof createCatalogSet>;

/** Creates a set of served catalogs, each replaced atomically; `markReady` makes it ready. */
export function createCatalogSet() {
  const catalogs = new Map<string, ServedCatalog>();
  let sorted: readonly ServedCatalog[] = [];
  let expected: ReadonlySet<string> = new Set();
  let isReady = false;

  function sort(): void {
    sorted = [...catalogs.values()].sort((a, b) => compareBytes(a.name, b.name));
  }

  async function remove(name: string): Promise<void> {
    const before = catalogs.get(name);
    if (before === undefined) return;
    catalogs.delete(name);
    sort();
    await before.content.close();
  }

  return {
    remove,
    /** Returns the catalogs sorted by name. */
    list: () => sorted,
    find: (name: string) => catalogs.get(name),
    /** Reports whether a catalog without content will be served. */
    isExpected: (name: string) => expected.has(name),
    /** Reports whether all catalogs are served. */
    isReady: () => isReady,

    /** Sets the names of the catalogs that will be served. */
    expect(names: Iterable<string>): void {
      expected = new Set(names);
    },

    markReady(): void {
      isReady = true;
    },

    /** Serves a catalog in place of the one of its name, whose content is closed after its last reader. */
    async put(catalog: ServedCatalog): Promise<void> {
      const before = catalogs.get(catalog.name);
      catalogs.set(catalog.name, catalog);
      sort();
      if (before !== undefined && before.content !== catalog.content) await before.content.close();
    },

    /** Stops serving all catalogs. */
    async close(): Promise<void> {
      isReady = false;
      await Promise.all([...catalogs.keys()].map(remove));
    },
  };
}
