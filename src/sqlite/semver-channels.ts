import { OpmateError, messageOf } from '../core/errors.js';
import { sortedByBytes } from '../core/order.js';
import { type Version, compareVersions, formatVersion, parseVersion } from '../core/semver.js';
import type { BundleRecord } from './bundle-record.js';
import { type ChannelGraph, type GraphNode, channelGraphs, writeChannelGraphs } from './channel-graph.js';
import type { Database } from './database.js';
import { readPackage } from './package-state.js';
import { joinMessages } from '../core/problems.js';

/**
 * Puts bundles of one package, whose rows are there already, into its channels by their versions, and writes
 * the entries of all channels of the package. What the bundles replace and skip has no say. Build metadata
 * does not count.
 *
 * A new bundle goes between the lowest version above it and the highest below it. With `skipPatch`, of each
 * major.minor that gets a bundle only the highest version stays in the line; it skips all others of that
 * major.minor, and what these skipped. What was skipped before stays so, and the result does not depend on
 * the order in which bundles come, be it in one call or in many.
 *
 * The default channel is the one that the last of the bundles with one names; otherwise it stays; a package
 * without one gets the first channel of its first bundle, by name.
 *
 * Throws OpmateError INVALID, with the package left as it was, for a version that is there already or is no
 * semantic version, a graph that has no single head or does not go by version where a bundle would have to
 * be put in, and a default channel that does not exist.
 */
export async function addToSemverChannels(
  database: Database,
  packageName: string,
  records: readonly BundleRecord[],
  options: { skipPatch: boolean },
): Promise<void> {
  const fail = (what: string, hint?: string): OpmateError =>
    new OpmateError('INVALID', `package "${packageName}": ${what}`, { file: database.name, hint });
  const state = readPackage(database, packageName);
  const graphs = channelGraphs(database, packageName, state, new Set(records.map(({ name }) => name)));
  const lines = new Map<string, ChannelLine>();
  const lineOf = (channel: string): ChannelLine => {
    let line = lines.get(channel);
    if (line === undefined) {
      const graph = graphs.get(channel) ?? { name: channel, head: undefined, skipped: new Map() };
      graphs.set(channel, graph);
      line = new ChannelLine(graph, fail);
      lines.set(channel, line);
    }
    return line;
  };

  const problems: string[] = [];
  const versions = new Map<BundleRecord, Version>();
  for (const record of records) {
    const found = versionOf(record);
    if (typeof found === 'string') {
      problems.push(found);
      continue;
    }
    if (record.channels.length === 0) problems.push(`bundle "${record.name}" names no channel`);
    versions.set(record, found);
    for (const channel of new Set(record.channels)) {
      const other = lineOf(channel).claim(found, record.name);
      if (other === undefined) continue;
      problems.push(
        `bundle "${record.name}": Bundle version ${record.version} already added to index: it is bundle "${other}" in channel "${channel}"`,
      );
    }
  }
  if (problems.length > 0) {
    throw fail(
      joinMessages(problems),
      'in the semver modes each bundle of a channel has a semantic version of its own, whatever its build metadata',
    );
  }

  let { defaultChannel } = state;
  for (const [record, version] of versions) {
    for (const channel of new Set(record.channels)) lineOf(channel).add(record, version, options.skipPatch);
    if (record.defaultChannel !== '') ({ defaultChannel } = record);
    else if (defaultChannel === '') defaultChannel = sortedByBytes(record.channels)[0] ?? '';
  }
  if (!graphs.has(defaultChannel) && !state.channels.has(defaultChannel)) {
    throw fail(
      `the default channel (${defaultChannel}) does not exist`,
      `name one of its channels in the annotations of the bundle: ${sortedByBytes(graphs.keys()).join(', ')}`,
    );
  }
  await database.transaction(() =>
    writeChannelGraphs(database, packageName, graphs.values(), defaultChannel),
  );
}

/** Its version; a text is what is wrong with it. */
function versionOf({ name, version }: BundleRecord): Version | string {
  if (version === '') return `bundle "${name}" has no version, can't insert in semver mode`;
  try {
    return parseVersion(version);
  } catch (error) {
    return `bundle "${name}": Bundle version ${version} is not valid: ${messageOf(error)}`;
  }
}

interface Place {
  version: Version;
  node: GraphNode;
}

