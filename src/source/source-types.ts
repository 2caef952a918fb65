import type { BundleFiles } from '../bundle/read.js';
import type { Catalog } from '../catalog/catalog.js';

/** An opened catalog or bundle; `close` removes its unpacked files. */
export type Source = CatalogSource | BundleSource;

export interface CatalogSource {
  kind: 'catalog';
  catalog: Catalog;
  close(): Promise<void>;
}

export interface BundleSource {
  kind: 'bundle';
  /** Pull specification as specified; empty for a bundle without registry. */
  image: string;
  files: BundleFiles;
  close(): Promise<void>;
}

/** The kinds of sources that a command supports; others are rejected before they are read. */
export interface AllowedSources {
  bundles: boolean;
  catalogs: boolean;
}

export const allSources: AllowedSources = { bundles: true, catalogs: true };
export const catalogsOnly: AllowedSources = { bundles: false, catalogs: true };
