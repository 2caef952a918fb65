import { type Version, compareVersions, formatVersion, parseVersion } from '../../core/semver.js';

/** Least and most version, both wanted themselves; either may be missing. */
export interface VersionBounds {
  minVersion: string | undefined;
  maxVersion: string | undefined;
}

/**
 * Whether a version is wanted, in a package that has these `versions`. A prerelease is in range where a bound is one. A
 * package that has prereleases only writes its builds that way: there bounds without prerelease look at the numbers
 * alone. Throws SemverError for a bound that is no version.
 */
export function toRange(
  { minVersion, maxVersion }: VersionBounds,
  versions: readonly (Version | undefined)[],
): (version: Version) => boolean {
  const min = minVersion === undefined ? undefined : parseVersion(minVersion);
  const max = maxVersion === undefined ? undefined : parseVersion(maxVersion);
  const asksForPrereleases = (min?.pre.length ?? 0) > 0 || (max?.pre.length ?? 0) > 0;
  const known = versions.filter((version) => version !== undefined);
  const hasBuildsOnly = known.every((version) => version.pre.length > 0);
  return (version) => {
    if (version.pre.length > 0 && !asksForPrereleases && !hasBuildsOnly) return false;
    const compared = hasBuildsOnly && !asksForPrereleases ? { ...version, pre: [] } : version;
    if (min !== undefined && compareVersions(compared, min) < 0) return false;
    return max === undefined || compareVersions(compared, max) <= 0;
  };
}

/** The versions next to those that were asked for, as a hint. */
export function nearestVersions(
  { minVersion, maxVersion }: VersionBounds,
  versions: readonly (Version | undefined)[],
): string | undefined {
  const sorted = versions.filter((version) => version !== undefined).sort(compareVersions);
  const wanted = parseVersion((minVersion ?? maxVersion) as string);
  const above = sorted.findIndex((version) => compareVersions(version, wanted) > 0);
  const near = above < 0 ? sorted.slice(-2) : sorted.slice(Math.max(0, above - 1), above + 1);
  if (near.length === 0) return undefined;
  return `the nearest ${near.length === 1 ? 'is' : 'are'} ${near.map(formatVersion).join(' and ')}`;
}
