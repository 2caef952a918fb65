import type { ChannelEntry } from '../model/declarative-config.js';
import type { UpgradeRules } from './upgrade-rules.js';

/** What leads to some bundles of a channel. */
interface Ways {
  /** The targets and all names that lead to one of them, step by step. */
  reached: ReadonlySet<string>;
  /** By name, the entry to go on to; nothing for targets. By name alone, on as few steps as possible. */
  next: ReadonlyMap<string, string>;
}

interface WayOptions {
  /** Follow ranges as well; without it only `replaces` and `skips` lead on. */
  rules?: UpgradeRules;
  /** Names that may lead on by a range; by default all entries. */
  candidates?: Iterable<string>;
  /** Names that may lead on at all; by default all entries. */
  isKnown?: (name: string) => boolean;
  /** Counts comparisons with ranges down; below zero the search ends early. */
  budget?: { left: number };
}

/**
 * Finds what leads to `targets` over any number of upgrades: first by name, then by the ranges that entries
 * skip. Takes time linear in entries and skips, and one comparison for each range and candidate.
 */
export function findWaysTo(
  targets: Iterable<string>,
  entries: ReadonlyMap<string, ChannelEntry>,
  options: WayOptions = {},
): Ways {
  const { rules, candidates = entries.keys(), isKnown = (name) => entries.has(name), budget } = options;
  const reached = new Set(targets);
  const next = new Map<string, string>();
  const queue = [...reached];
  const open = new Set(rules === undefined ? [] : candidates);
  for (const name of reached) open.delete(name);
  const take = (name: string, to: string): void => {
    if (reached.has(name) || !isKnown(name)) return;
    reached.add(name);
    next.set(name, to);
    open.delete(name);
    queue.push(name);
  };
  let position = 0;
  const takeNamed = (): void => {
    for (; position < queue.length; position++) {
      const to = queue[position] as string;
      const entry = entries.get(to);
      for (const name of entry === undefined ? [] : [entry.replaces, ...entry.skips]) take(name, to);
    }
  };
  takeNamed();
  const ranges = new Set<string>();
  // A set can be added to while it is gone through, and deleted from.
  for (const to of rules === undefined ? [] : reached) {
    if (open.size === 0) break;
    const entry = entries.get(to);
    if (entry === undefined || ranges.has(entry.skipRange)) continue;
    ranges.add(entry.skipRange);
    if (rules?.ranges.get(entry.skipRange) === undefined) continue;
    if (budget !== undefined && (budget.left -= open.size) < 0) break;
    for (const name of open) {
      if (!rules.isInSkipRange(name, entry)) continue;
      take(name, to);
      takeNamed();
    }
  }
  return { reached, next };
}

/** Returns what a name leads to over any number of edges, itself included. */
export function reachableFrom(name: string, edges: ReadonlyMap<string, Iterable<string>>): Set<string> {
  const reached = new Set([name]);
  for (const from of reached) for (const to of edges.get(from) ?? []) reached.add(to);
  return reached;
}
