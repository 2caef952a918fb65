import { pushTo } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import { countLeading } from '../../core/order.js';
import { listNames } from '../../core/suggest.js';
import type { Version } from '../../core/semver.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { describeGraphFault, followReplaces, getOnlyHead, readGraph } from '../../graph/channel-graph.js';
import { sortNewestFirst } from '../../graph/bundle-version.js';
import { UpgradeGraph, walkUpgrades } from '../../graph/upgrade-graph.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { findWaysTo } from '../../graph/ways.js';
import { type KeptEntries, describeBetween } from './keep-chain.js';

/** Entries that lead to one, with the next entry of each. */
interface WaysTo {
  target: string;
  next: ReadonlyMap<string, string>;
}

/** Upgrade paths of a channel. `versions` are the known ones of its bundles by name. */
export class ChannelWays {
  /** The only head; undefined if missing. */
  readonly head: string | undefined;
  /** Entries from the head along `replaces`, up to a cycle. */
  readonly chain: readonly string[] = [];
  readonly #list: readonly ChannelEntry[];
  readonly #entries: ReadonlyMap<string, ChannelEntry>;
  readonly #versions: ReadonlyMap<string, Version>;
  readonly #ranges = new SkipRanges();
  readonly #skippers = new Map<string, string[]>();

