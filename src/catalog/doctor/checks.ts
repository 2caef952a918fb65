import type { Severity } from '../../core/diagnostic.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { NameIndex } from '../../core/suggest.js';

/** Checks with their summary and default severity. */
export const checks = {
  invalid: { severity: 'error', summary: 'Errors of catalog validation' },
  'all-channels-deprecated': {
    severity: 'warning',
    summary: 'All channels of a package are deprecated, but the package is not',
  },
  'bundle-image-missing': {
    severity: 'warning',
    summary: 'A bundle has no image, which OLM v1 and mirroring need',
  },
  'bundle-image-shared': { severity: 'warning', summary: 'Two bundles have the same image' },
  'bundle-image-tag': { severity: 'notice', summary: 'A bundle image is referenced by tag' },
  'bundle-size': { severity: 'notice', summary: 'A bundle is very large' },
  'channel-gap': {
    severity: 'notice',
    summary: 'No upgrade from the head of a channel into the channel of the next version',
  },
  'channel-version': {
    severity: 'warning',
    summary: 'A channel is named after a version, but its head has another version',
  },
  'csv-metadata': {
    severity: 'warning',
    summary: 'A bundle lacks metadata that the OpenShift version reads',
  },
  'default-channel-deprecated': { severity: 'warning', summary: 'The default channel is deprecated' },
  'default-channel-lower': {
    severity: 'notice',
    summary: 'The default channel is not the one with the highest version',
  },
  'dependency-unclear': { severity: 'warning', summary: 'A dependency of a bundle cannot be parsed' },
  'dependency-unmet': {
    severity: 'notice',
    summary: 'A dependency is not provided by any bundle of the catalog',
  },
  description: { severity: 'notice', summary: 'A package has no description' },
  'display-name': { severity: 'notice', summary: 'The head of the default channel has no display name' },
  downgrade: { severity: 'warning', summary: 'An entry replaces, skips or range-skips a higher version' },
  'empty-catalog': { severity: 'error', summary: 'The catalog has no blobs' },
  'equal-versions': {
    severity: 'warning',
    summary: 'The versions of two bundles differ in build metadata only',
  },
  'head-deprecated': {
    severity: 'warning',
    summary: 'The head of a channel is deprecated, but the channel is not',
  },
  'head-not-highest': { severity: 'warning', summary: 'The head of a channel is lower than another entry' },
  icon: { severity: 'warning', summary: 'An icon is missing or does not match its media type' },
  'image-two-digests': { severity: 'notice', summary: 'One tag of a repository refers to two images' },
  lifecycle: {
    severity: 'warning',
    summary: 'A lifecycle blob of OpenShift is invalid or does not match the catalog',
  },
  'max-openshift': {
    severity: 'warning',
    summary: 'olm.maxOpenShiftVersion is invalid or below the OpenShift version',
  },
  'min-kube': {
    severity: 'warning',
    summary: 'minKubeVersion is invalid or above the Kubernetes of the OpenShift version',
  },
  'misspelled-field': { severity: 'warning', summary: 'A field is unknown, but resembles a known one' },
  'misspelled-name': {
    severity: 'warning',
    summary: 'A name in replaces or skips, or a schema, is unknown, but resembles a known one',
  },
  'openshift-versions': {
    severity: 'warning',
    summary: 'com.redhat.openshift.versions is invalid or excludes the OpenShift version',
  },
  'property-repeated': { severity: 'notice', summary: 'A bundle has a duplicate property' },
  'related-image-empty': { severity: 'warning', summary: 'A related image is empty' },
  'related-image-missing': {
    severity: 'warning',
    summary: 'An image that a bundle uses is missing from its related images',
  },
  'related-image-tag': { severity: 'notice', summary: 'A related image is referenced by tag' },
  'replaces-outside': { severity: 'notice', summary: 'An entry replaces a bundle outside the channel' },
  'skip-range-empty': { severity: 'warning', summary: 'A skipRange matches no version' },
  'skip-range-hole': { severity: 'notice', summary: 'A skipRange has a gap between versions' },
  'skip-range-self': { severity: 'notice', summary: 'The version of an entry is in its own skipRange' },
  'skipped-in-chain': {
    severity: 'warning',
    summary: 'An entry of the replaces chain is skipped by an entry outside the chain',
  },
  unreachable: { severity: 'warning', summary: 'An entry has no upgrade path to the head' },
  'v1-support': { severity: 'notice', summary: 'OLM v1 cannot install the head of the default channel' },
} as const satisfies Record<string, { severity: Severity; summary: string }>;

/** Name of a check. */
export type CheckName = keyof typeof checks;

/** All names in byte order, `invalid` first. */
export const checkNames = Object.keys(checks) as CheckName[];

/** Returns the checks to run: the named ones or all, without skipped ones. Throws UsageError for an unknown name. */
export function chooseChecks(
  only: readonly string[] | undefined,
  skipped: readonly string[] = [],
): ReadonlySet<CheckName> {
  for (const name of [...(only ?? []), ...skipped]) {
    if (Object.hasOwn(checks, name)) continue;
    const near = new NameIndex(checkNames).nearest(name);
    const hint = near === undefined ? `use one of ${checkNames.join(', ')}` : `use ${near}`;
    throw new UsageError(`unknown check ${quoteGo(name)}`, { hint });
  }
  const chosen = checkNames.filter((name) => only === undefined || only.includes(name));
  return new Set(chosen.filter((name) => !skipped.includes(name)));
}
