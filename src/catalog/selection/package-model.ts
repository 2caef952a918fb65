import { quoteGo } from '../../core/go-json.js';
import { sortedByBytes } from '../../core/order.js';
import { schemas } from '../../model/declarative-config.js';
import type {
  BundleFacts,
  CatalogFacts,
  ChannelFacts,
  DeprecationsFacts,
  PackageFacts,
} from '../../model/facts.js';

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
  const sorted = sortedByBytes(names);
  const more = sorted.length - maxListed;
  const shown = sorted.slice(0, maxListed).map(quoteGo).join(', ') || 'nothing';
  return `${begin} ${shown}${more > 0 ? ` and ${more} more` : ''}`;
}
