import { joinNames } from '../../core/suggest.js';
import { LimitError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { Version } from '../../core/semver.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { getOnlyHead, readGraph } from '../../graph/channel-graph.js';
import { sortNewestFirst } from '../../graph/bundle-version.js';
import { UpgradeGraph, walkUpgrades } from '../../graph/upgrade-graph.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { findWaysTo } from '../../graph/ways.js';

/** Remaining entries of a channel, with one sentence per change. */
interface RepairedChannel {
  entries: ChannelEntry[];
  changes: string[];
}

/** Maximum names that entries may take over in total. */
const maxTakenOver = 1_000_000;

/**
 * Removes entries from a channel and repairs its graph:
 *
 * - An entry that replaced a removed one replaces what that one did, skips it and its skips, and takes over its skip
 *   range. An entry that skipped a removed one also skips those without an entry that led there.
 * - A removed head is replaced by the highest version of the remaining ends. If it replaces nothing, it replaces what
 *   the old head did.
 * - An entry that lost its way to the head, or must be skipped by the rules of a channel, is skipped by the nearest
 *   later entry, else by the head.
 *
 * So the head stays reachable from each remaining entry from which it was before. A valid channel stays valid, and
 * entries keep their order. `versions` are the known ones by bundle name. Throws LimitError if entries would take
 * over more than a million names.
 */
export function repairChannel(
  before: readonly ChannelEntry[],
  gone: ReadonlySet<string>,
  versions: ReadonlyMap<string, Version>,
): RepairedChannel {
  if (before.every(({ name }) => !gone.has(name))) return { entries: [...before], changes: [] };
  /** Removed entries by name. */
  const removed = new Map<string, ChannelEntry>();
  /** Remaining entries with their changes. */
  const kept = new Map<string, ChannelEntry>();
  let upgrades: UpgradeGraph | undefined;
  let takenOver = 0;

  const ranges = new SkipRanges();
  for (const entry of before) {
    const { name } = entry;
    if (gone.has(name)) removed.set(name, entry);
    else if (!kept.has(name)) kept.set(name, entry);
  }

  if (kept.size === 0) return { entries: [], changes: [] };
  const graph = readGraph(before);
  const oldHead = getOnlyHead(graph);
  const hadWay = oldHead === undefined ? new Set<string>() : leadingTo(oldHead, graph.entries);
  for (const entry of [...kept.values()]) kept.set(entry.name, withoutGone(entry));
  const head = chooseHead(oldHead);
  // An only head has a chain; the entry after a lost one may be lost too.
  for (const skipper of ['next', 'next', 'head']) {
    cutCycle();
    const { heads, stranded } = readGraph([...kept.values()]);
    const hasWay = leadingTo(head, kept);
    const lost = [...kept.keys()].filter((name) => hadWay.has(name) && !hasWay.has(name));
    for (const name of new Set([...heads, ...stranded, ...lost])) {
      if (name === head) continue;
      const by = (skipper === 'next' ? nextAfter(name) : undefined) ?? head;
      change(by, ({ skips }) => ({ skips: [...new Set([...skips, name])] }));
    }
  }
  return {
    entries: before.flatMap(({ name }) => kept.get(name) ?? []),
    changes: describe(oldHead, head),
  };

  function change(name: string, change: (entry: ChannelEntry) => Partial<ChannelEntry>): void {
    const entry = kept.get(name);
    if (entry !== undefined) kept.set(name, { ...entry, ...change(entry) });
  }

  /** Returns an entry rewired around removed ones. */
  function withoutGone(entry: ChannelEntry): ChannelEntry {
    const skips = new Set(entry.skips);
    const passed = new Set<ChannelEntry>();
    let { replaces, skipRange } = entry;
    for (let next = removed.get(replaces); next !== undefined; next = removed.get(replaces)) {
      if (passed.has(next)) {
        replaces = '';
        break;
      }
      passed.add(next);
      skips.add(next.name);
      for (const name of next.skips) skips.add(name);
      skipRange = joinRanges(skipRange, next.skipRange);
      replaces = next.replaces;
    }
    // A set includes what is added during iteration.
    for (const name of skips) {
      const skipped = removed.get(name);
      if (skipped === undefined) continue;
      for (const text of [skipped.replaces, ...skipped.skips]) {
        if (text !== '' && text !== replaces && !kept.has(text)) skips.add(text);
      }
    }
    if (passed.size > 0 || !entry.skips.includes(entry.name)) skips.delete(entry.name);
    if (passed.size === 0 && skips.size === new Set(entry.skips).size) return entry;
    takenOver += skips.size;
    if (takenOver > maxTakenOver) {
      throw new LimitError(`entries would take over more than ${maxTakenOver} names from removed entries`);
    }
    return { ...entry, replaces: replaces === entry.name ? '' : replaces, skips: [...skips], skipRange };
  }

  /** Joins two ranges, the second only if it adds something. */
  function joinRanges(first: string, second: string): string {
    if (second === '' || ranges.get(second) === undefined) return first;
    if (first === '') return second;
    const parts = first.split('||').map((part) => part.trim());
    if (parts.includes(second.trim()) || ranges.get(first) === undefined) return first;
    return `${first} || ${second}`;
  }

  /** Returns the entries from which `head` is reachable, including itself. */
  function leadingTo(head: string, entries: ReadonlyMap<string, ChannelEntry>): ReadonlySet<string> {
    return findWaysTo([head], entries, { versions, ranges }).reached;
  }

  function chooseHead(oldHead: string | undefined): string {
    if (oldHead !== undefined && kept.has(oldHead)) return oldHead;
    const { heads } = readGraph([...kept.values()]);
    const names = heads.length > 0 ? heads : [...kept.keys()];
    const [head = ''] = sortNewestFirst(names, versions);
    if (heads.length === 0) {
      for (const { name, replaces, skips } of [...kept.values()]) {
        if (replaces === head) change(name, () => ({ replaces: '' }));
        if (skips.includes(head)) change(name, () => ({ skips: skips.filter((text) => text !== head) }));
      }
    }
    let replaced = oldHead === undefined ? '' : (removed.get(oldHead)?.replaces ?? '');
    const seen = new Set<string>();
    while (removed.has(replaced) && !seen.has(replaced)) {
      seen.add(replaced);
      replaced = removed.get(replaced)?.replaces ?? '';
    }
    const isLeft = kept.has(replaced) && replaced !== head;
    if (isLeft) change(head, (entry) => ({ replaces: entry.replaces === '' ? replaced : entry.replaces }));
    return head;
  }

  /** Cuts a cycle of entries that only removed entries had skipped. */
  function cutCycle(): void {
    const { cycle } = readGraph([...kept.values()]);
    const last = cycle.at(-2);
    if (last !== undefined) change(last, () => ({ replaces: '' }));
  }

  /** Returns the first remaining entry on the former upgrade path, past removed ones. */
  function nextAfter(from: string): string | undefined {
    upgrades ??= new UpgradeGraph([{ name: '', entries: before }], ranges);
    for (const name of walkUpgrades(upgrades, [[from, versions.get(from)]], versions)) {
      if (kept.has(name)) return name;
    }
    return undefined;
  }

  function describe(oldHead: string | undefined, head: string): string[] {
    const changes: string[] = [];
    if (oldHead !== undefined && head !== oldHead) {
      changes.push(`head is now ${quoteGo(head)}; ${quoteGo(oldHead)} is omitted`);
    }
    for (const entry of before) {
      const now = kept.get(entry.name);
      if (now === undefined || now === entry) continue;
      const parts: string[] = [];
      if (now.replaces !== entry.replaces) parts.push(describeReplaced(entry.replaces, now.replaces));
      const skipped = now.skips.filter((name) => kept.has(name) && !entry.skips.includes(name));
      if (skipped.length > 0) parts.push(`now skips ${joinNames(skipped)}`);
      if (parts.length > 0) changes.push(`${quoteGo(entry.name)} ${parts.join(', and ')}`);
    }
    return changes;
  }
}

function describeReplaced(before: string, now: string): string {
  if (now === '') return `no longer replaces ${quoteGo(before)}`;
  return `replaces ${quoteGo(now)}${before === '' ? '' : ` in place of ${quoteGo(before)}`}`;
}
