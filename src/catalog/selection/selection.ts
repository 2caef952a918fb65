import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { compareBytes } from '../../core/order.js';
import { type PackageModel, keepDeprecations, readPackages } from '../../graph/package-model.js';
import { readGraph } from '../../graph/channel-graph.js';
import type { CatalogFacts, ChannelFacts } from '../../model/facts.js';
import { validateCatalog } from '../../graph/validate.js';

/** A kept bundle that was not requested, with the reason. */
export interface KeptBundle {
  package: string;
  channel: string;
  bundle: string;
  /** Continues a sentence that starts with the bundle. */
  reason: string;
}

interface SelectedChannel {
  name: string;
  head: string;
  entries: number;
}

interface SelectedPackage {
  name: string;
  defaultChannel: string;
  channels: SelectedChannel[];
  bundles: number;
}

/** Selected content of a catalog. */
export interface CatalogSelection {
  /** The catalog is used unchanged, not rebuilt. */
  isWhole: boolean;
  /** Content of the rebuilt catalog. */
  facts: CatalogFacts;
  /** Packages by name. */
  packages: SelectedPackage[];
  /** Kept bundles by package, channel and position. */
  kept: KeptBundle[];
  /** Omissions that may be unintended. */
  warnings: string[];
  /** One sentence each: rewired edges, new heads and default channels. */
  changes: string[];
}

/** Selects a whole catalog. */
export function wholeCatalog(facts: CatalogFacts): CatalogSelection {
  const packages = [...readPackages(facts).values()].map(
    ({ facts: { name, defaultChannel }, channels, bundles }): SelectedPackage => ({
      name,
      defaultChannel,
      channels: summarizeChannels(channels.values()),
      bundles: bundles.size,
    }),
  );
  packages.sort((a, b) => compareBytes(a.name, b.name));
  return { isWhole: true, facts, packages, kept: [], warnings: [], changes: [] };
}

/** Returns the part of a package with these channels, with its bundles, deprecations and summary. */
export function keepChannels(
  { facts, bundles, deprecations }: PackageModel,
  channels: readonly ChannelFacts[],
  defaultChannel: string,
): { facts: CatalogFacts; summary: SelectedPackage } {
  const channelNames = new Set(channels.map(({ name }) => name));
  const bundleNames = new Set(channels.flatMap(({ entries }) => entries.map(({ name }) => name)));
  const kept: CatalogFacts = {
    packages: [{ ...facts, defaultChannel }],
    channels: [...channels],
    bundles: [...bundles.values()].filter(({ name }) => bundleNames.has(name)),
    deprecations: deprecations.flatMap((deprecationsFacts) =>
      keepDeprecations(deprecationsFacts, channelNames, bundleNames),
    ),
  };
  const summary = {
    name: facts.name,
    defaultChannel,
    channels: summarizeChannels(channels),
    bundles: kept.bundles.length,
  };
  return { facts: kept, summary };
}

/** Adds the facts of one part of a catalog to another. */
export function addPart(facts: CatalogFacts, part: CatalogFacts): void {
  for (const packageFacts of part.packages) facts.packages.push(packageFacts);
  for (const channel of part.channels) facts.channels.push(channel);
  for (const bundle of part.bundles) facts.bundles.push(bundle);
  for (const deprecationsFacts of part.deprecations) facts.deprecations.push(deprecationsFacts);
}

function summarizeChannels(channels: Iterable<ChannelFacts>): SelectedChannel[] {
  return [...channels].map(({ name, entries }) => ({
    name,
    head: readGraph(entries).heads[0] ?? '',
    entries: entries.length,
  }));
}

/** Maximum problems of a catalog in one error. */
const maxFaultsNamed = 20;

/** Throws OpmateError INVALID with the problems of an invalid catalog. */
export function requireValid(facts: CatalogFacts, catalog: string): void {
  const { problems } = validateCatalog(facts);
  if (problems.length === 0) return;
  const shown = problems.slice(0, maxFaultsNamed).map(({ severity, code, problem, hint }): Diagnostic => {
    return { severity, code, subject: catalog, problem, hint };
  });
  const more = problems.length - shown.length;
  if (more > 0) {
    shown.push(createFault('more', `and ${more} more problems`, { subject: catalog }));
  }
  throw new DiagnosticsError(shown);
}
