import { schemas } from '../model/declarative-config.js';
import type { CatalogDiagnostic } from '../model/catalog-diagnostic.js';
import type { BundleFacts, ChannelFacts, DeprecationsFacts, PackageFacts } from '../model/facts.js';
import { formatBundleVersion } from '../graph/bundle-version.js';
import { findHead } from '../graph/channel-graph.js';
import type { ChannelSummary } from './responses.js';
import { countBySeverity, deprecationKey } from './package-graph.js';

/** Package with its channels, bundles and deprecations; of duplicate names, the first. */
export interface ViewedPackage {
  name: string;
  facts: PackageFacts | undefined;
  channels: Map<string, ChannelFacts>;
  bundles: Map<string, BundleFacts>;
  deprecations: Map<string, string>;
  heading: PackageHeading;
  problems: CatalogDiagnostic[];
}

/** Fields of a package that the list of packages and searches use. */
export interface PackageHeading {
  displayName: string;
  provider: string;
  summary: string;
  hasIcon: boolean;
  categories: string[];
  keywords: string[];
  description: string;
  openshift?: { min?: number; max?: number };
}

/** Returns a package without contents. */
export function createViewedPackage(name: string): ViewedPackage {
  return {
    ...{ name, facts: undefined, channels: new Map(), bundles: new Map(), deprecations: new Map() },
    heading: {
      ...{ displayName: '', provider: '', summary: '', description: '' },
      ...{ hasIcon: false, categories: [], keywords: [] },
    },
    problems: [],
  };
}

/** Adds deprecations to a package; the first one of a reference takes precedence. */
export function addDeprecations({ deprecations }: ViewedPackage, { entries }: DeprecationsFacts): void {
  for (const { reference, message } of entries) {
    const key = deprecationKey(reference.schema, reference.name);
    if (!deprecations.has(key)) deprecations.set(key, message);
  }
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
        ...countBySeverity(viewedPackage.problems.filter(({ channel }) => channel === name)),
      };
    })
    .sort((a, b) => Number(b.isDefault) - Number(a.isDefault) || byNumbers.compare(a.name, b.name));
}
