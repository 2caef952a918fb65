import { OpmateError } from '../../core/errors.js';
import type { Database } from '../schema/database.js';
import {
  type DeleteReport,
  type FetchManifests,
  compareByVersion,
  emptyReport,
  findHeads,
  restoreHeads,
  takeOut,
} from './delete-bundle.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { noSuchPackage } from './remove.js';

interface DeleteLatestOptions {
  /** Removes the head of every channel, not only the newest of them. */
  eachChannel?: boolean | undefined;
}

/**
 * Removes the newest version of a package from the index: of the bundles that head its channels, the one with the
 * highest version, from all channels. Each of them is headed by what comes next in it, with all of its manifests
 * again. What becomes of channels, and which is the default one then, is as `deleteBundle` says. A database does not
 * store which channels a bundle declared, so a channel may then be headed by one that is only part of its history.
 *
 * Throws what that throws, and OpmateError NOT_FOUND for a package that is not in the index, INVALID where versions
 * do not tell which bundle is the newest or no channel would be left.
 */
export async function deleteLatest(
  database: Database,
  packageName: string,
  fetchManifests: FetchManifests,
  { eachChannel = false }: DeleteLatestOptions = {},
): Promise<DeleteReport> {
  return withEditIndexes(database, async () => {
    const heads = findHeads(database, packageName);
    const [newest, next] = heads;
    if (newest === undefined) throw noSuchPackage(database, [packageName]);
    if (!eachChannel && next !== undefined && compareByVersion(newest, next) === 0) {
      throw new OpmateError(
        'INVALID',
        `package ${packageName}: ${newest.name} and ${next.name} have the same version, or none`,
        {
          subject: database.name,
          hint: 'name the one to remove with delete --bundle NAME, or remove both with --each-channel',
        },
      );
    }
    const report = emptyReport();
    for (const { name } of eachChannel ? heads : [newest]) takeOut(database, name, report);
    await restoreHeads(database, report, fetchManifests);
    return report;
  });
}
