import type { Catalog } from '../../catalog/catalog.js';
import { decodeMeta } from '../../catalog/blob.js';
import { findCsvDisplayName } from '../../catalog/facts.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { getText } from '../../document/json-fields.js';
import {
  compareOpenShift,
  formatOpenShift,
  openShiftMilestones,
  parseOpenShiftVersion,
} from '../../core/openshift-version.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type Version, compareVersions, parseVersion, tryParse } from '../../core/semver.js';
import { type BundleBlob, propertyTypes, schemas } from '../../model/declarative-config.js';
import type { BundleFacts, CatalogFacts } from '../../model/facts.js';
import { getPropertyValue } from '../../model/properties.js';
import { notFound } from '../../core/suggest.js';
import { readBundleVersion } from '../../graph/bundle-version.js';

/**
 * Returns display names by package, or of `packageName` only: from the metadata of the highest version, else from its
 * ClusterServiceVersion. Throws OpmateError. (Source: oc-mirror v2.)
 */
export async function readOperatorNames(
  catalog: Catalog,
  facts: CatalogFacts,
  { packageName, signal }: CancelOptions & { packageName?: string | undefined } = {},
): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (const { package: key, name, origin } of findHighestBundles(facts).values()) {
    throwIfCancelled(signal);
    if ((packageName !== undefined && key !== packageName) || origin === undefined) continue;
    const value = await catalog.read(origin);
    const decoded = decodeMeta({ schema: schemas.bundle, package: key, name, value, origin });
    const displayName = decoded.kind === 'bundle' ? findDisplayName(decoded.blob) : undefined;
    if (displayName !== undefined) names.set(key, displayName);
  }
  return names;
}

/** Returns the bundle with the highest version of each package, of several the last by name. */
function findHighestBundles(facts: CatalogFacts): Map<string, BundleFacts> {
  const highest = new Map<string, { bundle: BundleFacts; version: Version }>();
  for (const bundle of facts.bundles) {
    const version = readBundleVersion(bundle);
    if (version === undefined) continue;
    const known = highest.get(bundle.package);
    const order =
      known === undefined
        ? 1
        : compareVersions(version, known.version) || compareBytes(bundle.name, known.bundle.name);
    if (order > 0) highest.set(bundle.package, { bundle, version });
  }
  return new Map([...highest].map(([name, { bundle }]) => [name, bundle]));
}

function findDisplayName(blob: BundleBlob): string | undefined {
  const metadata = blob.properties.find(({ type }) => type === propertyTypes.csvMetadata);
  return (metadata && getText(getPropertyValue(metadata.value), 'displayName')) || findCsvDisplayName(blob);
}

/** Throws OpmateError NOT_FOUND, with the nearest name, for a missing package. */
export function requirePackageName(facts: CatalogFacts, packageName: string, catalog: string): void {
  const names = facts.packages.map(({ name }) => name);
  if (!names.includes(packageName)) throw notFound('package', packageName, names, { scope: catalog });
}

/**
 * Returns the versions of a channel's bundles, oldest first, then invalid ones as text. Throws OpmateError NOT_FOUND, with
 * the nearest name, for a missing package or channel.
 */
export function listVersions(
  facts: CatalogFacts,
  packageName: string,
  channelName: string,
  catalog: string,
): string[] {
  requirePackageName(facts, packageName, catalog);
  const channels = facts.channels.filter((channel) => channel.package === packageName);
  const channel = channels.find(({ name }) => name === channelName);
  if (channel === undefined) {
    const names = channels.map(({ name }) => name);
    throw notFound('channel', channelName, names, { scope: `package ${quoteGo(packageName)} of ${catalog}` });
  }
  const versions = new Map<string, string>();
  for (const bundle of facts.bundles) {
    const version = bundle.packageProperties[0]?.version;
    if (bundle.package === packageName && version !== undefined) versions.set(bundle.name, version);
  }
  const listed = new Set(channel.entries.flatMap(({ name }) => versions.get(name) ?? []));
  const parsed = sortedByBytes(listed).map((text) => ({ text, version: tryParse(parseVersion, text) }));
  return parsed
    .sort((a, b) => {
      if (a.version !== undefined && b.version !== undefined) return compareVersions(a.version, b.version);
      return Number(a.version === undefined) - Number(b.version === undefined);
    })
    .map(({ text }) => text);
}

/** Returns the default catalogs of an OpenShift version, which may not exist. Throws UsageError. */
export function getDefaultCatalogs(text: string): string[] {
  const version = parseOpenShiftVersion(text);
  const names = ['redhat-operator', 'certified-operator', 'community-operator'];
  if (compareOpenShift(version, openShiftMilestones.noMarketplace) < 0) names.push('redhat-marketplace');
  return names.map((name) => `registry.redhat.io/redhat/${name}-index:v${formatOpenShift(version)}`);
}
