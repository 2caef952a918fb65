/**
 * Versions of OpenShift: their majors and minors, the Kubernetes in them, and which are one release under two names. No
 * other module knows a major version of OpenShift.
 */
import { UsageError } from './errors.js';
import { quoteGo } from './go-json-quote.js';
import {
  SemverError,
  type Version,
  type VersionNumber,
  compareVersions,
  formatVersion,
  parseTolerantVersion,
} from './semver.js';

/** An OpenShift version: 4.18. */
export interface OpenShiftVersion {
  major: number;
  minor: number;
}

/** A major version of OpenShift. */
interface OpenShiftMajor {
  major: number;
  /** First minor version. */
  first: number;
  /** Minor version that is the same release as the first of the next major version; undefined if unknown. */
  last: number | undefined;
  /** Minor version of Kubernetes 1 in minor version 0, from which both rise together. */
  kubernetes: number;
}

/** Oldest first; 4.1 and 4.2, which precede the file-based catalogs, have other versions of Kubernetes. */
const majors: readonly OpenShiftMajor[] = [
  { major: 4, first: 3, last: 23, kubernetes: 13 },
  { major: 5, first: 0, last: undefined, kubernetes: 36 },
];

/** Minor versions of the newest major version that are searched for limits. */
const searchedMinors = 40;

/** Versions that are searched for limits, oldest first; the ends are no limit. */
export const knownOpenShift: readonly OpenShiftVersion[] = majors.flatMap(
  ({ major, first, last = searchedMinors }) =>
    Array.from({ length: last - first + 1 }, (_, place) => ({ major, minor: first + place })),
);

/** Property of a bundle with the maximum OpenShift version. */
export const maxOpenShiftProperty = 'olm.maxOpenShiftVersion';

/** Label of a bundle with the OpenShift versions whose catalogs it is published in. */
export const openShiftVersionsLabel = 'com.redhat.openshift.versions';

/** First versions with a change that other modules depend on. */
export const openShiftMilestones = {
  /** Kubernetes 1.22 removes APIs of version v1beta1. */
  removedApis: { major: 4, minor: 9 },
  /** Catalogs use `olm.csv.metadata` instead of `olm.bundle.object`. */
  csvMetadata: { major: 4, minor: 17 },
  /** Clusters require cosign signatures of release images, by the ClusterImagePolicy `openshift`. */
  signedReleases: { major: 4, minor: 21 },
  /** Catalogs have lifecycle blobs. (Source: operator-foundry.) */
  lifecycles: { major: 5, minor: 0 },
  /** The marketplace catalog is no longer published. */
  noMarketplace: { major: 4, minor: 22 },
} as const satisfies Record<string, OpenShiftVersion>;

/** Reads `4.18`, `v4.18` or `4.18.3`, ignoring the patch. Undefined for other text. */
export function readOpenShiftVersion(text: string): OpenShiftVersion | undefined {
  const [, major, minor] = /^\s*v?(\d{1,4})\.(\d{1,4})(?:\.\d.*)?\s*$/.exec(text) ?? [];
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}

/** Parses a version that the user entered, as `readOpenShiftVersion` reads it. Throws UsageError. */
export function parseOpenShiftVersion(text: string): OpenShiftVersion {
  const version = readOpenShiftVersion(text);
  if (version !== undefined) return version;
  throw new UsageError(`invalid OpenShift version ${quoteGo(text)}`, {
    hint: 'use a version such as 4.18',
  });
}

/** Formats a version: `4.18`. */
export function formatOpenShift({ major, minor }: OpenShiftVersion): string {
  return `${major}.${minor}`;
}

/**
 * Returns the name of a release that compatibility is decided by: 5.0 for 4.23, other versions as they are. (Source:
 * OLM, openshift/helpers.go.)
 */
export function normalizeOpenShift(version: OpenShiftVersion): OpenShiftVersion {
  const place = majors.findIndex(({ major }) => major === version.major);
  const next = majors[place + 1];
  if (next === undefined || majors[place]?.last !== version.minor) return version;
  return { major: next.major, minor: next.first };
}

/** Compares two versions for compatibility: 4.23 equals 5.0. */
export function compareOpenShift(a: OpenShiftVersion, b: OpenShiftVersion): number {
  return compareOpenShiftNames(normalizeOpenShift(a), normalizeOpenShift(b));
}

/** Compares two versions as they are written: 4.23 precedes 5.0. */
export function compareOpenShiftNames(a: OpenShiftVersion, b: OpenShiftVersion): number {
  return a.major - b.major || a.minor - b.minor;
}

