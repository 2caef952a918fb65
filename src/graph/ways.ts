import type { Version } from '../core/semver.js';
import type { ChannelEntry } from '../model/declarative-config.js';
import { SkipRanges } from './skip-ranges.js';

/** Paths to some bundles of a channel. */
interface Ways {
  /** Targets, and all names that lead to one of them. */
  reached: ReadonlySet<string>;
  /** Next entry by name; none for targets. Follows names only, with as few steps as possible. */
  next: ReadonlyMap<string, string>;
}

interface WayOptions {
  /** Versions of bundles: follow ranges as well as `replaces` and `skips`. */
  versions?: ReadonlyMap<string, Version>;
  /** Ranges parsed before. */
  ranges?: SkipRanges;
  /** Names that may upgrade by a range; default: all entries. */
  candidates?: Iterable<string>;
  /** Names that may upgrade; default: all entries. */
  isKnown?: (name: string) => boolean;
  /** Remaining comparisons with ranges, which are counted down; below zero the search stops early. */
  budget?: { left: number };
}

/**
 * Finds the names that lead to `targets` over any number of upgrades: first by name, then by skip ranges. Takes time
 * linear in entries and skips, plus one comparison per range and candidate.
 */
export function findWaysTo(
  targets: Iterable<string>,
  entries: ReadonlyMap<string, ChannelEntry>,
  options: WayOptions = {},
): Ways {
  const { versions, ranges = new SkipRanges(), budget } = options;
  const { candidates = entries.keys(), isKnown = (name) => entries.has(name) } = options;
  const reached = new Set(targets);
  const next = new Map<string, string>();
  const queue = [...reached];
  const open = new Set(versions === undefined ? [] : candidates);
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
  const compared = new Set<string>();
  // A set may be changed during iteration.
  for (const to of reached) {
    if (versions === undefined || open.size === 0) break;
    const entry = entries.get(to);
    if (entry === undefined || compared.has(entry.skipRange)) continue;
    compared.add(entry.skipRange);
    const range = ranges.get(entry.skipRange);
    if (range === undefined) continue;
    if (budget !== undefined && (budget.left -= open.size) < 0) break;
    for (const name of open) {
      const version = versions.get(name);
      if (version === undefined || !range.contains(version)) continue;
      take(name, to);
      takeNamed();
    }
  }
  return { reached, next };
}

/** Returns the names reachable over any number of edges, nearest first, including the start. Gets each edge list once. */
export function reachableFrom(
  name: string,
  edges: { get(name: string): Iterable<string> | undefined },
): Set<string> {
  const reached = new Set([name]);
  for (const from of reached) for (const to of edges.get(from) ?? []) reached.add(to);
  return reached;
}
