/**
 * A catalog as it is served: `catalog.jsonl`, one blob a line with sorted keys in walk order, and where in it what is.
 * Never changes once it is stored; another state of the catalog is another StoredContent.
 */
import type { Readable, Transform } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import type { Logger } from '../../core/log.js';
import type { CompressedContent } from './compressed-content.js';
import type { ContentBlob, MetasQuery, Section } from './content-index.js';

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
  /**
   * The whole in a compressed form, made with the first call and kept as long as the content; undefined where there is no
   * place for it. For those that have a reader open, and as long as they have.
   */
  compressed(coding: string, createCompressor: () => Transform): Promise<CompressedContent | undefined>;
  /** Readers that are open go on; the files go when the last one is done and nobody keeps them. */
  close(): Promise<void>;
}

/** Keeps the content readable until it is closed. */
export interface ContentReader {
  /** Fills `target` with what stands at a place. Throws OpmateError IO when it no longer exists. */
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