/** Returns the next minor version for compatibility: 5.1 for 4.23 and 5.0. */
export function nextOpenShift(version: OpenShiftVersion): OpenShiftVersion {
  const { major, minor } = normalizeOpenShift(version);
  return { major, minor: minor + 1 };
}

/** Returns the minor version of Kubernetes 1 in a version of OpenShift; undefined if unknown. */
export function getKubernetesMinor({ major, minor }: OpenShiftVersion): number | undefined {
  const known = majors.find((item) => item.major === major);
  return known === undefined || minor < known.first ? undefined : known.kubernetes + minor;
}

/** Reports whether a version of Kubernetes is above minor version `minor` of Kubernetes 1; false for an unknown one. */
export function isAboveKubernetes(
  version: { major: VersionNumber; minor: VersionNumber },
  minor: number | undefined,
): boolean {
  if (minor === undefined) return false;
  return Number(version.major) > 1 || (Number(version.major) === 1 && Number(version.minor) > minor);
}

/**
 * Returns the version after `from` on the way to a higher one: the next minor version, under its name in the next major
 * version if that is where `to` is (5.0 after 4.22). Undefined if `to` is not higher, or the step is unknown.
 */
export function stepOpenShift(from: OpenShiftVersion, to: OpenShiftVersion): OpenShiftVersion | undefined {
  if (compareOpenShiftNames(from, to) >= 0) return undefined;
  const isInMajor = from.major === to.major;
  const last = majors.find(({ major }) => major === from.major)?.last;
  if (!isInMajor && (last === undefined || from.minor > last)) return undefined;
  const next = isInMajor ? nextOpenShift(from) : normalizeOpenShift(nextOpenShift(from));
  return compareOpenShiftNames(next, to) > 0 ? to : next;
}

/**
 * Reads the values of all `olm.maxOpenShiftVersion` properties of a bundle, each as its JSON text, as OLM does: the JSON
 * is not decoded, only quotes around it are removed, so the number `4.20` is 4.20. Undefined without a property. Throws
 * SemverError with OLM's text for several, or for what is not exactly a major and a minor version. (Source: OLM,
 * openshift/helpers.go.)
 */
export function parseMaxOpenShift(values: readonly string[]): OpenShiftVersion | undefined {
  const [text] = values;
  if (text === undefined) return undefined;
  if (values.length > 1)
    throw new SemverError(`defining more than one ${quoteGo(maxOpenShiftProperty)} property is not allowed`);
  const value = text.replace(/^"+/, '').replace(/(?<!")"+$/, '');
  if (value === '') throw new SemverError('value cannot be "" (an empty string)');
  const version = parseTolerant(value);
  const { major, minor } = version;
  if (compareVersions(version, { major, minor, patch: 0, pre: [], build: [] }) !== 0) {
    const problem = `must specify only <major>.<minor> version, got invalid value ${formatVersion(version)}`;
    throw new SemverError(`property ${maxOpenShiftProperty} ${problem}`);
  }
  return { major: Number(major), minor: Number(minor) };
}

function parseTolerant(value: string): Version {
  try {
    return parseTolerantVersion(value);
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    throw new SemverError(`failed to parse "${value}" as semver: ${error.message}`);
  }
}

/**
 * Reports whether OLM blocks upgrades of a cluster to the next minor version for a bundle with this maximum: 4.22 needs
 * 4.23 or 5.0, both of those need 5.1. (Source: OLM, openshift/helpers.go.)
 */
export function blocksNextOpenShift(maximum: OpenShiftVersion, cluster: OpenShiftVersion): boolean {
  return compareOpenShiftNames(normalizeOpenShift(maximum), nextOpenShift(cluster)) < 0;
}

/**
 * Lists the versions, newest first, from the lowest of some names to the version after the highest, so that a list of
 * limits has a choice beyond the last limit. Empty without names.
 */
export function listOpenShiftChoices(names: readonly string[]): string[] {
  const limits = names.flatMap((name) => readOpenShiftVersion(name) ?? []).sort(compareOpenShiftNames);
  const [lowest, highest] = [limits[0], limits.at(-1)];
  if (lowest === undefined || highest === undefined) return [];
  const beyond = nextOpenShift(highest);
  return knownOpenShift
    .filter(
      (version) => compareOpenShiftNames(version, lowest) >= 0 && compareOpenShiftNames(version, beyond) <= 0,
    )
    .map(formatOpenShift)
    .reverse();
}
