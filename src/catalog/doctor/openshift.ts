import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';

/** A version of OpenShift, such as 4.18. */
export interface OpenShiftVersion {
  major: number;
  minor: number;
}

/** Reads `4.18`, `v4.18` or `4.18.3`, of which the last part does not count. Undefined for other text. */
export function readOpenShiftVersion(text: string): OpenShiftVersion | undefined {
  const [, major, minor] = /^\s*v?(\d{1,4})\.(\d{1,4})(?:\.\d.*)?\s*$/.exec(text) ?? [];
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}

/** The same for what a user wrote. Throws UsageError. */
export function parseOpenShiftVersion(text: string): OpenShiftVersion {
  const version = readOpenShiftVersion(text);
  if (version !== undefined) return version;
  throw new UsageError(`invalid version of OpenShift ${quoteGo(text)}`, {
    hint: 'use a version such as 4.18',
  });
}

/** Which of two versions is the later one. */
export function compareOpenShift(a: OpenShiftVersion, b: OpenShiftVersion): number {
  return a.major - b.major || a.minor - b.minor;
}

/** The version as it is written: `4.18`. */
export function formatOpenShift({ major, minor }: OpenShiftVersion): string {
  return `${major}.${minor}`;
}

/** The first version whose catalogs are to have `olm.csv.metadata` in place of `olm.bundle.object`. */
export const firstWithCsvMetadata: OpenShiftVersion = { major: 4, minor: 17 };

/** The minor version of Kubernetes 1 that a version of OpenShift 4 is made of; undefined where that is not known. */
export function getKubernetesMinor({ major, minor }: OpenShiftVersion): number | undefined {
  return major === 4 && minor >= 3 ? minor + 13 : undefined;
}

/** Minor versions of OpenShift 4 among which limits are looked for; what holds at an end is no limit. */
const [firstMinor, lastMinor] = [3, 60];

/**
 * Returns the first and the last minor version of OpenShift 4 that a bundle allows by its `olm.maxOpenShiftVersion`,
 * `com.redhat.openshift.versions` and `minKubeVersion`; either is left out where there is no limit. Undefined where it
 * allows none. Of labels that name single versions, the first and last.
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

/** Whether a version is above minor version `minor` of Kubernetes 1; no version is above one that is not known. */
export function isAboveKubernetes(
  version: { major: number | bigint; minor: number | bigint },
  minor: number | undefined,
): boolean {
  if (minor === undefined) return false;
  return Number(version.major) > 1 || (Number(version.major) === 1 && Number(version.minor) > minor);
}

/**
 * Whether a version is among those of a `com.redhat.openshift.versions` label: `v4.12` for it and all later ones,
 * `=v4.12` for it alone, `v4.12-v4.15` for a range with its ends; `v4.5,v4.6` is an old way to write `v4.5` and later.
 * Undefined for what is none of these.
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
