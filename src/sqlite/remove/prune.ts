import { describeMissing, suggestName } from '../../core/suggest.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import type { Database } from '../schema/database.js';
import { type RemoveReport, packageNames, removePackages } from './remove.js';

/** Changes of pruning. */
interface PruneReport extends Omit<RemoveReport, 'failures'> {
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
