import { quoteGo } from '../document/go-json.js';
import type { ChannelEntry } from '../model/declarative-config.js';
import type { ChannelGraph } from './channel-graph.js';
import { findWaysTo } from './ways.js';
import { NameIndex } from '../core/suggest.js';

/** Suggested change of a faulty channel, with the entry to change, if known. */
interface GraphAdvice {
  hint: string;
  entry?: string;
  field?: 'name' | 'replaces' | 'skips';
}

/** Compares two bundles by version; undefined if a version is unknown. */
type CompareBundles = (a: string, b: string) => number | undefined;

/** Maximum number of surplus heads in a suggestion. */
const maxHeadsNamed = 3;

/** Suggests how to fix a faulty channel. Takes linear time. */
export function adviseOnGraph(graph: ChannelGraph, compare: CompareBundles): GraphAdvice {
  if (graph.heads.length === 0) return adviseOnNoHead(graph, compare);
  if (graph.heads.length > 1) return adviseOnHeads(graph, compare);
  if (graph.cycle.length > 0) return adviseOnCycle(graph, compare);
  return adviseOnStranded(graph, compare);
}

/**
 * Returns the entry `from` of a valid chain whose replaced entry `to` is skipped by a dead end `by`: nothing leads
 * from `by` to the head. A skip by an entry that leads to the head strands nothing.
 */
export function findSkippedInChain(
  graph: ChannelGraph,
): { from: string; to: string; by: string } | undefined {
  if (graph.end !== 'skipped') return undefined;
  const from = graph.chain[graph.chain.length - 1] as string;
  const to = graph.entries.get(from)?.replaces ?? '';
  if (!graph.entries.has(to)) return undefined;
  const { reached: leading } = findWaysTo(graph.heads, graph.entries);
  for (const entry of graph.entries.values()) {
    // Ranges are checked elsewhere, where versions are known.
    if (leading.has(entry.name) && entry.skipRange !== '') return undefined;
  }
  for (const { name: by, skips } of graph.entries.values()) {
    if (!leading.has(by) && skips.includes(to)) return { from, to, by };
  }
  return undefined;
}

function findSkipper(graph: ChannelGraph, name: string): string | undefined {
  for (const entry of graph.entries.values()) if (entry.skips.includes(name)) return entry.name;
  return undefined;
}

function verbTo(entry: ChannelEntry, name: string): 'replaces' | 'skips' {
  return entry.replaces === name ? 'replaces' : 'skips';
}

function findNewest(names: Iterable<string>, compare: CompareBundles): string | undefined {
  let newest: string | undefined;
  for (const name of names) {
    if (compare(name, name) === undefined) continue;
    if (newest === undefined || (compare(name, newest) as number) > 0) newest = name;
  }
  return newest;
}

/** Returns the oldest of `names` that is newer than `name`. */
function findSuccessor(name: string, names: Iterable<string>, compare: CompareBundles): string | undefined {
  let successor: string | undefined;
  for (const candidate of names) {
    if ((compare(candidate, name) ?? 0) <= 0) continue;
    if (successor === undefined || (compare(candidate, successor) ?? 0) < 0) successor = candidate;
  }
  return successor;
}

function adviseOnSelf(entry: ChannelEntry): GraphAdvice | undefined {
  const { name, replaces, skips } = entry;
  if (replaces !== name && !skips.includes(name)) return undefined;
  const field = verbTo(entry, name);
  return { hint: `remove ${quoteGo(name)} from its own ${field}`, entry: name, field };
}

function adviseOnNoHead(graph: ChannelGraph, compare: CompareBundles): GraphAdvice {
  const newest = findNewest(graph.entries.keys(), compare);
  if (newest === undefined) {
    for (const entry of graph.entries.values()) {
      const advice = adviseOnSelf(entry);
      if (advice !== undefined) return advice;
    }
    return { hint: 'keep one entry, the newest, that no entry replaces or skips' };
  }
  const self = adviseOnSelf(graph.entries.get(newest) as ChannelEntry);
  if (self !== undefined) return self;
  for (const entry of graph.entries.values()) {
    if (entry.replaces !== newest && !entry.skips.includes(newest)) continue;
    const field = verbTo(entry, newest);
    const hint = `remove ${quoteGo(newest)}, the newest entry, from ${field} of ${quoteGo(entry.name)}`;
    return { hint, entry: entry.name, field };
  }
  return { hint: 'keep one entry that no entry replaces or skips' };
}

