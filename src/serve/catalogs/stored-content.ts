/**
 * A catalog as it is served: `catalog.jsonl`, one blob a line with sorted keys in walk order, and where in it what is.
 * Never changes once it is stored; another state of the catalog is another StoredContent.
 */
import type { Readable } from 'node:stream';
import type { Catalog } from '../../catalog/catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';

/** Bytes of `catalog.jsonl`. */
export interface Section {
  offset: number;
  length: number;
}

/** What `metas` asks for; an empty text is not asked for. */
export interface MetasQuery {
  schema: string;
  package: string;
  name: string;
}

export interface StoredContent {
  /** `sha256:…` of `catalog.jsonl`. */
  readonly hash: string;
  /** Bytes of `catalog.jsonl`. */
  readonly size: number;
  /** Blobs. */
  readonly count: number;
  /** When this content was stored first. */
  readonly storedAt: Date;
  /** Names of packages, sorted. */
  readonly packages: readonly string[];
  /** Where the blobs of a query are, in order, neighbours joined. */
  find(query: MetasQuery): readonly Section[];
  open(section?: Section): Readable;
  /** Readers that are open go on; the files go when the last one is done and nobody keeps them. */
  close(): Promise<void>;
}

export interface StoreOptions extends CancelOptions {
  /** Where contents are kept, by hash; written atomically, taken over when it is there and sound. */
  directory: string;
  now: () => Date;
  logger?: Logger | undefined;
}

/** Reads all of a catalog and stores it. Throws what reading throws; then nothing is left of it. */
export function storeContent(catalog: Catalog, options: StoreOptions): Promise<StoredContent> {
  throw new OpmateError('INTERNAL', `${catalog.name}: not built yet`, { cause: options });
}

/** A catalog that the HTTP API serves under a name. */
export interface ServedCatalog {
  name: string;
  content: StoredContent;
  labels: Readonly<Record<string, string>>;
  priority: number;
}

/** The catalogs that are served at this moment; asked anew for every request. */
export interface CatalogSet {
  /** By name. */
  list(): readonly ServedCatalog[];
  find(name: string): ServedCatalog | undefined;
  /** Whether everything that is to be served is. */
  isReady(): boolean;
}
