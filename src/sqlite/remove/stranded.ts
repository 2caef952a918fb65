import { findField } from '../../document/go-json-fold.js';
import { parseGoJson } from '../../document/go-json.js';
import { isJsonObject } from '../../document/json.js';
import { type ColumnValue, type Database, text } from '../schema/database.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { type RemovedBundles, removeBundle } from '../schema/remove-bundle.js';

/** What pruning removed. */
export interface StrandedReport {
  /** Names of the bundles, in the order in which they went. */
  bundles: string[];
  /** Rows without a name, which migrations of older tools have left. */
  nameless: number;
}

/**
 * Removes the bundles that are in no channel and not deprecated, those of packages that are not in the index,
 * rows of bundles without a name, and deprecations of bundles that are gone.
 */
export async function pruneStranded(database: Database): Promise<StrandedReport> {
  return withEditIndexes(database, () => {
    const removed: RemovedBundles = [];
    const nameless = removeStranded(database, packagesOfBundles(database), removed);
    return { bundles: removed, nameless };
  });
}

/** Bundles by the packages that their `olm.package` properties name; without those that were removed. */
export type BundlesByPackage = Map<string, Set<ColumnValue>>;

/** Reads the `olm.package` properties of all bundles; those that are not readable do not count. */
export function packagesOfBundles(database: Database): BundlesByPackage {
  const bundles: BundlesByPackage = new Map();
  const rows = database.iterate<{ name: ColumnValue; value: ColumnValue }>(
    "SELECT operatorbundle_name AS name, value FROM properties WHERE type = 'olm.package' AND operatorbundle_name IS NOT NULL",
  );
  for (const { name, value } of rows) {
    const packageName = findPackageName(text(value));
    if (packageName === undefined) continue;
    bundles.set(packageName, (bundles.get(packageName) ?? new Set()).add(name));
  }
  return bundles;
}

/** The package that a property names; empty where it names none, undefined where it is not readable. */
function findPackageName(value: string): string | undefined {
  let property: unknown;
  try {
    property = parseGoJson(value);
  } catch {
    return undefined;
  }
  if (!isJsonObject(property)) return undefined;
  const packageName = findField(property, 'packageName') ?? '';
  return typeof packageName === 'string' ? packageName : undefined;
}

/**
 * What every removal ends with: see `pruneStranded`. Names are added to `removed`; returns how many rows without
 * a name went. Within `withEditIndexes`.
 */
export function removeStranded(
  database: Database,
  packages: BundlesByPackage,
  removed: RemovedBundles,
): number {
  // Not `NOT IN`: that is never true where one of the names is null.
  const stranded = database.all<{ name: ColumnValue }>(
    `SELECT name FROM operatorbundle WHERE name IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM channel_entry WHERE channel_entry.operatorbundle_name = operatorbundle.name)
      AND NOT EXISTS (SELECT 1 FROM deprecated WHERE deprecated.operatorbundle_name = operatorbundle.name)`,
  );
  for (const { name } of stranded) removeBundle(database, name, removed);
  const nameless = database.run('DELETE FROM operatorbundle WHERE name IS NULL').changes;
  removeOfUnknownPackages(database, packages, removed);
  return nameless;
}

/**
 * Removes the bundles of packages that are not in the index, and the deprecations of bundles that are gone.
 * Within `withEditIndexes`.
 */
export function removeOfUnknownPackages(
  database: Database,
  packages: BundlesByPackage,
  removed: RemovedBundles,
): void {
  const known = new Set(database.texts('SELECT name FROM package WHERE name IS NOT NULL'));
  for (const [packageName, bundles] of packages) {
    if (known.has(packageName)) continue;
    for (const name of bundles) removeBundle(database, name, removed);
    packages.delete(packageName);
  }
  database.run(
    'DELETE FROM deprecated WHERE NOT EXISTS (SELECT 1 FROM operatorbundle WHERE name = operatorbundle_name)',
  );
}
