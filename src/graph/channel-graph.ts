import type { ChannelEntry } from '../model/declarative-config.js';
import { compareBytes } from '../core/order.js';

/**
 * The upgrade graph of one channel. Its head is the one entry that no entry replaces or skips; the chain
 * leads from the head along `replaces`. Every entry must be on the chain or skipped by some entry.
 * (Source: model.Channel of operator-registry.)
 */
export interface ChannelGraph {
  /** Entries by name; of several with one name, the first. */
  entries: ReadonlyMap<string, ChannelEntry>;
  /** Entries that no entry replaces or skips, in byte order. A sound channel has exactly one. */
  heads: string[];
  /** Every name that some entry skips, an entry's or not. */
  skipped: ReadonlySet<string>;
  /** From the only head along `replaces`; empty without an only head. */
  chain: string[];
  /** Why the chain ends after its last entry; `none` when there is no chain. */
  end: 'none' | 'tail' | 'missing' | 'skipped' | 'cycle';
  /** The names around a cycle of the chain, the first repeated at the end. */
  cycle: string[];
  /** Entries neither on the chain nor skipped, in byte order; empty where there is no chain, or a cycle. */
  stranded: string[];
}

/** Reads the graph in time and memory linear in entries and skips. */
export function readGraph(list: readonly ChannelEntry[]): ChannelGraph {
  const entries = new Map<string, ChannelEntry>();
  for (const entry of list) if (!entries.has(entry.name)) entries.set(entry.name, entry);
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

/** Returns the head of a channel; undefined where it has none, or several. */
export function onlyHead({ heads }: Pick<ChannelGraph, 'heads'>): string | undefined {
  return heads.length === 1 ? heads[0] : undefined;
}

/** Returns the head of a channel with these entries; empty where it has none, or several. */
export function findHead(entries: readonly ChannelEntry[]): string {
  return onlyHead(readGraph(entries)) ?? '';
}

/**
 * Follows `replaces` from the first head, past entries that are skipped: all names in turn, also a last one that is no
 * entry. It ends where it would come back to itself, which is a cycle.
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

/** Why a channel has no head, in the words of `opm`; undefined when it has one. */
export function describeHeadFault(graph: ChannelGraph): string | undefined {
  if (graph.heads.length === 1) return undefined;
  if (graph.heads.length === 0) return 'no channel head found in graph';
  return `multiple channel heads found in graph: ${graph.heads.join(', ')}`;
}

/** What is wrong with a graph that has entries, in the words of `opm`; undefined when it is sound. */
export function describeGraphFault(graph: ChannelGraph): string | undefined {
  const fault = describeHeadFault(graph);
  if (fault !== undefined) return fault;
  if (graph.cycle.length > 0) {
    return `detected cycle in replaces chain of upgrade graph: ${graph.cycle.join(' -> ')}`;
  }
  if (graph.stranded.length === 0) return undefined;
  return `channel contains one or more stranded bundles: ${graph.stranded.join(', ')}`;
}
