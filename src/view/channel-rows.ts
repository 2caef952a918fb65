import { takeTurn } from '../core/concurrency.js';
import { compareBytes } from '../core/order.js';
import type { Version } from '../core/semver.js';
import { compareKnownVersions } from '../graph/bundle-version.js';
import type { ChannelEntry } from '../model/declarative-config.js';
import { type ChannelGraph, readGraph } from '../graph/channel-graph.js';
import type { GraphEdge, SkipBracket } from './answers.js';

/** Columns beside the lanes for brackets; more would be a thicket. */
const maxBracketColumns = 6;
/** Ticks that all brackets together may have; more cannot be told apart, and are slow to draw. */
const maxBracketTicks = 4_000;

/** The upgrade graph of a channel as rows. */
interface ChannelRows {
  graph: ChannelGraph;
  /** Newest first; every bundle above those that it replaces or skips, unless edges go round in a circle. */
  rows: LaidRow[];
  lanes: number;
  edges: GraphEdge[];
  brackets: SkipBracket[];
  bracketColumns: number;
  hiddenBrackets: number;
}

/** An entry with its lane. */
interface LaidRow {
  entry: ChannelEntry;
  lane: number;
  older?: number | undefined;
  /** All rows that a line leads down to. */
  olders: number[];
  newer?: number;
  skippedBy?: number;
}

interface LayoutOptions {
  /** By entry, what it replaces in addition: in another channel, or in another catalog. */
  more?: ReadonlyMap<string, readonly string[]>;
  /** What stands in the first lane; the chain of the entries' graph where it is left out. */
  chain?: readonly string[];
}

/**
 * Lays a channel out as rows with lanes beside them. The chain from the head stands in the first lane; what joins it
 * from the side stands in lanes beside it, each as near as there is room. Takes time of about n log n in entries and
 * skips, whatever the graph looks like: it may be one that no check would pass. Other work has its turn meanwhile.
 */
export async function layOutChannel(
  list: readonly ChannelEntry[],
  versionOf: (name: string) => Version | undefined,
  { more = new Map(), chain }: LayoutOptions = {},
): Promise<ChannelRows> {
  const graph = readGraph(list);
  await takeTurn();
  const order = await orderRows(graph, versionOf, more);
  const places = new Map(order.map(({ name }, index) => [name, index]));
  const rows = order.map((entry): LaidRow => ({ entry, lane: 0, olders: [] }));
  for (const [index, row] of rows.entries()) {
    for (const name of [row.entry.replaces, ...(more.get(row.entry.name) ?? [])]) {
      const older = places.get(name);
      if (older === undefined || row.olders.includes(older)) continue;
      row.olders.push(older);
      (rows[older] as LaidRow).newer ??= index;
    }
    if (places.has(row.entry.replaces) || row.entry.replaces === '') row.older = row.olders[0];
    for (const name of row.entry.skips) {
      const skipped = rows[places.get(name) ?? -1];
      if (skipped !== undefined && skipped !== row) skipped.skippedBy ??= index;
    }
    await takeTurn();
  }
  const lanes = await placeInLanes(rows, new Set(chain ?? graph.chain));
  return { graph, rows, ...lanes, ...(await placeBrackets(rows, places)) };
}

/** Each entry before those that it replaces or skips; of several that may come next, the newest. */
async function orderRows(
  graph: ChannelGraph,
  versionOf: (name: string) => Version | undefined,
  more: ReadonlyMap<string, readonly string[]>,
): Promise<ChannelEntry[]> {
  const { entries } = graph;
  const versions = new Map<string, Version | undefined>();
  for (const name of entries.keys()) {
    versions.set(name, versionOf(name));
    await takeTurn();
  }
  const newestFirst = [...entries.keys()].sort(
    (a, b) => compareKnownVersions(versions.get(b), versions.get(a)) || compareBytes(b, a),
  );
  const ranks = new Map(newestFirst.map((name, rank) => [name, rank]));
  const waitsFor = new Map<string, number>();
  const targets = (entry: ChannelEntry): Set<string> => {
    const replaced = [entry.replaces, ...(more.get(entry.name) ?? [])];
    const names = new Set([...replaced, ...entry.skips].filter((name) => entries.has(name)));
    names.delete(entry.name);
    return names;
  };
  for (const entry of entries.values()) {
    for (const name of targets(entry)) waitsFor.set(name, (waitsFor.get(name) ?? 0) + 1);
    await takeTurn();
  }
  const ready = new Heap();
  for (const name of newestFirst) if (!waitsFor.has(name)) ready.push(ranks.get(name) as number);
  const ordered: ChannelEntry[] = [];
  const done = new Set<string>();
  let next = 0;
  while (ordered.length < entries.size) {
    // Where all that is left waits for something, edges go in a circle: it is cut at the newest.
    while (done.has(newestFirst[next] ?? '')) next++;
    const name = newestFirst[ready.pop() ?? next] as string;
    if (done.has(name)) continue;
    done.add(name);
    const entry = entries.get(name) as ChannelEntry;
    ordered.push(entry);
    await takeTurn();
    for (const target of targets(entry)) {
      const left = (waitsFor.get(target) as number) - 1;
      waitsFor.set(target, left);
      if (left === 0 && !done.has(target)) ready.push(ranks.get(target) as number);
    }
  }
  return ordered;
}

