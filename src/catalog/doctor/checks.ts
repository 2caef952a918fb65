import type { Severity } from '../../core/diagnostic.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { NameIndex } from '../../core/suggest.js';

/** From the worst onwards. */
export const severities: readonly Severity[] = ['error', 'warning', 'notice'];

/** What the checks look for; the severity is what their findings mostly have. */
export const checks = {
  invalid: { severity: 'error', summary: 'What opmate validate refuses' },
  'all-channels-deprecated': {
    severity: 'warning',
    summary: 'All channels of a package are deprecated, but the package is not',
  },
  'bundle-image-shared': { severity: 'warning', summary: 'Two bundles have the same image' },
  'bundle-image-tag': { severity: 'notice', summary: 'A bundle image is named by a tag' },
  'bundle-size': { severity: 'notice', summary: 'A bundle is very large' },
  'channel-gap': {
    severity: 'notice',
    summary: 'From the head of a channel nothing leads into the channel of the next version',
  },
  'channel-version': {
    severity: 'warning',
    summary: 'A channel is named after a version, and its head is of another one',
  },
  'csv-metadata': {
    severity: 'warning',
    summary: 'A bundle does not have the metadata that the version of OpenShift reads',
  },
  'default-channel-deprecated': { severity: 'warning', summary: 'The default channel is deprecated' },
  'default-channel-lower': {
    severity: 'notice',
    summary: 'The default channel is not the one with the highest version',
  },
  'dependency-unclear': { severity: 'warning', summary: 'What a bundle depends on cannot be read' },
  'dependency-unmet': {
    severity: 'notice',
    summary: 'A bundle depends on what no bundle of the catalog provides',
  },
  description: { severity: 'notice', summary: 'A package has no description' },
  'display-name': { severity: 'notice', summary: 'The head of the default channel has no display name' },
  downgrade: { severity: 'warning', summary: 'An entry replaces, skips or range-skips a higher version' },
  'empty-catalog': { severity: 'warning', summary: 'The catalog has no blobs' },
  'equal-versions': {
    severity: 'warning',
    summary: 'The versions of two bundles differ in build metadata only',
  },
  'head-deprecated': {
    severity: 'warning',
    summary: 'The head of a channel is deprecated, but the channel is not',
  },
  'head-not-highest': { severity: 'warning', summary: 'The head of a channel is lower than another entry' },
  icon: { severity: 'warning', summary: 'An icon is missing, or is not what it says' },
  'image-two-digests': { severity: 'notice', summary: 'One tag of a repository stands for two images' },
  lifecycle: {
    severity: 'warning',
    summary: 'A lifecycle blob of OpenShift cannot be read, or does not fit the catalog',
  },
  'max-openshift': {
    severity: 'warning',
    summary: 'olm.maxOpenShiftVersion cannot be read, or is below the version of OpenShift',
  },
  'min-kube': {
    severity: 'warning',
    summary: 'minKubeVersion cannot be read, or is above the version of OpenShift',
  },
  'misspelled-name': {
    severity: 'warning',
    summary: 'A name in replaces or skips is not an entry, but looks like one',
  },
  'openshift-versions': {
    severity: 'warning',
    summary: 'com.redhat.openshift.versions cannot be read, or leaves out the version of OpenShift',
  },
  'property-repeated': { severity: 'notice', summary: 'A bundle has a property twice' },
  'related-image-empty': { severity: 'warning', summary: 'A related image is empty' },
  'related-image-missing': {
    severity: 'warning',
    summary: 'An image that a bundle uses is none of its related images',
  },
  'related-image-tag': { severity: 'notice', summary: 'A related image is named by a tag' },
  'replaces-outside': { severity: 'notice', summary: 'An entry replaces what is not in the channel' },
  'skip-range-empty': { severity: 'warning', summary: 'No version is in a skipRange' },
  'skip-range-hole': { severity: 'notice', summary: 'A skipRange leaves out versions between others' },
  'skip-range-self': { severity: 'notice', summary: 'The version of an entry is in its own skipRange' },
  'skipped-in-chain': {
    severity: 'warning',
    summary: 'An entry that the chain of replaces needs is skipped by one that nothing replaces or skips',
  },
  unreachable: { severity: 'warning', summary: 'From an entry nothing leads on to the head' },
  'v1-support': { severity: 'notice', summary: 'OLM v1 does not install the head of the default channel' },
} as const satisfies Record<string, { severity: Severity; summary: string }>;

/** The name of a check. */
export type CheckName = keyof typeof checks;

/** All names in byte order, `invalid` first. */
export const checkNames = Object.keys(checks) as CheckName[];

/**
 * The checks to run: those that are named, or all, without those to be skipped. Throws UsageError for a name that is
 * none.
 */
export function chooseChecks(
  only: readonly string[] | undefined,
  skipped: readonly string[] = [],
): ReadonlySet<CheckName> {
  for (const name of [...(only ?? []), ...skipped]) {
    if (Object.hasOwn(checks, name)) continue;
    const near = new NameIndex(checkNames).nearest(name);
    const hint = near === undefined ? `the checks are ${checkNames.join(', ')}` : `write ${near}`;
    throw new UsageError(`unknown check ${quoteGo(name)}`, { hint });
  }
  const chosen = checkNames.filter((name) => only === undefined || only.includes(name));
  return new Set(chosen.filter((name) => !skipped.includes(name)));
}
