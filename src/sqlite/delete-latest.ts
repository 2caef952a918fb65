import type { Database } from './database.js';
import {
  type DeleteReport,
  type FetchManifests,
  emptyReport,
  headsOf,
  restoreHeads,
  takeOut,
} from './delete-bundle.js';
import { withEditIndexes } from './helper-indexes.js';
import { noSuchPackage } from './remove.js';

/**
 * Removes the newest bundle of each channel of a package from the index: what heads a channel goes from all
 * of them, and each is headed by what comes next in it, with all of its manifests again. What becomes of
 * channels, and which is the default one then, is as `deleteBundle` says. Throws what that throws, and
 * OpmateError NOT_FOUND for a package that is not in the index. A package of which no channel would be left is
 * refused: to remove all of a package, one has to say so.
 */
export async function deleteLatest(
  database: Database,
  packageName: string,
  fetchManifests: FetchManifests,
): Promise<DeleteReport> {
  return withEditIndexes(database, async () => {
    const heads = headsOf(database, packageName);
    if (heads.length === 0) throw noSuchPackage(database, [packageName]);
    const report = emptyReport();
    for (const head of heads) takeOut(database, head, report);
    await restoreHeads(database, report, fetchManifests);
    return report;
  });
}
