import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';

/** An OpenShift version: 4.18. */
export interface OpenShiftVersion {
  major: number;
  minor: number;
}

/** Parses `4.18`, `v4.18` or `4.18.3`, ignoring the patch. Undefined for other text. */
export function readOpenShiftVersion(text: string): OpenShiftVersion | undefined {
  const [, major, minor] = /^\s*v?(\d{1,4})\.(\d{1,4})(?:\.\d.*)?\s*$/.exec(text) ?? [];
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}

/** Parses a version that the user entered. Throws UsageError. */
export function parseOpenShiftVersion(text: string): OpenShiftVersion {
  const version = readOpenShiftVersion(text);
  if (version !== undefined) return version;
  throw new UsageError(`invalid OpenShift version ${quoteGo(text)}`, {
    hint: 'use a version such as 4.18',
  });
}

/** Compares two versions. */
export function compareOpenShift(a: OpenShiftVersion, b: OpenShiftVersion): number {
  return a.major - b.major || a.minor - b.minor;
}

/** Formats a version: `4.18`. */
export function formatOpenShift({ major, minor }: OpenShiftVersion): string {
  return `${major}.${minor}`;
}

/** First version whose catalogs use `olm.csv.metadata` instead of `olm.bundle.object`. */
export const firstWithCsvMetadata: OpenShiftVersion = { major: 4, minor: 17 };

/** Returns the minor version of Kubernetes 1 in a version of OpenShift 4; undefined if unknown. */
export function getKubernetesMinor({ major, minor }: OpenShiftVersion): number | undefined {
  return major === 4 && minor >= 3 ? minor + 13 : undefined;
}

/** Minor versions of OpenShift 4 that are searched for limits; the ends are no limit. */
const [firstMinor, lastMinor] = [3, 60];

/**
 * Returns the first and last minor version of OpenShift 4 that a bundle allows with its `olm.maxOpenShiftVersion`,
 * `com.redhat.openshift.versions` and `minKubeVersion`; either is omitted without a limit. Undefined if it allows
 * none. For labels with single versions, these are the first and last.
 */
export function allowedOpenShift({
  maxOpenShift,
  minKube,
  openShiftVersions,
}: {
  maxOpenShift: OpenShiftVersion | undefined;
  minKube: { major: number | bigint; minor: number | bigint } | undefined;
  openShiftVersions: string | undefined;
}): { min?: number; max?: number } | undefined {
  const isAllowed = (minor: number): boolean => {
    const version = { major: 4, minor };
    if (maxOpenShift !== undefined && compareOpenShift(maxOpenShift, version) < 0) return false;
    if (openShiftVersions !== undefined && isInVersions(openShiftVersions, version) === false) return false;
    return minKube === undefined || !isAboveKubernetes(minKube, getKubernetesMinor(version));
  };
  const minors = Array.from({ length: lastMinor - firstMinor + 1 }, (_, index) => firstMinor + index).filter(
    isAllowed,
  );
  const [min, max] = [minors[0], minors.at(-1)];
  if (min === undefined || max === undefined) return undefined;
  return { ...(min > firstMinor && { min }), ...(max !== lastMinor && { max }) };
}

/** Reports whether a version is above minor version `minor` of Kubernetes 1; false for an unknown one. */
export function isAboveKubernetes(
  version: { major: number | bigint; minor: number | bigint },
  minor: number | undefined,
): boolean {
  if (minor === undefined) return false;
  return Number(version.major) > 1 || (Number(version.major) === 1 && Number(version.minor) > minor);
}

/**
 * Reports whether a `com.redhat.openshift.versions` label contains a version: `v4.12` and later, only `=v4.12`, or
 * the range `v4.12-v4.15` with both ends; `v4.5,v4.6` is an old form of `v4.5` and later. Undefined for an invalid
 * label.
 */
export function isInVersions(label: string, version: OpenShiftVersion | undefined): boolean | undefined {
  const parts = label.split(',').map((part) => part.trim());
  let isIn = false;
  for (const part of parts) {
    const [, exact, from = '', to] = /^(=)?(v?\d+\.\d+)(?:-(v?\d+\.\d+))?$/.exec(part) ?? [];
    const first = readOpenShiftVersion(from);
    const last = to === undefined ? undefined : readOpenShiftVersion(to);
    if (first === undefined || (exact !== undefined && to !== undefined)) return undefined;
    if (last !== undefined && compareOpenShift(first, last) > 0) return undefined;
    if (version === undefined) continue;
    const order = compareOpenShift(version, first);
    if (
      exact !== undefined
        ? order === 0
        : order >= 0 && (last === undefined || compareOpenShift(version, last) <= 0)
    )
      isIn = true;
  }
  return isIn;
}