function adviseOnHeads(graph: ChannelGraph, compare: CompareBundles): GraphAdvice {
  const { heads, entries } = graph;
  const head = findNewest(heads, compare) ?? (heads[heads.length - 1] as string);
  const surplus = heads.filter((name) => name !== head);
  const spelling = new NameIndex(surplus);
  const misspelled = new Map<string, ChannelEntry>();
  for (const entry of entries.values()) {
    if (entry.replaces === '' || entries.has(entry.replaces)) continue;
    const meant = spelling.nearest(entry.replaces);
    if (meant !== undefined && meant !== entry.name && !misspelled.has(meant)) misspelled.set(meant, entry);
  }
  const advices = surplus
    .slice(0, maxHeadsNamed)
    .map((name) => adviseOnSurplusHead(graph, name, misspelled, compare));
  const more = surplus.length - advices.length;
  const rest = more > 0 ? `; likewise for ${more} more` : '';
  const details = advices.map((advice) => advice.hint).join('; ');
  const hint = `${details}${rest}; only the head, here ${quoteGo(head)}, is neither replaced nor skipped`;
  return { ...advices[0], hint };
}

function adviseOnSurplusHead(
  graph: ChannelGraph,
  name: string,
  misspelled: ReadonlyMap<string, ChannelEntry>,
  compare: CompareBundles,
): GraphAdvice {
  const quoted = quoteGo(name);
  const wrong = misspelled.get(name);
  if (wrong !== undefined) {
    const hint = `change replaces of ${quoteGo(wrong.name)} from ${quoteGo(wrong.replaces)}, not an entry, to ${quoted}`;
    return { hint, entry: wrong.name, field: 'replaces' };
  }
  const others = function* (): Iterable<string> {
    for (const other of graph.entries.keys()) if (other !== name) yield other;
  };
  const successor = findSuccessor(name, others(), compare);
  if (successor === undefined) return { hint: `replace or skip ${quoted} in a newer entry`, entry: name };
  const { replaces } = graph.entries.get(successor) as ChannelEntry;
  const quotedSuccessor = quoteGo(successor);
  if (replaces === '') return { hint: `set replaces of ${quotedSuccessor} to ${quoted}`, entry: successor };
  if (!graph.entries.has(replaces) || (compare(replaces, successor) ?? -1) >= 0) {
    const unknown = graph.entries.has(replaces) ? '' : ', not an entry,';
    const hint = `change replaces of ${quotedSuccessor} from ${quoteGo(replaces)}${unknown} to ${quoted}`;
    return { hint, entry: successor, field: 'replaces' };
  }
  return { hint: `add ${quoted} to the skips of ${quotedSuccessor}`, entry: successor };
}

function adviseOnCycle(graph: ChannelGraph, compare: CompareBundles): GraphAdvice {
  const { cycle, entries } = graph;
  let from = cycle[cycle.length - 2] as string;
  const self = cycle.length === 2 ? adviseOnSelf(entries.get(from) as ChannelEntry) : undefined;
  if (self !== undefined) return self;
  for (const name of cycle) {
    const { replaces } = entries.get(name) as ChannelEntry;
    if ((compare(replaces, name) ?? -1) >= 0) {
      from = name;
      break;
    }
  }
  const to = entries.get(from)?.replaces ?? '';
  const hint = `set replaces of ${quoteGo(from)} to an entry older than ${quoteGo(to)}, or remove it`;
  return { hint, entry: from, field: 'replaces' };
}

function adviseOnStranded(graph: ChannelGraph, compare: CompareBundles): GraphAdvice {
  const { stranded, chain, entries } = graph;
  for (const name of stranded) {
    const advice = adviseOnSelf(entries.get(name) as ChannelEntry);
    if (advice !== undefined) return advice;
  }
  const name = findNewest(stranded, compare) ?? (stranded[stranded.length - 1] as string);
  const quoted = quoteGo(name);
  const last = chain[chain.length - 1] as string;
  const next = entries.get(last)?.replaces ?? '';
  if ((compare(name, last) ?? -1) > 0) {
    const successor = findSuccessor(name, chain, compare);
    if (successor !== undefined) {
      return { hint: `add ${quoted} to the skips of ${quoteGo(successor)}`, entry: successor };
    }
  }
  const end = `the chain of upgrades from ${quoteGo(graph.heads[0] as string)} ends at ${quoteGo(last)}`;
  const remedy = `set replaces of ${quoteGo(last)} to ${quoted}`;
  if (graph.end === 'skipped') {
    const skipper = quoteGo(findSkipper(graph, next) ?? '');
    const why = `as ${skipper} skips ${quoteGo(next)}`;
    return { hint: `${remedy}, or remove that skip: ${end}, ${why}`, entry: last, field: 'replaces' };
  }
  if (graph.end === 'missing') {
    return { hint: `${remedy}: ${end}, as ${quoteGo(next)} is not an entry`, entry: last, field: 'replaces' };
  }
  return { hint: `${remedy}, or skip ${quoted}: ${end}`, entry: last };
}