  constructor(list: readonly ChannelEntry[], versions: ReadonlyMap<string, Version>) {
    const graph = readGraph(list);
    const { entries } = graph;
    this.#list = list;
    this.#entries = entries;
    this.#versions = versions;
    this.head = getOnlyHead(graph);
    if (this.head !== undefined) this.chain = followReplaces(graph).names.filter((name) => entries.has(name));
    for (const { name, skips } of entries.values()) {
      for (const skip of skips) pushTo(this.#skippers, skip, name);
    }
  }

  /**
   * Returns all entries, newest first: the head, then repeatedly the highest version that previous ones replace or
   * skip; unreachable ones last, highest version first.
   */
  newestFirst(): string[] {
    const ranked = sortNewestFirst(this.#entries.keys(), this.#versions);
    const ranks = new Map(ranked.map((name, rank) => [name, rank]));
    // Ranks of named, unprocessed entries, the newest at the end.
    const open: number[] = [];
    const seen = new Set<string>();
    const names: string[] = [];
    const name = (text: string): void => {
      const rank = ranks.get(text);
      if (rank === undefined || seen.has(text)) return;
      seen.add(text);
      open.splice(
        countLeading(open, (other) => other > rank),
        0,
        rank,
      );
    };
    for (const first of [this.head ?? '', ...ranked]) {
      name(first);
      for (let rank = open.pop(); rank !== undefined; rank = open.pop()) {
        const taken = ranked[rank] as string;
        names.push(taken);
        const { replaces = '', skips = [] } = this.#entries.get(taken) ?? {};
        for (const text of [replaces, ...skips]) name(text);
      }
    }
    return names;
  }

  /**
   * Returns the entries reachable on any way to the head, including those that may be installed: with one of these
   * names, or this version.
   */
  reachableFrom(installed: ReadonlySet<string>, version: Version | undefined): Set<string> {
    if (this.head === undefined) return new Set();
    const leadsUp = this.#waysTo(this.head).next;
    const isOnWay = (name: string): boolean => name === this.head || leadsUp.has(name);
    const graph = new UpgradeGraph([{ name: '', entries: this.#list }], this.#ranges);
    // A range covers the version under any name.
    const sources = [...installed, ''].map((name) => [name, this.#versions.get(name) ?? version] as const);
    const running = [...installed].filter((name) => this.#entries.has(name) && isOnWay(name));
    return new Set([...running, ...walkUpgrades(graph, sources, this.#versions, isOnWay)]);
  }

  /**
   * Adds to the requested entries as few others as a valid channel needs in which each keeps its way to the head: the
   * head (the highest requested, else the lowest of the chain), entries on the way, and those that skip dead ends. If
   * that is invalid, the head moves up the chain, at most to the whole channel. No edge is added or changed, so
   * clusters get no upgrade that the author did not offer.
   */
  keep(requested: ReadonlySet<string>): KeptEntries {
    const none = new Map<string, string>();
    if (requested.size === 0 || requested.size === this.#entries.size)
      return { names: requested, reasons: none };
    const hadWay = this.head === undefined ? none : this.#waysTo(this.head).next;
    const needed = [...requested].filter((name) => hadWay.has(name) || name === this.head);
    for (const ways of this.#heads(requested, needed)) {
      const kept = this.#extend(requested, ways, (name) => hadWay.has(name));
      if (kept !== undefined) return kept;
    }
    const rest = [...this.#entries.keys()].filter((name) => !requested.has(name));
    const reason = 'is required, as no smaller part of the channel is valid';
    return { names: new Set(this.#entries.keys()), reasons: new Map(rest.map((name) => [name, reason])) };
  }

  /** Returns possible heads, best first: all required entries lead to them. */
  *#heads(requested: ReadonlySet<string>, needed: readonly string[]): Generator<WaysTo, void, undefined> {
    const { head } = this;
    if (head === undefined) return;
    if (requested.has(head)) {
      yield this.#waysTo(head);
      return;
    }
    const reach = ({ target, next }: WaysTo): boolean =>
      needed.every((name) => name === target || next.has(name));
    const [highest] = sortNewestFirst(needed, this.#versions);
    if (highest !== undefined) {
      const ways = this.#waysTo(highest);
      if (reach(ways)) yield ways;
    }
    // Entries above one of the chain are reachable from its predecessors too.
    let [above, below] = [0, this.chain.length - 1];
    while (above < below) {
      const middle = Math.ceil((above + below) / 2);
      if (reach(this.#waysTo(this.chain[middle] as string))) above = middle;
      else below = middle - 1;
    }
    // Growing steps, so that a long chain is not read once per entry.
    for (let position = above, step = 1; position > 0; position -= step, step *= 2) {
      yield this.#waysTo(this.chain[position] as string);
    }
    yield this.#waysTo(head);
  }

  /** Returns the requested entries with those they need below a head; undefined for an invalid channel. */
  #extend(
    requested: ReadonlySet<string>,
    { target, next }: WaysTo,
    hadWay: (name: string) => boolean,
  ): KeptEntries | undefined {
    const names = new Set(requested);
    const reasons = new Map<string, string>();
    const add = (name: string, reason: string): void => {
      if (names.has(name)) return;
      names.add(name);
      reasons.set(name, reason);
    };
    add(target, listNames('is the head that all others lead to:', requested));
    for (let size = 0; size !== names.size;) {
      size = names.size;
      const graph = readGraph(this.#list.filter(({ name }) => names.has(name)));
      const reaching = this.#reaching(target, names);
      const lost = [...names].filter((name) => name !== target && hadWay(name) && !reaching.has(name));
      const loose = new Set([...lost, ...graph.heads.filter((name) => name !== target)]);
      for (const from of loose) {
        const steps = new Set<string>();
        for (let name = next.get(from); name !== undefined && name !== target; name = next.get(name)) {
          if (steps.has(name)) break;
          steps.add(name);
          if (reaching.has(name)) break;
        }
        const reason = `is on the upgrade path from ${quoteGo(from)} to the head ${quoteGo(target)}`;
        for (const name of steps) add(name, reason);
      }
      if (names.size > size) continue;
      if (loose.size === 0 && describeGraphFault(graph) === undefined) return { names, reasons };
      for (const name of new Set([...graph.stranded, ...loose])) {
        const skipper = this.#skippers.get(name)?.find((text) => text === target || next.has(text));
        if (skipper !== undefined) add(skipper, `skips ${quoteGo(name)}, which has no other upgrade`);
        this.#fillChain(name, target, add);
      }
    }
    return undefined;
  }

  /** Adds the chain between an entry and a head, if both are on it. */
  #fillChain(name: string, target: string, add: (name: string, reason: string) => void): void {
    const [from, to] = [this.chain.indexOf(target), this.chain.indexOf(name)];
    if (from < 0) return;
    for (let position = from + 1; position < to; position++) {
      add(this.chain[position] as string, describeBetween(this.chain, position));
    }
  }

  #waysTo(target: string): WaysTo {
    const options = { versions: this.#versions, ranges: this.#ranges };
    return { target, next: findWaysTo([target], this.#entries, options).next };
  }

  /** Returns those of `names` that lead to an entry through these only. */
  #reaching(target: string, names: ReadonlySet<string>): ReadonlySet<string> {
    return findWaysTo([target], this.#entries, {
      versions: this.#versions,
      ranges: this.#ranges,
      candidates: names,
      isKnown: (name) => names.has(name),
    }).reached;
  }
}
