import { compareBytes } from '../core/order.js';
import { type Version, compareVersions } from '../core/semver.js';
import { schemas } from '../model/declarative-config.js';
import type {
  BundleFacts,
  CatalogFacts,
  ChannelFacts,
  DeprecationsFacts,
  PackageFacts,
} from '../model/facts.js';
import { compareKnownVersions } from './bundle-version.js';

/** A package with all that belongs to it, of each name the first. */
export interface PackageModel {
  facts: PackageFacts;
  channels: Map<string, ChannelFacts>;
  bundles: Map<string, BundleFacts>;
  deprecations: DeprecationsFacts[];
}

/** Returns the packages of a catalog by name; of several blobs with one name, the first. */
export function readPackages(facts: CatalogFacts): Map<string, PackageModel> {
  const models = new Map<string, PackageModel>();
  for (const packageFacts of facts.packages) {
    if (models.has(packageFacts.name)) continue;
    models.set(packageFacts.name, {
      facts: packageFacts,
      channels: new Map(),
      bundles: new Map(),
      deprecations: [],
    });
  }
  for (const channel of facts.channels) {
    const known = models.get(channel.package)?.channels;
    if (known?.has(channel.name) === false) known.set(channel.name, channel);
  }
  for (const bundle of facts.bundles) {
    const known = models.get(bundle.package)?.bundles;
    if (known?.has(bundle.name) === false) known.set(bundle.name, bundle);
  }
  for (const deprecationsFacts of facts.deprecations)
    models.get(deprecationsFacts.package)?.deprecations.push(deprecationsFacts);
  return models;
}

/** Tells whether a package is only begun: an `olm.package` blob to which nothing belongs yet. */
export function isOnlyBegun({ channels, bundles, deprecations }: PackageModel): boolean {
  return channels.size === 0 && bundles.size === 0 && deprecations.length === 0;
}

/** Returns deprecations without those of removed channels and bundles; none where nothing is left. */
export function keepDeprecations(
  facts: DeprecationsFacts,
  channels: ReadonlySet<string>,
  bundles: ReadonlySet<string>,
): DeprecationsFacts[] {
  const entries = facts.entries.filter(({ reference: { schema, name } }) => {
    if (schema === schemas.channel) return channels.has(name);
    return schema !== schemas.bundle || bundles.has(name);
  });
  return entries.length === 0 ? [] : [{ ...facts, entries }];
}

/**
 * Returns the channel whose head has the highest version, of equal ones the first by name; empty without channels.
 * `heads` are by channel, `versions` by bundle, as far as they are known.
 */
export function findHighestChannel(
  heads: ReadonlyMap<string, string>,
  versions: ReadonlyMap<string, Version | undefined>,
  compare = compareVersions,
): string {
  const ranked = [...heads].map(([channel, head]) => ({ channel, version: versions.get(head) }));
  ranked.sort(
    (a, b) => compareKnownVersions(b.version, a.version, compare) || compareBytes(a.channel, b.channel),
  );
  return ranked[0]?.channel ?? '';
}
