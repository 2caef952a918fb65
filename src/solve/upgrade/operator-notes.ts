import { type OpenShiftVersion, formatOpenShift, getKubernetesMinor } from '../../core/openshift-version.js';
import type { ResolverEntry } from '../v0/resolver-types.js';
import type { InstalledOperator, UpgradeNote, UpgradePackage } from './upgrade-types.js';

/** Returns a note. */
export function note(severity: UpgradeNote['severity'], code: string, text: string): UpgradeNote {
  return { severity, code, text };
}

/**
 * Finds APIs in the objects of a bundle that the Kubernetes of a version has no more. Objects of an installed bundle stay;
 * those of a new one cannot be created.
 */
export function findRemovedApis(
  entry: ResolverEntry,
  version: OpenShiftVersion,
  severity: 'error' | 'warning',
): UpgradeNote[] {
  const minor = getKubernetesMinor(version);
  if (minor === undefined) return [];
  const texts = entry.removedApis
    .filter(({ release }) => Number(release.split('.')[1]) <= minor)
    .map(({ apiVersion, kind, release }) => `${kind} of ${apiVersion}, removed in Kubernetes ${release}`);
  return [...new Set(texts)].map((text) => note(severity, 'removed-api', `${entry.name} contains ${text}`));
}

/** Finds an end of support in the lifecycle that the next catalogs give. */
export function findSupportEnd(
  { versionText, csv }: InstalledOperator,
  later: UpgradePackage | undefined,
  to: OpenShiftVersion,
  today: string,
): UpgradeNote[] {
  const minor = versionText.split('.').slice(0, 2).join('.');
  const lifecycle = later?.lifecycle?.versions.find(({ name }) => name === minor);
  if (lifecycle === undefined) return [];
  const notes: UpgradeNote[] = [];
  const platform = lifecycle.platforms.find(({ name }) => /openshift/i.test(name));
  const target = formatOpenShift(to);
  if (platform !== undefined && !platform.versions.includes(target))
    notes.push(note('warning', 'unsupported-platform', `${csv} is not supported on OpenShift ${target}`));
  const end = lifecycle.phases
    .flatMap(({ endDate }) => endDate ?? [])
    .sort()
    .at(-1);
  if (end !== undefined && end < today)
    notes.push(note('warning', 'end-of-support', `support of ${minor} ended on ${end}`));
  return notes;
}
