import { compareOpenShift, openShiftMilestones } from '../core/openshift-version.js';

/** Migration levels of rendered catalogs. */
export type CatalogLevel = 'none' | 'bundle-object-to-csv-metadata';

/**
 * Returns the migration level of a catalog by its name: `v4.17`, `4.18` and later versions have CSV metadata, older ones
 * and names that are no version have bundle objects. (Source: render_catalogs.sh of operator-pipelines.)
 */
export function getCatalogLevel(catalog: string): CatalogLevel {
  const [, major, minor] = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.|$)/.exec(catalog) ?? [];
  if (major === undefined) return 'none';
  const version = { major: Number(major), minor: Number(minor ?? 0) };
  return compareOpenShift(version, openShiftMilestones.csvMetadata) >= 0
    ? 'bundle-object-to-csv-metadata'
    : 'none';
}

/**
 * Returns the migration level of a catalog that a release adds a bundle to; unlike `make catalogs`, the release pipeline
 * takes only names `vX.Y` for versions. (Source: operatorcert/utils.py.)
 */
export function getReleaseLevel(catalog: string): CatalogLevel {
  return /^v\d+\.\d+$/.test(catalog) ? getCatalogLevel(catalog) : 'none';
}
