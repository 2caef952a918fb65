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
  return new ChannelRepair(before, gone, versions).run();
}

/** Removes entries from one channel and rewires the others. */
class ChannelRepair {
  readonly #before: readonly ChannelEntry[];
  readonly #gone: ReadonlySet<string>;
  readonly #versions: ReadonlyMap<string, Version>;
  /** Removed entries by name. */
  readonly #removed = new Map<string, ChannelEntry>();
  /** Remaining entries with their changes. */
  readonly #kept = new Map<string, ChannelEntry>();
  #upgrades: UpgradeGraph | undefined;
  #takenOver = 0;
  readonly #ranges = new SkipRanges();

  constructor(
    before: readonly ChannelEntry[],
    gone: ReadonlySet<string>,
    versions: ReadonlyMap<string, Version>,
  ) {
    this.#before = before;
    this.#gone = gone;
    this.#versions = versions;
  }

  run(): RepairedChannel {
    if (this.#before.every(({ name }) => !this.#gone.has(name)))
      return { entries: [...this.#before], changes: [] };
    for (const entry of this.#before) {
      const { name } = entry;
      if (this.#gone.has(name)) this.#removed.set(name, entry);
      else if (!this.#kept.has(name)) this.#kept.set(name, entry);
    }
    if (this.#kept.size === 0) return { entries: [], changes: [] };
    const graph = readGraph(this.#before);
    const oldHead = getOnlyHead(graph);
    const hadWay = oldHead === undefined ? new Set<string>() : this.#leadingTo(oldHead, graph.entries);
    for (const entry of [...this.#kept.values()]) this.#kept.set(entry.name, this.#withoutGone(entry));
    const head = this.#chooseHead(oldHead);
    // An only head has a chain; the entry after a lost one may be lost too.
    for (const skipper of ['next', 'next', 'head']) {
      this.#cutCycle();
      const { heads, stranded } = readGraph([...this.#kept.values()]);
      const hasWay = this.#leadingTo(head, this.#kept);
      const lost = [...this.#kept.keys()].filter((name) => hadWay.has(name) && !hasWay.has(name));
      for (const name of new Set([...heads, ...stranded, ...lost])) {
        if (name === head) continue;
        const by = (skipper === 'next' ? this.#nextAfter(name) : undefined) ?? head;
        this.#change(by, ({ skips }) => ({ skips: [...new Set([...skips, name])] }));
      }
    }
    return {
      entries: this.#before.flatMap(({ name }) => this.#kept.get(name) ?? []),
      changes: this.#describe(oldHead, head),
    };
  }

  #change(name: string, change: (entry: ChannelEntry) => Partial<ChannelEntry>): void {
    const entry = this.#kept.get(name);
    if (entry !== undefined) this.#kept.set(name, { ...entry, ...change(entry) });
  }

  /** Returns an entry rewired around removed ones. */
  #withoutGone(entry: ChannelEntry): ChannelEntry {
    const skips = new Set(entry.skips);
    const passed = new Set<ChannelEntry>();
    let { replaces, skipRange } = entry;
    for (let next = this.#removed.get(replaces); next !== undefined; next = this.#removed.get(replaces)) {
      if (passed.has(next)) {
        replaces = '';
        break;
      }
      passed.add(next);
      skips.add(next.name);
      for (const name of next.skips) skips.add(name);
      skipRange = this.#joinRanges(skipRange, next.skipRange);
      replaces = next.replaces;
    }
    // A set includes what is added during iteration.
    for (const name of skips) {
      const skipped = this.#removed.get(name);
      if (skipped === undefined) continue;
      for (const text of [skipped.replaces, ...skipped.skips]) {
        if (text !== '' && text !== replaces && !this.#kept.has(text)) skips.add(text);
      }
    }
    if (passed.size > 0 || !entry.skips.includes(entry.name)) skips.delete(entry.name);
    if (passed.size === 0 && skips.size === new Set(entry.skips).size) return entry;
    this.#takenOver += skips.size;
    if (this.#takenOver > maxTakenOver) {
      throw new LimitError(`entries would take over more than ${maxTakenOver} names from removed entries`);
    }
    return { ...entry, replaces: replaces === entry.name ? '' : replaces, skips: [...skips], skipRange };
  }

  /** Joins two ranges, the second only if it adds something. */
  #joinRanges(first: string, second: string): string {
    if (second === '' || this.#ranges.get(second) === undefined) return first;
    if (first === '') return second;
    const parts = first.split('||').map((part) => part.trim());
    if (parts.includes(second.trim()) || this.#ranges.get(first) === undefined) return first;
    return `${first} || ${second}`;
  }

  /** Returns the entries from which `head` is reachable, including itself. */
  #leadingTo(head: string, entries: ReadonlyMap<string, ChannelEntry>): ReadonlySet<string> {
    return findWaysTo([head], entries, { versions: this.#versions, ranges: this.#ranges }).reached;
  }

  #chooseHead(oldHead: string | undefined): string {
    if (oldHead !== undefined && this.#kept.has(oldHead)) return oldHead;
    const { heads } = readGraph([...this.#kept.values()]);
    const names = heads.length > 0 ? heads : [...this.#kept.keys()];
    const [head = ''] = sortNewestFirst(names, this.#versions);
    if (heads.length === 0) {
      for (const { name, replaces, skips } of [...this.#kept.values()]) {
        if (replaces === head) this.#change(name, () => ({ replaces: '' }));
        if (skips.includes(head))
          this.#change(name, () => ({ skips: skips.filter((text) => text !== head) }));
      }
    }
    let replaced = oldHead === undefined ? '' : (this.#removed.get(oldHead)?.replaces ?? '');
    const seen = new Set<string>();
    while (this.#removed.has(replaced) && !seen.has(replaced)) {
      seen.add(replaced);
      replaced = this.#removed.get(replaced)?.replaces ?? '';
    }
    const isLeft = this.#kept.has(replaced) && replaced !== head;
    if (isLeft)
      this.#change(head, (entry) => ({ replaces: entry.replaces === '' ? replaced : entry.replaces }));
    return head;
  }

  /** Cuts a cycle of entries that only removed entries had skipped. */
  #cutCycle(): void {
    const { cycle } = readGraph([...this.#kept.values()]);
    const last = cycle.at(-2);
    if (last !== undefined) this.#change(last, () => ({ replaces: '' }));
  }

  /** Returns the first remaining entry on the former upgrade path, past removed ones. */
  #nextAfter(from: string): string | undefined {
    this.#upgrades ??= new UpgradeGraph([{ name: '', entries: this.#before }], this.#ranges);
    for (const name of walkUpgrades(this.#upgrades, [[from, this.#versions.get(from)]], this.#versions)) {
      if (this.#kept.has(name)) return name;
    }
    return undefined;
  }

  #describe(oldHead: string | undefined, head: string): string[] {
    const changes: string[] = [];
    if (oldHead !== undefined && head !== oldHead) {
      changes.push(`head is now ${quoteGo(head)}; ${quoteGo(oldHead)} is omitted`);
    }
    for (const entry of this.#before) {
      const now = this.#kept.get(entry.name);
      if (now === undefined || now === entry) continue;
      const parts: string[] = [];
      if (now.replaces !== entry.replaces) parts.push(describeReplaced(entry.replaces, now.replaces));
      const skipped = now.skips.filter((name) => this.#kept.has(name) && !entry.skips.includes(name));
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
