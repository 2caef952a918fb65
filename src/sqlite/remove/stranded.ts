import { findField } from '../../document/go-json-fold.js';
import { parseGoJson } from '../../document/go-json.js';
import { isJsonObject } from '../../document/json.js';
import { type ColumnValue, type Database, getColumnText } from '../schema/database.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { removeBundle } from '../schema/remove-bundle.js';

/** Changes of pruning. */
export interface StrandedReport {
  /** Names of bundles, in order. */
  bundles: string[];
  /** Number of rows without a name, which migrations of older tools left. */
  nameless: number;
}

/**
 * Removes bundles that are in no channel and not deprecated, bundles of unknown packages, bundle rows without a name,
 * and deprecations of missing bundles.
 */
export async function pruneStranded(database: Database): Promise<StrandedReport> {
  return withEditIndexes(database, () => {
    const removed: string[] = [];
    const nameless = removeStranded(database, packagesOfBundles(database), removed);
    return { bundles: removed, nameless };
  });
}

/** Bundles by package of their `olm.package` property, without removed ones. */
export type BundlesByPackage = Map<string, Set<ColumnValue>>;

/** Reads the `olm.package` properties of all bundles, ignoring unreadable ones. */
export function packagesOfBundles(database: Database): BundlesByPackage {
  const bundles: BundlesByPackage = new Map();
  const rows = database.iterate<{ name: ColumnValue; value: ColumnValue }>(
    "SELECT operatorbundle_name AS name, value FROM properties WHERE type = 'olm.package' AND operatorbundle_name IS NOT NULL",
  );
  for (const { name, value } of rows) {
    const packageName = findPackageName(getColumnText(value));
    if (packageName === undefined) continue;
    bundles.set(packageName, (bundles.get(packageName) ?? new Set()).add(name));
  }
  return bundles;
}

/** Returns the package in a property; empty if it has none, undefined if unreadable. */
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
 * Removes stranded bundles as the last step of every removal, see `pruneStranded`. Appends names to `removed`;
 * returns the number of rows without a name. Within `withEditIndexes`.
 */
export function removeStranded(database: Database, packages: BundlesByPackage, removed: string[]): number {
  // `NOT IN` is never true if one of the names is null.
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

/** Removes bundles of unknown packages, and deprecations of missing bundles. Within `withEditIndexes`. */
export function removeOfUnknownPackages(
  database: Database,
  packages: BundlesByPackage,
  removed: string[],
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
