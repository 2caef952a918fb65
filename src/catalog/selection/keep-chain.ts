import { listNames } from '../../core/suggest.js';
import { quoteGo } from '../../document/go-json.js';
import {
  type ChannelGraph,
  describeGraphFault,
  followReplaces,
  readGraph,
} from '../../graph/channel-graph.js';
import type { ChannelEntry } from '../../model/declarative-config.js';

/** The entries of a channel that are kept, and why those that were not asked for are. */
export interface KeptEntries {
  names: ReadonlySet<string>;
  /** By name; each continues a sentence that begins with the bundle. */
  reasons: ReadonlyMap<string, string>;
}

/**
 * Keeps the stretch of a channel's upgrade chain that holds all wanted entries, with what its entries skip of these.
 * Wanted entries of which `keyOf` returns the same count as one; it returns undefined for all others. Where the stretch
 * is not a valid channel on its own, it is taken further up the chain, in the end the whole channel. Nothing is kept where
 * the chain leads to no wanted entry. Returns undefined for a chain that is a cycle. (Source: the filter of oc-mirror v2.)
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
  // How many wanted ones each entry of the chain leads to, from the oldest upwards.
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
      reasons.set(name, listNames('is needed to update', lead));
    } else if (index === top && skips.length > 0) reasons.set(name, listNames('skips', skips));
    else reasons.set(name, describeBetween(chain, index));
  }
  return { names, reasons };
}

/** Why an entry of a chain is kept that leads from one to another. */
export function describeBetween(chain: readonly string[], position: number): string {
  const [newer, older] = [chain[position - 1] ?? '', chain[position + 1] ?? ''];
  return `stands in the upgrade chain between ${quoteGo(newer)} and ${quoteGo(older)}`;
}

/** The entries to keep for a valid channel, and those that nothing asked for leads to. */
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
  // In growing steps, so that a long chain is not read as often as it has entries.
  const tops: number[] = [];
  for (let step = 1; step <= top; step *= 2) tops.push(top - step);
  for (const from of [...tops, 0]) {
    const names = take(from);
    if (describeGraphFault(getGraph(names)) === undefined) return { names, lead };
  }
  return { names: new Set(list.map(({ name }) => name)), lead };
}