/** A channel whose nodes can be found by version. */
class ChannelLine {
  readonly #graph: ChannelGraph;
  readonly #fail: (what: string, hint?: string) => OpmateError;
  /** Nodes by ascending version, whatever their order in the graph. */
  readonly #places: Place[] = [];
  /** Who has which version, skipped bundles too. */
  readonly #owners = new Map<string, string>();

  constructor(graph: ChannelGraph, fail: (what: string, hint?: string) => OpmateError) {
    this.#graph = graph;
    this.#fail = (what, hint) => fail(`channel "${graph.name}": ${what}`, hint);
    for (let node = graph.head; node !== undefined; node = node.next) {
      const version = this.#parse(node);
      this.#places.push({ version, node });
      this.#owners.set(precedenceOf(version), node.name);
    }
    this.#places.sort((a, b) => compareVersions(a.version, b.version));
    for (const [name, text] of graph.skipped) {
      try {
        this.#owners.set(precedenceOf(parseVersion(text)), name);
      } catch {
        // What is skipped is never compared, so it needs no version.
      }
    }
  }

  /** Takes a version for a bundle. Returns the name of the bundle that has it already, if there is one. */
  claim(version: Version, name: string): string | undefined {
    const key = precedenceOf(version);
    const owner = this.#owners.get(key);
    if (owner === undefined) this.#owners.set(key, name);
    return owner;
  }

  add(record: BundleRecord, version: Version, skipPatch: boolean): void {
    const at = this.#lowerBound(version);
    const node: GraphNode = {
      name: record.name,
      version: record.version,
      next: undefined,
      previous: undefined,
      skips: new Set(),
    };
    if (!skipPatch) {
      this.#insert(at, { version, node });
      return;
    }
    const isMate = (place: Place | undefined): place is Place =>
      place?.version.major === version.major && place.version.minor === version.minor;
    let first = at;
    let end = at;
    while (isMate(this.#places[first - 1])) first--;
    while (isMate(this.#places[end])) end++;
    // The highest takes in all others; the new bundle may be one of these.
    const highest = end > at ? (this.#places[end - 1] as Place).node : node;
    for (const { node: mate } of this.#places.slice(first, end)) {
      if (mate !== highest) this.#fold(mate, highest);
    }
    if (highest === node) {
      this.#places.splice(first, end - first);
      this.#insert(first, { version, node });
    } else {
      this.#places.splice(first, end - 1 - first);
      highest.skips.add(node.name);
    }
  }

  #parse(node: GraphNode): Version {
    try {
      return parseVersion(node.version);
    } catch (error) {
      throw this.#fail(
        `Unable to parse existing bundle version stored in index: bundle "${node.name}" "${node.version}": ${messageOf(error)}`,
        'add to this package in replaces mode',
      );
    }
  }

  /** Position of the first node that has this version or a higher one. */
  #lowerBound(version: Version): number {
    let low = 0;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareVersions((this.#places[middle] as Place).version, version) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #insert(at: number, place: Place): void {
    const { node } = place;
    const above = this.#places[at]?.node;
    const below = this.#places[at - 1]?.node;
    const follower = above === undefined ? this.#graph.head : above.next;
    if (follower !== below) {
      throw this.#fail(
        `Invalid graph: bundle "${node.name}" belongs ${above === undefined ? 'at the head' : `below "${above.name}"`} and ${below === undefined ? 'at the end' : `above "${below.name}"`}, which do not follow each other`,
        'add to this package in replaces mode',
      );
    }
    this.#places.splice(at, 0, place);
    node.next = below;
    node.previous = above;
    if (below !== undefined) below.previous = node;
    if (above === undefined) this.#graph.head = node;
    else {
      above.next = node;
      above.skips.delete(node.name);
    }
  }

  /** Takes a node out of the line, to be skipped by another one with all that it skipped. */
  #fold(mate: GraphNode, into: GraphNode): void {
    if (mate.previous === undefined) this.#graph.head = mate.next;
    else mate.previous.next = mate.next;
    if (mate.next !== undefined) mate.next.previous = mate.previous;
    for (const name of [mate.name, ...mate.skips]) if (name !== into.name) into.skips.add(name);
  }
}

/** The same text for versions that are equal in precedence. */
function precedenceOf(version: Version): string {
  return formatVersion({ ...version, build: [] });
}
