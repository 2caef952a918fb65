import { notFound } from '../core/suggest.js';
import { getOrAdd } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import type { CatalogFacts } from '../model/facts.js';
import { type ChannelGraph, describeHeadFault, getOnlyHead, readGraph } from './channel-graph.js';

/** Rows that `list` prints. For an invalid catalog they come from the first blob with each name. */

/** A row of `list packages`. */
export interface PackageRow {
  name: string;
  displayName: string;
  defaultChannel: string;
}

/** A row of `list channels`; `head` is `ERROR: …` without an only head. */
export interface ChannelRow {
  package: string;
  channel: string;
  head: string;
}

/** A row of `list bundles`: a bundle in one channel. */
export interface BundleRow {
  package: string;
  channel: string;
  bundle: string;
  replaces: string;
  skips: string[];
  skipRange: string;
  image: string;
}

/** Returns all packages by name. The caller reads display names from manifests. */
export function listPackages(
  facts: CatalogFacts,
  displayNames: ReadonlyMap<string, string> = new Map(),
): PackageRow[] {
  return facts.packages
    .map(({ name, defaultChannel }) => ({ name, displayName: displayNames.get(name) ?? '', defaultChannel }))
    .sort((a, b) => compareBytes(a.name, b.name));
}

/**
 * Returns all channels by package and name, optionally of one package. Throws OpmateError NOT_FOUND for an unknown
 * package.
 */
export function listChannels(facts: CatalogFacts, packageName = ''): ChannelRow[] {
  return selectChannels(facts, packageName).map((channel) => ({
    package: channel.package,
    channel: channel.name,
    head: headCell(readGraph(channel.entries)),
  }));
}

function headCell(graph: ChannelGraph): string {
  const fault = describeHeadFault(graph);
  return fault === undefined ? (graph.heads[0] as string) : `ERROR: ${fault}`;
}

/** Returns the bundles of all channels by package, channel and name. Throws as `listChannels`. */
export function listBundles(facts: CatalogFacts, packageName = ''): BundleRow[] {
  const images = new Map<string, Map<string, string>>();
  for (const { package: of, name, image } of facts.bundles) {
    getOrAdd(images, of, () => new Map<string, string>()).set(name, image);
  }
  return selectChannels(facts, packageName).flatMap((channel) =>
    [...channel.entries]
      .sort((a, b) => compareBytes(a.name, b.name))
      .map(({ name, replaces, skips, skipRange }) => ({
        package: channel.package,
        channel: channel.name,
        bundle: name,
        replaces,
        skips,
        skipRange,
        image: images.get(channel.package)?.get(name) ?? '',
      })),
  );
}

function selectChannels(facts: CatalogFacts, packageName: string): CatalogFacts['channels'] {
  if (packageName !== '' && !facts.packages.some(({ name }) => name === packageName)) {
    const known = facts.packages.map(({ name }) => name);
    throw notFound('package', packageName, known);
  }
  return facts.channels
    .filter((channel) => packageName === '' || channel.package === packageName)
    .sort((a, b) => compareBytes(a.package, b.package) || compareBytes(a.name, b.name));
}

/**
 * Returns the head bundle of each package's default channel, by package. Omits packages whose default channel has no
 * only head. Display names are read from its manifest.
 */
export function findDefaultHeads(facts: CatalogFacts): Map<string, string> {
  const defaults = new Map(facts.packages.map(({ name, defaultChannel }) => [name, defaultChannel]));
  const heads = new Map<string, string>();
  for (const channel of facts.channels) {
    if (channel.name === '' || defaults.get(channel.package) !== channel.name) continue;
    const head = getOnlyHead(readGraph(channel.entries));
    if (head !== undefined) heads.set(channel.package, head);
  }
  return heads;
}
