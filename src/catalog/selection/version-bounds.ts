import { type Version, compareVersions, formatVersion, parseVersion } from '../../core/semver.js';

/** Minimum and maximum version, inclusive; either may be missing. */
export interface VersionBounds {
  minVersion: string | undefined;
  maxVersion: string | undefined;
}

/**
 * Returns a test for versions within bounds, in a package with these `versions`. A prerelease is in range if a bound
 * is one. A package with prereleases only uses them for builds: bounds without a prerelease then compare the numbers
 * alone. Throws SemverError for an invalid bound.
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

/** Returns the versions nearest to the requested ones, as a hint. */
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