/** The smallest number first. */
class Heap {
  readonly #items: number[] = [];

  push(item: number): void {
    const items = this.#items;
    let position = items.push(item) - 1;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if ((items[parent] as number) <= item) break;
      items[position] = items[parent] as number;
      position = parent;
    }
    items[position] = item;
  }

  pop(): number | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let position = 0;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && (items[child + 1] as number) < (items[child] as number)) child++;
      if ((items[child] as number) >= last) break;
      items[position] = items[child] as number;
      position = child;
    }
    items[position] = last;
    return first;
  }
}

/** Gives rows their lanes, and edges the lane in which they go down. */
async function placeInLanes(
  rows: readonly LaidRow[],
  chain: ReadonlySet<string>,
): Promise<{ lanes: number; edges: GraphEdge[] }> {
  const edges: GraphEdge[] = [];
  /** What the line in each lane leads to. */
  const waiting: (number | undefined)[] = chain.size > 0 ? [-1] : [];
  let lanes = 1;
  for (const [index, row] of rows.entries()) {
    // In a circle, a line of the chain may pass a bundle of the chain that is not its target.
    const isInFirst =
      chain.has(row.entry.name) && (waiting[0] === undefined || waiting[0] < 0 || waiting[0] === index);
    const own = isInFirst ? 0 : waiting.indexOf(index);
    row.lane = own >= 0 ? own : freeLane(waiting);
    for (const [lane, target] of waiting.entries()) if (target === index) waiting[lane] = undefined;
    // The first lane is the chain's, also where nothing leads down in it.
    if (chain.size > 0) waiting[0] ??= -1;
    for (const [number, older] of row.olders.entries()) {
      if (older > index) {
        const shared = waiting.indexOf(older);
        const usual = number === 0 ? row.lane : freeLane(waiting);
        const isOnChain = isInFirst && older === row.older && chain.has(row.entry.replaces);
        const lane = isOnChain ? 0 : shared >= 0 ? shared : usual;
        waiting[lane] = older;
        edges.push({ from: index, to: older, lane });
      } else if (older !== index) {
        // Backwards, in a circle: beside all others.
        edges.push({ from: index, to: older, lane: -1 });
      }
    }
    lanes = Math.max(lanes, waiting.length, row.lane + 1);
    await takeTurn();
  }
  const isCircular = edges.some(({ lane }) => lane < 0);
  for (const edge of edges) if (edge.lane < 0) edge.lane = lanes;
  return { lanes: isCircular ? lanes + 1 : lanes, edges };
}

function freeLane(waiting: (number | undefined)[]): number {
  const free = waiting.indexOf(undefined);
  return free >= 0 ? free : waiting.push(undefined) - 1;
}

/** A bracket for every bundle that skips others of the channel, as far as there is room. */
async function placeBrackets(
  rows: readonly LaidRow[],
  places: ReadonlyMap<string, number>,
): Promise<Pick<ChannelRows, 'brackets' | 'bracketColumns' | 'hiddenBrackets'>> {
  const brackets: SkipBracket[] = [];
  const columns: { from: number; to: number }[][] = [];
  let hiddenBrackets = 0;
  let ticks = 0;
  for (const [from, { entry }] of rows.entries()) {
    const to = [...new Set(entry.skips)]
      .map((name) => places.get(name) ?? from)
      .filter((position) => position !== from)
      .sort((a, b) => a - b);
    if (to.length === 0) continue;
    await takeTurn();
    if (ticks + to.length > maxBracketTicks) {
      hiddenBrackets++;
      continue;
    }
    const span = { from: Math.min(from, to[0] as number), to: Math.max(from, to.at(-1) as number) };
    let column = columns.findIndex((taken) =>
      taken.every((other) => other.to < span.from || other.from > span.to),
    );
    if (column < 0) column = columns.length;
    if (column >= maxBracketColumns) {
      hiddenBrackets++;
      continue;
    }
    ticks += to.length;
    (columns[column] ??= []).push(span);
    brackets.push({ from, to, column });
  }
  return { brackets, bracketColumns: columns.length, hiddenBrackets };
}
