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

/** A package with its blobs, the first of each name. */
export interface PackageModel {
  facts: PackageFacts;
  channels: Map<string, ChannelFacts>;
  bundles: Map<string, BundleFacts>;
  deprecations: DeprecationsFacts[];
}

/** Returns the packages of a catalog by name; the first of duplicate blobs. */
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

/** Returns a catalog of one package. */
export function toFacts({ facts, channels, bundles, deprecations }: PackageModel): CatalogFacts {
  return {
    packages: [facts],
    channels: [...channels.values()],
    bundles: [...bundles.values()],
    deprecations: [...deprecations],
  };
}

/** Reports whether a package has an `olm.package` blob only. */
export function isOnlyBegun({ channels, bundles, deprecations }: PackageModel): boolean {
  return channels.size === 0 && bundles.size === 0 && deprecations.length === 0;
}

/** Returns deprecations without those of removed channels and bundles; none if nothing remains. */
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
 * Returns the channel whose head has the highest version, the first by name of equal ones; empty without channels.
 * `heads` are by channel, known `versions` by bundle.
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
