import { OpmateError } from '../../core/errors.js';
import { compareKnownVersions, compareVersionBuilds, sortNewestFirst } from '../../graph/bundle-version.js';
import type { Database } from '../schema/database.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { readPackage, readVersions } from '../schema/package-state.js';
import { type DeleteReport, type FetchManifests, deleteBundles } from './delete-bundle.js';
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
    const state = readPackage(database, packageName);
    const versions = readVersions(state);
    const heads = [...new Set(state.heads.values())].filter((head) => state.bundles.has(head));
    const names = sortNewestFirst(heads, versions, compareVersionBuilds);
    const [newest, next] = names;
    if (newest === undefined) throw noSuchPackage(database, [packageName]);
    if (eachChannel || next === undefined) return deleteBundles(database, names, fetchManifests);
    if (compareKnownVersions(versions.get(newest), versions.get(next), compareVersionBuilds) === 0) {
      throw new OpmateError(
        'INVALID',
        `package ${packageName}: ${newest} and ${next} have the same version, or none`,
        {
          subject: database.name,
          hint: 'select one with opmate registry delete --bundle NAME, or remove both with --each-channel',
        },
      );
    }
    return deleteBundles(database, [newest], fetchManifests);
  });
}
