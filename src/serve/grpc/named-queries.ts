import { quoteGo } from '../../document/go-json.js';
import { openContentCatalog } from '../catalogs/content-catalog.js';
import type { CatalogSet, ServedCatalog } from '../catalogs/catalog-set.js';
import { type CatalogQueriesOptions, openCatalogQueries } from './catalog-queries.js';
import type { RegistryQueries } from './registry-queries.js';
import { StatusError } from './transport/status.js';

/** Queries that stay open until they are released. */
interface QueriesLease {
  queries: RegistryQueries;
  release(): void;
}

/** Queries by the `:authority` of a call. */
export interface RegistryQueriesSet {
  /** Throws StatusError NOT_FOUND for an unknown host, UNAVAILABLE while its catalog has no content. */
  lease(authority: string): Promise<QueriesLease>;
}

interface NamedQueriesOptions extends Pick<CatalogQueriesOptions, 'temporaryDirectory' | 'now' | 'logger'> {
  catalogs: CatalogSet;
  /** Catalogs to keep open between calls; default 8. */
  maxOpen?: number | undefined;
}

interface Opened {
  hash: string;
  queries: Promise<RegistryQueries>;
  close: () => Promise<void>;
  users: number;
  isReplaced: boolean;
}

/**
 * Queries of served catalogs by host name: `NAME` and `NAME.…`, or any host for a single catalog. A catalog is opened with
 * its first call, and again when its content changes; calls in progress keep the old content.
 */
export class NamedQueries implements RegistryQueriesSet {
  readonly #options: NamedQueriesOptions;
  readonly #maxOpen: number;
  /** By catalog name, least recently used first. */
  readonly #opened = new Map<string, Opened>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: NamedQueriesOptions) {
    this.#options = options;
    this.#maxOpen = options.maxOpen ?? 8;
  }

  async lease(authority: string): Promise<QueriesLease> {
    const served = findServed(authority, this.#options.catalogs);
    let opened = this.#opened.get(served.name);
    if (opened?.hash !== served.content.hash) {
      if (opened !== undefined) this.#replace(served.name, opened);
      opened = this.#open(served);
    }
    this.#opened.delete(served.name);
    this.#opened.set(served.name, opened);
    const leased = opened;
    leased.users++;
    this.#closeUnused();
    const release = (): void => {
      leased.users--;
      if (leased.isReplaced && leased.users === 0) this.#close(leased);
      else this.#closeUnused();
    };
    try {
      return { queries: await leased.queries, release: once(release) };
    } catch (error) {
      this.#replace(served.name, leased);
      release();
      throw error;
    }
  }

  /** Closes unused catalogs; others close when they are released. */
  async close(): Promise<void> {
    for (const [name, opened] of this.#opened) this.#replace(name, opened);
    await Promise.all(this.#closing);
  }

  #open({ name, content }: ServedCatalog): Opened {
    const catalog = openContentCatalog(name, content);
    const queries = openCatalogQueries(catalog, this.#options);
    const close = async (): Promise<void> => {
      await (await queries.catch(() => undefined))?.close();
      await catalog.close();
    };
    return { hash: content.hash, queries, close, users: 0, isReplaced: false };
  }

  #replace(name: string, opened: Opened): void {
    if (this.#opened.get(name) === opened) this.#opened.delete(name);
    if (opened.isReplaced) return;
    opened.isReplaced = true;
    if (opened.users === 0) this.#close(opened);
  }

  #closeUnused(): void {
    for (const [name, opened] of this.#opened) {
      if (this.#opened.size <= this.#maxOpen) return;
      if (opened.users === 0) this.#replace(name, opened);
    }
  }

  #close(opened: Opened): void {
    const closing = opened.close().catch(() => undefined);
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}

/** Finds the catalog with the longest name that the host starts with; names may have dots. */
function findServed(authority: string, catalogs: CatalogSet): ServedCatalog {
  const host = authority.replace(/:\d*$/, '').toLowerCase();
  for (let end = host.length; end > 0; end = host.lastIndexOf('.', end - 1)) {
    const name = host.slice(0, end);
    const catalog = catalogs.find(name);
    if (catalog !== undefined) return catalog;
    if (catalogs.isExpected(name)) throw new StatusError('UNAVAILABLE', `catalog ${name} has no content yet`);
  }
  const [only, ...more] = catalogs.list();
  if (only !== undefined && more.length === 0) return only;
  throw new StatusError('NOT_FOUND', `catalog not found for host ${quoteGo(authority.slice(0, 253))}`);
}
