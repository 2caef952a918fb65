import path from 'node:path';
import type { CatalogPlace } from '../../source/place.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import type { CatalogManifest } from './catalog-manifest.js';
import type { CatalogFault, CatalogRecord } from './catalog-status.js';

/** A manifest, or the placeholder of a refused one. */
export interface KeptManifest extends Omit<CatalogManifest, 'origin' | 'kind' | 'line'> {
  origin: CatalogPlace | undefined;
  /** Fault of the present manifest, which is refused; the other fields are from before. */
  fault?: CatalogFault | undefined;
}

/** Creates a placeholder for the refused manifest in `file` from a record. */
export function createPlaceholder(
  record: Pick<CatalogRecord, 'name' | 'labels' | 'priority' | 'isAvailable' | 'originKey'>,
  file: string,
): KeptManifest {
  const { name, labels, priority, isAvailable, originKey = '' } = record;
  const unknown = { pollMs: undefined, origin: undefined, key: '' };
  return { name, labels, priority, isAvailable, file, originKey, ...unknown };
}

/** Converts a file name to a catalog name; undefined where that is invalid. */
export function toCatalogName(file: string): string | undefined {
  const name = path
    .basename(file)
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
  return findCatalogNameFault(name) === undefined ? name : undefined;
}
