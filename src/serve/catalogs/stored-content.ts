/**
 * A catalog as it is served: `catalog.jsonl`, one blob a line with sorted keys in walk order, and where in it what is.
 * Never changes once it is stored; another state of the catalog is another StoredContent.
 */
import type { Readable } from 'node:stream';
import type { Catalog } from '../../catalog/catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
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

/** A blob and where its line is, line break included. */
export interface ContentBlob extends MetasQuery {
  section: Section;
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
  /** The blobs of a query, in order. */
  blobs(query: MetasQuery): Iterable<ContentBlob>;
  /** The bytes of a section, or of everything. Throws OpmateError once closed. */
  open(section?: Section): Readable;
  /** For whoever brings buffers along. Throws OpmateError once closed. */
  openReader(): ContentReader;
  /** Readers that are open go on; the files go when the last one is done and nobody keeps them. */
  close(): Promise<void>;
}

/** Keeps the content readable until it is closed. */
export interface ContentReader {
  /** Fills `target` with what stands at a place. Throws OpmateError IO when it is not there any more. */
  read(target: Buffer, position: number): Promise<void>;
  close(): void;
}

/** Where contents are kept. */
export interface ContentPlace {
  /**
   * Contents by hash, for any number of processes; may be read-only. Without one, or where it cannot be written,
   * contents are kept in a nameless file, or in memory.
   */
  directory?: string | undefined;
  logger?: Logger | undefined;
}

export interface StoreOptions extends ContentPlace, CancelOptions {
  /** For nameless files; memory is used without one. */
  temporaryDirectory?: string | undefined;
  now: () => Date;
  /**
   * What this state of the catalog is known by, e.g. the digest of its image: what was stored under the same key
   * in the directory is taken as it is, without reading the catalog.
   */
  key?: string | undefined;
}

/**
 * Reads all of a catalog and stores it, written whole or not at all. Content that the directory has already, sound to
 * its last byte, is used instead, with its date. Throws what reading the catalog throws; then nothing is left of it.
 * A directory that cannot be used is told as a warning.
 */
export async function storeContent(catalog: Catalog, options: StoreOptions): Promise<StoredContent> {
  const { store } = await import('./content-store.js');
  return store(catalog, options);
}

/**
 * Opens content that is stored, once all of it has been checked; undefined if missing, or it is damaged,
 * which is told as a warning.
 */
export async function openContent(hash: string, place: ContentPlace): Promise<StoredContent | undefined> {
  const { openStored } = await import('./content-store.js');
  return openStored(hash, place);
}

/** A catalog that the HTTP API serves under a name. */
export interface ServedCatalog {
  name: string;
  content: StoredContent;
  labels: Readonly<Record<string, string>>;
  priority: number;
  /** When the catalog came to have this content; when the content was stored where it is left out. */
  changedAt?: Date | undefined;
}

/** The catalogs that are served at this moment; asked anew for every request. */
export interface CatalogSet {
  /** By name. */
  list(): readonly ServedCatalog[];
  find(name: string): ServedCatalog | undefined;
  /** Whether a catalog that is not found is to be served, and has no content yet. */
  isExpected(name: string): boolean;
  /** Whether everything that is to be served is. */
  isReady(): boolean;
}
