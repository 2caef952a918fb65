import { type ChainNode, type ReplacesChain, VersionLine, linkChain } from '../../graph/version-line.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { type Version, parseVersion } from '../../core/semver.js';
import { joinMessages } from '../schema/aggregate.js';
import type { BundleRecord } from '../schema/bundle-record.js';
import { channelGraphs, writeChannelGraphs } from './channel-graph.js';
import type { Database } from '../schema/database.js';
import { readPackage } from '../schema/package-state.js';

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
  const lines = new Map<string, VersionLine>();
  const getLine = (channel: string): VersionLine => {
    let line = lines.get(channel);
    if (line === undefined) {
      const graph = graphs.get(channel) ?? linkChain(channel, []);
      graphs.set(channel, graph);
      line = lineOfGraph(graph, fail);
      lines.set(channel, line);
    }
    return line;
  };

  const problems: string[] = [];
  const versions = new Map<BundleRecord, Version>();
  for (const record of records) {
    const parsed = readVersion(record);
    if (typeof parsed === 'string') {
      problems.push(parsed);
      continue;
    }
    if (record.channels.length === 0) problems.push(`bundle "${record.name}" names no channel`);
    versions.set(record, parsed);
    for (const channel of new Set(record.channels)) {
      const other = getLine(channel).claim(parsed, record.name);
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
    for (const channel of new Set(record.channels)) getLine(channel).add(record, version, options.skipPatch);
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
function readVersion({ name, version }: BundleRecord): Version | string {
  if (version === '') return `bundle "${name}" has no version, can't insert in semver mode`;
  try {
    return parseVersion(version);
  } catch (error) {
    return `bundle "${name}": Bundle version ${version} is not valid: ${getMessage(error)}`;
  }
}

function lineOfGraph(
  graph: ReplacesChain,
  failPackage: (what: string, hint?: string) => OpmateError,
): VersionLine {
  const fail = (what: string, hint?: string): OpmateError =>
    failPackage(`channel "${graph.name}": ${what}`, hint);
  const parse = (node: ChainNode): Version => {
    try {
      return parseVersion(node.version);
    } catch (error) {
      throw fail(
        `Unable to parse existing bundle version stored in index: bundle "${node.name}" "${node.version}": ${getMessage(error)}`,
        'add to this package in replaces mode',
      );
    }
  };
  return new VersionLine(graph, parse, fail);
}
