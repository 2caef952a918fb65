import { quoteGo } from '../../document/go-json.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type Version, compareVersions, parseVersion } from '../../core/semver.js';
import { schemas } from '../../model/declarative-config.js';
import type {
  BundleFacts,
  CatalogFacts,
  ChannelFacts,
  DeprecationsFacts,
  PackageFacts,
} from '../../model/facts.js';
import { readGraph } from '../../graph/channel-graph.js';

/** One package of a catalog, to choose from. */
export interface PackageModel {
  facts: PackageFacts;
  channels: Map<string, ChannelFacts>;
  bundles: Map<string, BundleFacts>;
  deprecations: DeprecationsFacts[];
}

/** The packages of a catalog; of several blobs of one name the first counts. */
export function modelsOf(facts: CatalogFacts): Map<string, PackageModel> {
  const models = new Map<string, PackageModel>();
  for (const one of facts.packages) {
    if (models.has(one.name)) continue;
    models.set(one.name, { facts: one, channels: new Map(), bundles: new Map(), deprecations: [] });
  }
  for (const channel of facts.channels) {
    const known = models.get(channel.package)?.channels;
    if (known?.has(channel.name) === false) known.set(channel.name, channel);
  }
  for (const bundle of facts.bundles) {
    const known = models.get(bundle.package)?.bundles;
    if (known?.has(bundle.name) === false) known.set(bundle.name, bundle);
  }
  for (const one of facts.deprecations) models.get(one.package)?.deprecations.push(one);
  return models;
}

/** Deprecations without those of what is not there any more. */
export function deprecationsOf(
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

const maxListed = 10;

/** A sentence that ends with names: `it has "a", "b" and 7 more`. */
export function listed(begin: string, names: Iterable<string>): string {
  const sorted = sortedByBytes(names).filter((name) => name !== '');
  const more = sorted.length - maxListed;
  const shown = sorted.slice(0, maxListed).map(quoteGo).join(', ') || 'nothing';
  return `${begin} ${shown}${more > 0 ? ` and ${more} more` : ''}`;
}

/** The version of a bundle; undefined where it has none that can be read, which validation reports. */
export function versionOf({ packageProperties }: BundleFacts): Version | undefined {
  try {
    return parseVersion(packageProperties[0]?.version ?? '');
  } catch {
    return undefined;
  }
}

/** Compares versions; what has none is below all that has one. */
export function compareKnown(a: Version | undefined, b: Version | undefined): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return compareVersions(a, b);
}

/** The channel whose head has the highest version, of equal ones the first by name; empty where there is none. */
export function channelOfHighestHead(
  channels: readonly ChannelFacts[],
  versions: ReadonlyMap<string, Version>,
): string {
  const heads = channels.map(({ name, entries }) => ({
    name,
    version: versions.get(readGraph(entries).heads[0] ?? ''),
  }));
  heads.sort((a, b) => compareKnown(b.version, a.version) || compareBytes(a.name, b.name));
  return heads[0]?.name ?? '';
}
