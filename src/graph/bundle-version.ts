import { compareBytes, sortedByBytes } from '../core/order.js';
import {
  type Release,
  SemverError,
  type Version,
  compareVersions,
  parseRelease,
  parseVersion,
  tryParse,
} from '../core/semver.js';
import type { BundleFacts } from '../model/facts.js';

/** A version with its release, which distinguishes builds of one version. */
export interface VersionRelease {
  version: Version;
  release: Release;
}

/** A version with its release and text. */
export interface BundleVersion extends VersionRelease {
  /** Version as the bundle has it. */
  text: string;
}

/**
 * Parses a version. Without a separate release, build metadata that is a valid release is the release: `1.0.0+2`.
 * Throws SemverError. (Source: operator-controller.)
 */
export function parseBundleVersion(text: string, separateRelease?: string): BundleVersion {
  const version = parseVersion(text);
  if (separateRelease !== undefined) return { text, version, release: parseRelease(separateRelease) };
  try {
    const release = parseRelease(version.build.join('.'));
    return { text, version: release.length > 0 ? { ...version, build: [] } : version, release };
  } catch (error) {
    if (error instanceof SemverError) return { text, version, release: [] };
    throw error;
  }
}

/** Compares by version, then by release; a version without a release precedes those with one. */
export function compareVersionReleases(a: VersionRelease, b: VersionRelease): number {
  return compareVersions(a.version, b.version) || compareReleases(a.release, b.release);
}

/** Compares newest first; undefined versions are last. */
export function compareNewestFirst(a: VersionRelease | undefined, b: VersionRelease | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return compareVersionReleases(b, a);
}

/** Compares by version, then by build metadata as if it were a prerelease; undefined precedes all versions. */
export function compareVersionBuilds(a: Version, b: Version): number {
  return compareVersions(a, b) || compareReleases(readBuild(a), readBuild(b));
}

function readBuild({ build }: Version): Release {
  // A number with a leading zero, invalid in a prerelease, compares as text.
  return build.map((part) => tryParse(parseVersion, `0.0.0-${part}`)?.pre[0] ?? part);
}

/** Compares releases, whose segments compare like those of a prerelease. */
function compareReleases(a: Release, b: Release): number {
  if (a.length === 0 || b.length === 0) return Math.sign(a.length - b.length);
  const plain = { major: 0, minor: 0, patch: 0, build: [] };
  return compareVersions({ ...plain, pre: a }, { ...plain, pre: b });
}

/** Formats version and release as in bundle names: `1.2.0-3`; empty without a property. */
export function formatBundleVersion(property: { version: string; release: string } | undefined): string {
  const { version, release } = property ?? { version: '', release: '' };
  return release === '' ? version : `${version}-${release}`;
}

/** Returns the version of a bundle; undefined if missing or invalid, which validation reports. */
export function readBundleVersion(bundle: BundleFacts | undefined): Version | undefined {
  const [property] = bundle?.packageProperties ?? [];
  return property === undefined ? undefined : tryParse(parseVersion, property.version);
}

/** Returns versions by bundle name, without bundles whose version is invalid. */
export function readBundleVersions(bundles: Iterable<BundleFacts>): Map<string, Version> {
  const versions = new Map<string, Version>();
  for (const bundle of bundles) {
    const version = readBundleVersion(bundle);
    if (version !== undefined) versions.set(bundle.name, version);
  }
  return versions;
}

/** Compares by version, or by `compare`; bundles without a version precede all others. */
export function compareKnownVersions(
  a: Version | undefined,
  b: Version | undefined,
  compare = compareVersions,
): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return compare(a, b);
}

/** Returns bundle names newest first; of equal versions in byte order, those without a version last. */
export function sortNewestFirst(
  names: Iterable<string>,
  versions: ReadonlyMap<string, Version | undefined>,
  compare = compareVersions,
): string[] {
  return [...names].sort(
    (a, b) => compareKnownVersions(versions.get(b), versions.get(a), compare) || compareBytes(a, b),
  );
}

/** Returns the versions that several bundles have, each with their names, all sorted. */
export function findDuplicateVersions(
  namesByVersion: ReadonlyMap<string, readonly string[]>,
): [string, string[]][] {
  return [...namesByVersion]
    .filter(([, names]) => names.length > 1)
    .map(([version, names]): [string, string[]] => [version, sortedByBytes(names)])
    .sort(([a], [b]) => compareBytes(a, b));
}

/** Describes duplicate versions in the words of `opm`. */
export function describeDuplicateVersions(duplicates: readonly [string, readonly string[]][]): string {
  const list = duplicates.map(([version, names]) => `{${version}: [${names.join(', ')}]}`);
  return `duplicate versions found in bundles: [${list.join(' ')}]`;
}
