import { listNames } from '../../core/suggest.js';
import { quoteGo } from '../../document/go-json.js';
import {
  type ChannelGraph,
  describeGraphFault,
  followReplaces,
  readGraph,
} from '../../graph/channel-graph.js';
import type { ChannelEntry } from '../../model/declarative-config.js';

/** Kept entries of a channel, with reasons for those that were not requested. */
export interface KeptEntries {
  names: ReadonlySet<string>;
  /** Reasons by name; each continues a sentence that starts with the bundle. */
  reasons: ReadonlyMap<string, string>;
}

/**
 * Keeps the stretch of a channel's upgrade chain with all wanted entries, and the wanted entries that it skips.
 * Wanted entries with the same `keyOf` count as one; it returns undefined for others. A stretch that is not a valid
 * channel is extended up the chain, at most to the whole channel. Keeps nothing if the chain has no wanted entry.
 * Returns undefined for a chain with a cycle. (Source: the filter of oc-mirror v2.)
 */
export function keepChain(
  list: readonly ChannelEntry[],
  graph: ChannelGraph,
  keyOf: (name: string) => string | undefined,
): KeptEntries | undefined {
  const { names: chain, isCycle } = followReplaces(graph);
  if (isCycle) return undefined;
  const { entries } = graph;
  const isWanted = (name: string): boolean => keyOf(name) !== undefined;
  // Wanted entries that each entry of the chain leads to, oldest first.
  const counts = new Array<number>(chain.length);
  const kept = new Set<string>();
  for (let position = chain.length - 1; position >= 0; position--) {
    const name = chain[position] as string;
    for (const text of [name, ...(entries.get(name)?.skips ?? [])]) {
      const key = keyOf(text);
      if (key !== undefined) kept.add(key);
    }
    counts[position] = kept.size;
  }
  const reasons = new Map<string, string>();
  if (kept.size === 0) return { names: new Set(), reasons };
  const top = counts.lastIndexOf(kept.size);
  const below = counts.indexOf(0);
  const end = below < 0 ? chain.length : below;
  const take = (from: number): Set<string> => {
    const names = new Set<string>();
    for (const name of chain.slice(from, end)) {
      if (entries.has(name)) names.add(name);
      for (const skip of entries.get(name)?.skips ?? []) if (isWanted(skip)) names.add(skip);
    }
    return names;
  };
  const requested = take(top);
  const { names, lead } = makeSound(list, requested, top, take);
  const places = new Map(chain.map((name, index) => [name, index]));
  for (const { name } of list) {
    if (!names.has(name) || isWanted(name)) continue;
    const index = places.get(name) ?? -1;
    const skips = (entries.get(name)?.skips ?? []).filter(isWanted);
    if (!requested.has(name)) {
      reasons.set(name, listNames('is required to update', lead));
    } else if (index === top && skips.length > 0) reasons.set(name, listNames('skips', skips));
    else reasons.set(name, describeBetween(chain, index));
  }
  return { names, reasons };
}

/** Returns why an entry between two others of a chain is kept. */
export function describeBetween(chain: readonly string[], position: number): string {
  const [newer, older] = [chain[position - 1] ?? '', chain[position + 1] ?? ''];
  return `is on the upgrade chain between ${quoteGo(newer)} and ${quoteGo(older)}`;
}

/** Returns the entries of a valid channel, and those that no requested entry leads to. */
function makeSound(
  list: readonly ChannelEntry[],
  requested: ReadonlySet<string>,
  top: number,
  take: (from: number) => Set<string>,
): { names: ReadonlySet<string>; lead: string[] } {
  const getGraph = (names: ReadonlySet<string>): ChannelGraph =>
    readGraph(list.filter(({ name }) => names.has(name)));
  const first = getGraph(requested);
  if (describeGraphFault(first) === undefined) return { names: requested, lead: [] };
  const lead = first.stranded.length > 0 ? first.stranded : first.heads.slice(1);
  // Growing steps, so that a long chain is not read once per entry.
  const tops: number[] = [];
  for (let step = 1; step <= top; step *= 2) tops.push(top - step);
  for (const from of [...tops, 0]) {
    const names = take(from);
    if (describeGraphFault(getGraph(names)) === undefined) return { names, lead };
  }
  return { names: new Set(list.map(({ name }) => name)), lead };
}
