import { compareBytes } from '../core/order.js';
import { type Version, compareVersions, parseVersion, tryParse } from '../core/semver.js';
import type { BundleFacts } from '../model/facts.js';

/** Returns the version of a bundle; undefined where it has none that parses, which validation reports. */
export function readBundleVersion(bundle: BundleFacts | undefined): Version | undefined {
  return tryParse(parseVersion, bundle?.packageProperties[0]?.version ?? '');
}

/** Returns versions by bundle name, without bundles whose version does not parse. */
export function readBundleVersions(bundles: Iterable<BundleFacts>): Map<string, Version> {
  const versions = new Map<string, Version>();
  for (const bundle of bundles) {
    const version = readBundleVersion(bundle);
    if (version !== undefined) versions.set(bundle.name, version);
  }
  return versions;
}

/** Orders by version; bundles without one come before all others. */
export function compareKnownVersions(a: Version | undefined, b: Version | undefined): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return compareVersions(a, b);
}

/** Returns bundle names newest first; of equal versions in byte order, those without a version last. */
export function sortNewestFirst(
  names: Iterable<string>,
  versions: ReadonlyMap<string, Version | undefined>,
): string[] {
  return [...names].sort(
    (a, b) => compareKnownVersions(versions.get(b), versions.get(a)) || compareBytes(a, b),
  );
}
