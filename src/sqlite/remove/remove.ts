import { describeMissing, suggestName } from '../../core/suggest.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { CancelOptions } from '../../core/concurrency.js';
import type { ColumnValue, Database } from '../schema/database.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { removeBundle } from '../schema/remove-bundle.js';
import { packagesOfBundles, removeStranded } from './stranded.js';

interface RemoveOptions extends CancelOptions {
  /** Remove what can be removed, and report the rest. */
  permissive?: boolean | undefined;
}

/** Removed packages and bundles, in order. */
export interface RemoveReport {
  packages: string[];
  bundles: string[];
  /** With `permissive`: kept packages with reasons. */
  failures: { packageName: string; error: OpmateError }[];
}

/**
 * Removes packages with all their bundles, and bundles in no channel. Throws OpmateError NOT_FOUND with all unknown
 * packages, and INVALID if bundles of others would lose what they replace; with `permissive` these are reported and
 * the others removed.
 */
export async function removePackages(
  database: Database,
  names: readonly string[],
  { permissive = false, signal }: RemoveOptions = {},
): Promise<RemoveReport> {
  return withEditIndexes(database, async () => {
    const wanted = [...new Set(names)];
    const missing = wanted.filter((name) => !hasPackage(database, name));
    if (missing.length > 0 && !permissive) throw noSuchPackage(database, missing);
    const failures = missing.map((packageName) => ({
      packageName,
      error: noSuchPackage(database, [packageName]),
    }));
    const report: RemoveReport = { packages: [], bundles: [], failures };
    const owners = packagesOfBundles(database);
    const broken = brokenEdges(database);
    for (const name of wanted.filter((text) => !missing.includes(text))) {
      throwIfCancelled(signal);
      const removed: string[] = [];
      const remove = (): void => {
        removePackage(database, name, removed);
        if (permissive) checkEdges(database, broken);
      };
      try {
        if (permissive) await database.transaction(remove);
        else remove();
      } catch (error) {
        if (!permissive || !(error instanceof OpmateError)) throw error;
        report.failures.push({ packageName: name, error });
        continue;
      }
      report.packages.push(name);
      report.bundles.push(...removed);
    }
    // Once for all packages, as it reads every bundle; again if a removed bundle headed channels of others.
    let before: number;
    do {
      before = report.bundles.length;
      removeStranded(database, owners, report.bundles);
    } while (report.bundles.length > before);
    checkEdges(database, broken);
    return report;
  });
}

/** Changes of pruning. */
export interface PruneReport extends Omit<RemoveReport, 'failures'> {
  /** Requested packages that are not in the index. */
  unknown: string[];
}

/**
 * Removes all packages but those to keep. Throws OpmateError NOT_FOUND if none of these is in the index, as a typo
 * would empty it.
 */
export async function prunePackages(
  database: Database,
  keep: readonly string[],
  options: CancelOptions = {},
): Promise<PruneReport> {
  const names = packageNames(database);
  const kept = new Set(keep);
  const unknown = [...kept].filter((name) => !names.includes(name));
  if (names.length > 0 && unknown.length === kept.size) {
    const what = kept.size === 0 ? 'no packages to keep' : describeMissing('package', unknown);
    throw new OpmateError('NOT_FOUND', `${what}; pruning would empty the index`, {
      subject: database.name,
      hint: suggestName('package', unknown[0] ?? '', names),
    });
  }
  const others = names.filter((name) => !kept.has(name));
  if (others.length === 0) return { packages: [], bundles: [], unknown };
  const { packages, bundles } = await removePackages(database, others, options);
  return { packages, bundles, unknown };
}

/** Removes one package and the bundles of its channels. Within `withEditIndexes`. */
function removePackage(database: Database, name: string, removed: string[]): void {
  database.run(
    `DELETE FROM deprecated WHERE EXISTS (SELECT 1 FROM channel_entry
      WHERE channel_entry.operatorbundle_name = deprecated.operatorbundle_name AND package_name = ?)`,
    name,
  );
  const bundles = database.all<{ name: ColumnValue }>(
    `SELECT operatorbundle_name AS name, min(entry_id) AS first FROM channel_entry
      WHERE package_name = ? AND operatorbundle_name IS NOT NULL GROUP BY operatorbundle_name ORDER BY first`,
    name,
  );
  for (const bundle of bundles) removeBundle(database, bundle.name, removed);
  database.run('DELETE FROM package WHERE name = ?', name);
  // Their entries are removed with them.
  database.run('DELETE FROM channel WHERE package_name = ?', name);
  database.run('DELETE FROM channel_entry WHERE package_name = ?', name);
}

function hasPackage(database: Database, name: string): boolean {
  const tables = [
    'package WHERE name = ?',
    'channel WHERE package_name = ?',
    'channel_entry WHERE package_name = ?',
  ];
  return tables.some((table) => database.has(`SELECT 1 FROM ${table} LIMIT 1`, name));
}

/** Returns the names of the packages of an index, sorted. */
function packageNames(database: Database): string[] {
  return database.texts('SELECT name FROM package WHERE name IS NOT NULL ORDER BY name');
}

/** Returns the error for unknown packages. */
export function noSuchPackage(database: Database, names: readonly string[]): OpmateError {
  const problems = names.map((name) => `no package found for packagename ${name}`);
  return new OpmateError('NOT_FOUND', problems.join('; '), {
    subject: database.name,
    hint: suggestName('package', names[0] ?? '', packageNames(database)),
  });
}

/** Returns entries that replace a missing one. An index with new ones could not be saved. */
export function brokenEdges(database: Database): Set<number> {
  const rows = database.all<{ id: number }>(
    `SELECT entry_id AS id FROM channel_entry AS upper WHERE replaces IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM channel_entry WHERE entry_id = upper.replaces)`,
  );
  return new Set(rows.map(({ id }) => id));
}

/** Throws INVALID for broken edges that are not already known. */
export function checkEdges(database: Database, known: ReadonlySet<number>): void {
  const broken = [...brokenEdges(database)].find((id) => !known.has(id));
  if (broken === undefined) return;
  const [entry] = database.textRows<'bundle' | 'channel' | 'package'>(
    'SELECT operatorbundle_name AS bundle, channel_name AS channel, package_name AS package FROM channel_entry WHERE entry_id = ?',
    broken,
  );
  const { bundle = '', channel = '', package: owner = '' } = entry ?? {};
  throw new OpmateError(
    'INVALID',
    `package ${owner}, channel ${channel}: ${bundle} replaces a bundle that would be removed`,
    { subject: database.name, hint: `remove package ${owner} as well` },
  );
}
