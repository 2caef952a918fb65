import type { ChannelEntry } from '../model/declarative-config.js';
import { firstBy } from '../core/groups.js';
import { compareBytes } from '../core/order.js';

/**
 * Upgrade graph of a channel. Its head is the only entry that no entry replaces or skips; the chain follows
 * `replaces` from the head. Every entry must be on the chain or skipped by an entry. (Source: model.Channel of
 * operator-registry.)
 */
export interface ChannelGraph {
  /** Entries by name; the first of duplicates. */
  entries: ReadonlyMap<string, ChannelEntry>;
  /** Entries that no entry replaces or skips, in byte order. A valid channel has exactly one. */
  heads: string[];
  /** All skipped names, of entries or not. */
  skipped: ReadonlySet<string>;
  /** Names from the only head along `replaces`; empty without an only head. */
  chain: string[];
  /** Reason why the chain ends; `none` without a chain. */
  end: 'none' | 'tail' | 'missing' | 'skipped' | 'cycle';
  /** Names of a cycle in the chain, the first repeated at the end. */
  cycle: string[];
  /** Entries neither on the chain nor skipped, in byte order; empty without a chain, or with a cycle. */
  stranded: string[];
}

/** Builds the graph in linear time and memory. */
export function readGraph(list: readonly ChannelEntry[]): ChannelGraph {
  const entries = firstBy(list, ({ name }) => name);
  const skipped = new Set<string>();
  const replaced = new Set<string>();
  for (const entry of entries.values()) {
    if (entry.replaces !== '') replaced.add(entry.replaces);
    for (const skip of entry.skips) skipped.add(skip);
  }
  const heads = [...entries.keys()]
    .filter((name) => !replaced.has(name) && !skipped.has(name))
    .sort(compareBytes);
  const graph: ChannelGraph = { entries, heads, skipped, chain: [], end: 'none', cycle: [], stranded: [] };
  const [head] = heads;
  if (head === undefined || heads.length > 1) return graph;
  const places = new Map<string, number>();
  let entry = entries.get(head);
  while (entry !== undefined) {
    places.set(entry.name, graph.chain.push(entry.name) - 1);
    if (skipped.has(entry.replaces)) {
      graph.end = 'skipped';
      break;
    }
    const place = places.get(entry.replaces);
    if (place !== undefined) {
      graph.end = 'cycle';
      graph.cycle = [...graph.chain.slice(place), entry.replaces];
      return graph;
    }
    graph.end = entry.replaces === '' ? 'tail' : 'missing';
    entry = entries.get(entry.replaces);
  }
  for (const name of entries.keys()) if (!places.has(name) && !skipped.has(name)) graph.stranded.push(name);
  graph.stranded.sort(compareBytes);
  return graph;
}

/** Returns the head of a channel; undefined without a head or with several. */
export function getOnlyHead({ heads }: Pick<ChannelGraph, 'heads'>): string | undefined {
  return heads.length === 1 ? heads[0] : undefined;
}

/** Returns the head of a channel with these entries; empty without a head or with several. */
export function findHead(entries: readonly ChannelEntry[]): string {
  return getOnlyHead(readGraph(entries)) ?? '';
}

/**
 * Follows `replaces` from the first head, past skipped entries. Returns all names in order, including a last one that
 * is no entry. Ends before a cycle.
 */
export function followReplaces({
  heads,
  entries,
}: {
  heads: readonly string[];
  entries: { get(name: string): Pick<ChannelEntry, 'replaces'> | undefined };
}): { names: string[]; isCycle: boolean } {
  const names = new Set<string>();
  let name = heads[0] ?? '';
  for (; name !== '' && !names.has(name); name = entries.get(name)?.replaces ?? '') names.add(name);
  return { names: [...names], isCycle: name !== '' };
}

/** Returns why a channel has no head, in the words of `opm`; undefined if it has one. */
export function describeHeadFault(graph: ChannelGraph): string | undefined {
  if (graph.heads.length === 1) return undefined;
  if (graph.heads.length === 0) return 'no channel head found in graph';
  return `multiple channel heads found in graph: ${graph.heads.join(', ')}`;
}

/** Returns the problem of a graph with entries, in the words of `opm`; undefined if valid. */
export function describeGraphFault(graph: ChannelGraph): string | undefined {
  const fault = describeHeadFault(graph);
  if (fault !== undefined) return fault;
  if (graph.cycle.length > 0) {
    return `detected cycle in replaces chain of upgrade graph: ${graph.cycle.join(' -> ')}`;
  }
  if (graph.stranded.length === 0) return undefined;
  return `channel contains one or more stranded bundles: ${graph.stranded.join(', ')}`;
}
