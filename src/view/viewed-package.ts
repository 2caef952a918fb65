import { getOrAdd, groupBy } from '../core/groups.js';
import { schemas } from '../model/declarative-config.js';
import type { CatalogDiagnostic } from '../model/catalog-diagnostic.js';
import type { BundleFacts, CatalogFacts, ChannelFacts, PackageFacts } from '../model/facts.js';
import { formatBundleVersion } from '../graph/bundle-version.js';
import { findHead } from '../graph/channel-graph.js';
import type { ChannelSummary } from './responses.js';
import { deprecationKey, readDeprecations } from '../model/deprecations.js';
import { countBySeverity } from './package-graph.js';

/** Package with its channels, bundles and deprecations; of duplicate names, the first. */
export interface ViewedPackage {
  name: string;
  facts: PackageFacts | undefined;
  channels: Map<string, ChannelFacts>;
  bundles: Map<string, BundleFacts>;
  deprecations: Map<string, string>;
  problems: CatalogDiagnostic[];
}

/** Returns the packages that any facts name. */
export function collectPackages(facts: CatalogFacts): Map<string, ViewedPackage> {
  const packages = new Map<string, ViewedPackage>();
  const add = (name: string): ViewedPackage =>
    getOrAdd(packages, name, () => ({
      name,
      facts: undefined,
      channels: new Map(),
      bundles: new Map(),
      deprecations: new Map(),
      problems: [],
    }));
  for (const packageFacts of facts.packages) add(packageFacts.name).facts ??= packageFacts;
  for (const channel of facts.channels) getOrAdd(add(channel.package).channels, channel.name, () => channel);
  for (const bundle of facts.bundles) getOrAdd(add(bundle.package).bundles, bundle.name, () => bundle);
  for (const [name, blobs] of groupBy(facts.deprecations, (blob) => blob.package)) {
    add(name).deprecations = readDeprecations(blobs);
  }
  return packages;
}

/** Returns the head of the default channel; empty without one. */
export function findDefaultHead({ facts, channels }: ViewedPackage): string {
  return findHead(channels.get(facts?.defaultChannel ?? '')?.entries ?? []);
}

/** Orders `stable-3.9` before `stable-3.10`. */
export const byNumbers = new Intl.Collator('en', { numeric: true });

/** Returns the channels of a package, the default one first. */
export function summarizeChannels(viewedPackage: ViewedPackage): ChannelSummary[] {
  const defaultChannel = viewedPackage.facts?.defaultChannel;
  const problems = groupBy(viewedPackage.problems, ({ channel }) => channel);
  return [...viewedPackage.channels.values()]
    .map(({ name, entries }): ChannelSummary => {
      const head = findHead(entries);
      const deprecation = viewedPackage.deprecations.get(deprecationKey(schemas.channel, name));
      return {
        name,
        isDefault: name === defaultChannel,
        head,
        version: formatBundleVersion(viewedPackage.bundles.get(head)?.packageProperties[0]),
        entries: entries.length,
        ...(deprecation !== undefined && { deprecation }),
        ...countBySeverity(problems.get(name) ?? []),
      };
    })
    .sort((a, b) => Number(b.isDefault) - Number(a.isDefault) || byNumbers.compare(a.name, b.name));
}
