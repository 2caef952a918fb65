import { OpmateError, getMessage } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type Version, compareVersions, parseVersion } from '../../core/semver.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { readGraph } from '../../graph/channel-graph.js';
import {
  type ChainNode,
  type ReplacesChain,
  VersionLine,
  linkChain,
  iterateNodes,
} from '../../graph/version-line.js';

/** A bundle to be added to a channel. */
export interface EntryByVersion {
  name: string;
  /** Text and value of its version. */
  text: string;
  version: Version;
  /** Skips in addition to those from its version. */
  skips: readonly string[];
  skipRange: string;
}

/**
 * Inserts an entry next to the one it replaces, else to the one that replaces it: above it in lists that start with
 * the head, otherwise below it; else at the head. Existing entries keep their place.
 */
export function insertEntry(
  entries: readonly ChannelEntry[],
  entry: ChannelEntry,
  headFirst: boolean = isHeadFirst(entries),
): ChannelEntry[] {
  const below = entries.findIndex(({ name }) => name === entry.replaces);
  const above = entries.findIndex(
    ({ replaces, skips }) => replaces === entry.name || skips.includes(entry.name),
  );
  let position = headFirst ? 0 : entries.length;
  if (below >= 0) position = headFirst ? below : below + 1;
  else if (above >= 0) position = headFirst ? above + 1 : above;
  return entries.toSpliced(position, 0, entry);
}

function isHeadFirst(entries: readonly ChannelEntry[]): boolean {
  return entries.length > 1 && entries[0]?.name === readGraph(entries).heads[0];
}

/**
 * Adds bundles in order to a channel by version, as the semver modes of sqlite indexes do: each replaces the next
 * lower version and is replaced by the next higher one. With `skipPatch`, of each major.minor with a new bundle only
 * the highest version stays in the chain and skips the others. Other entries stay unchanged. `versions` are those of
 * existing bundles.
 *
 * Throws OpmateError INVALID, whose message continues a sentence about the channel, for an existing version, and
 * where the chain is not ordered by version.
 */
export function addByVersion(
  entries: readonly ChannelEntry[],
  bundles: readonly EntryByVersion[],
  versions: ReadonlyMap<string, string>,
  options: { skipPatch: boolean },
): ChannelEntry[] {
  const { graph, end } = findLine(entries, versions);
  const line = new VersionLine(graph, parseNode, fail);
  for (const { name, text, version } of bundles) {
    const owner = line.claim(version, name);
    if (owner !== undefined)
      throw fail(`bundle ${quoteGo(owner)} already has version ${text} of ${quoteGo(name)}`);
  }
  for (const { name, text, version } of bundles)
    line.add({ name, version: text }, version, options.skipPatch);
  const nodes = new Map([...iterateNodes(graph)].map((node) => [node.name, node]));
  const last = [...nodes.values()].at(-1);
  requireAbove(last, end, versions);
  const linked = (entry: ChannelEntry): ChannelEntry => {
    const node = nodes.get(entry.name);
    if (node === undefined) return entry;
    const replaces = node.next?.name ?? end;
    const skips = [...new Set([...entry.skips.filter((name) => node.skips.has(name)), ...node.skips])];
    const isSame = replaces === entry.replaces && skips.length === entry.skips.length;
    return isSame ? entry : { ...entry, replaces, skips };
  };
  const headFirst = isHeadFirst(entries);
  let result = entries.map(linked);
  for (const { name, skips, skipRange } of bundles) {
    const entry = linked({ name, replaces: '', skips: [], skipRange });
    result = insertEntry(result, { ...entry, skips: [...new Set([...entry.skips, ...skips])] }, headFirst);
  }
  return result;
}

/** Returns the chain of a channel, and what its last bundle replaces: a missing or skipped one. */
function findLine(
  entries: readonly ChannelEntry[],
  versions: ReadonlyMap<string, string>,
): { graph: ReplacesChain; end: string } {
  const { chain, entries: byName } = readGraph(entries);
  const graph = linkChain(
    '',
    chain.map((name) => ({ name, version: versions.get(name) ?? '', skips: byName.get(name)?.skips ?? [] })),
  );
  const end = byName.get(chain.at(-1) ?? '')?.replaces ?? '';
  const inLine = new Set(chain);
  for (const name of byName.keys()) if (!inLine.has(name)) graph.skipped.set(name, versions.get(name) ?? '');
  return { graph, end };
}

/** Requires that a new last bundle of the chain does not replace a newer one. */
function requireAbove(last: ChainNode | undefined, end: string, versions: ReadonlyMap<string, string>): void {
  const text = versions.get(end);
  if (last === undefined || text === undefined || versions.has(last.name)) return;
  if (compareVersions(parseVersion(last.version), parseVersion(text)) > 0) return;
  throw fail(
    `Invalid graph: bundle ${quoteGo(last.name)} would replace ${quoteGo(end)}, which has a higher version`,
    'add to this channel in replaces mode',
  );
}

function parseNode({ name, version }: ChainNode): Version {
  try {
    return parseVersion(version);
  } catch (error) {
    throw fail(`bundle ${quoteGo(name)} has version ${quoteGo(version)}: ${getMessage(error)}`);
  }
}

function fail(what: string, hint?: string): OpmateError {
  return new OpmateError('INVALID', what, { hint });
}
