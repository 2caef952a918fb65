import path from 'node:path';
import type { CatalogPlace } from '../../source/place.js';
import { catalogNameFault } from '../http/catalog-names.js';
import type { CatalogManifest } from './catalog-manifest.js';
import type { CatalogFault, CatalogRecord } from './catalog-status.js';

/** A manifest, or what is left of one that is refused. */
export interface KeptManifest extends Omit<CatalogManifest, 'origin' | 'kind' | 'line'> {
  origin: CatalogPlace | undefined;
  /** Why the manifest that is there now is refused; this one is from before. */
  fault?: CatalogFault | undefined;
}

/** Returns what a record still knows of the manifest that `file` has held. */
export function manifestOfRecord(
  record: Pick<CatalogRecord, 'name' | 'labels' | 'priority' | 'isAvailable' | 'originKey'>,
  file: string,
): KeptManifest {
  const { name, labels, priority, isAvailable, originKey = '' } = record;
  return {
    name,
    labels,
    priority,
    isAvailable,
    file,
    pollMs: undefined,
    origin: undefined,
    originKey,
    key: '',
  };
}

/** Returns what a file is called in a list of catalogs; undefined where it has no valid name. */
export function rowName(file: string): string | undefined {
  const name = path
    .basename(file)
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
  return catalogNameFault(name) === undefined ? name : undefined;
}
