import type { BundleFiles } from '../bundle/read.js';
import type { Catalog } from '../catalog/catalog.js';

/** A source after it was recognized and opened. `close` removes what was unpacked for it. */
export type Source = CatalogSource | BundleSource;

export interface CatalogSource {
  kind: 'catalog';
  catalog: Catalog;
  close(): Promise<void>;
}

export interface BundleSource {
  kind: 'bundle';
  /** Pull specification, as the user gave it; empty for a bundle that was not read from a registry. */
  image: string;
  files: BundleFiles;
  close(): Promise<void>;
}

/** Which sources a command takes; others are refused before anything of them is read. */
export interface AllowedSources {
  bundles: boolean;
  catalogs: boolean;
}

export const allSources: AllowedSources = { bundles: true, catalogs: true };
export const catalogsOnly: AllowedSources = { bundles: false, catalogs: true };
