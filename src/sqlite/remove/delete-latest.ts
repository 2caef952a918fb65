import { OpmateError } from '../../core/errors.js';
import { compareKnownVersions, compareVersionBuilds, sortNewestFirst } from '../../graph/bundle-version.js';
import type { Database } from '../schema/database.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { readPackage, readVersions } from '../schema/package-state.js';
import { type DeleteReport, type FetchManifests, deleteBundles } from './delete-bundle.js';
import { noSuchPackage } from './remove.js';

interface DeleteLatestOptions {
  /** Delete the head of every channel, not only the newest. */
  eachChannel?: boolean | undefined;
}

/**
 * Deletes the newest version of a package from the index: of the heads of its channels, the one with the highest
 * version, from all channels. The next bundle becomes the head, with all of its manifests. Channels and the default
 * channel change as in `deleteBundle`. A database does not store the channels that a bundle declares, so a new head
 * may be one that was only part of a channel's history.
 *
 * Throws as `deleteBundle`, and OpmateError NOT_FOUND for an unknown package, INVALID if versions do not determine
 * the newest bundle or no channel would be left.
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
