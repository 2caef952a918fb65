import { compareBytes } from '../../core/order.js';
import type { CatalogSet, ServedCatalog } from './stored-content.js';

/** Set of served catalogs, each replaced atomically; `markReady` makes it ready. */
export class HeldCatalogs implements CatalogSet {
  readonly #catalogs = new Map<string, ServedCatalog>();
  #list: readonly ServedCatalog[] = [];
  #expected: ReadonlySet<string> = new Set();
  #ready = false;

  list(): readonly ServedCatalog[] {
    return this.#list;
  }

  find(name: string): ServedCatalog | undefined {
    return this.#catalogs.get(name);
  }

  isExpected(name: string): boolean {
    return this.#expected.has(name);
  }

  /** Sets the names of the catalogs that will be served. */
  expect(names: Iterable<string>): void {
    this.#expected = new Set(names);
  }

  isReady(): boolean {
    return this.#ready;
  }

  markReady(): void {
    this.#ready = true;
  }

  /** Serves a catalog in place of the one of its name, whose content is closed after its last reader. */
  async put(catalog: ServedCatalog): Promise<void> {
    const before = this.#catalogs.get(catalog.name);
    this.#catalogs.set(catalog.name, catalog);
    this.#changed();
    if (before !== undefined && before.content !== catalog.content) await before.content.close();
  }

  /** Stops serving a catalog. */
  async remove(name: string): Promise<void> {
    const before = this.#catalogs.get(name);
    if (before === undefined) return;
    this.#catalogs.delete(name);
    this.#changed();
    await before.content.close();
  }

  /** Stops serving all catalogs. */
  async close(): Promise<void> {
    this.#ready = false;
    await Promise.all([...this.#catalogs.keys()].map((name) => this.remove(name)));
  }

  #changed(): void {
    this.#list = [...this.#catalogs.values()].sort((a, b) => compareBytes(a.name, b.name));
  }
}
