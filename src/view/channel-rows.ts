import { takeTurn } from '../core/concurrency.js';
import { compareBytes } from '../core/order.js';
import type { Version } from '../core/semver.js';
import { compareKnownVersions } from '../graph/bundle-version.js';
import type { ChannelEntry } from '../model/declarative-config.js';
import { type ChannelGraph, readGraph } from '../graph/channel-graph.js';
import type { GraphEdge, SkipBracket } from './responses.js';

/** Maximum columns of brackets, for readability. */
const maxBracketColumns = 6;
/** Maximum ticks of all brackets; more are slow to draw. */
const maxBracketTicks = 4_000;

interface ChannelRows {
  graph: ChannelGraph;
  /** Newest first; every bundle is above those that it replaces or skips, except in a cycle. */
  rows: LayoutRow[];
  lanes: number;
  edges: GraphEdge[];
  brackets: SkipBracket[];
  bracketColumns: number;
  hiddenBrackets: number;
}

interface LayoutRow {
  entry: ChannelEntry;
  lane: number;
  older?: number | undefined;
  /** Rows of all replaced bundles. */
  olders: number[];
  newer?: number;
  skippedBy?: number;
}

interface LayoutOptions {
  /** Further replaced bundles by entry, from other channels or another catalog. */
  moreReplaces?: ReadonlyMap<string, readonly string[]>;
  /** Bundles of the first lane; default: the chain from the head. */
  chain?: readonly string[];
}

/**
 * Lays out a channel as rows and lanes: the chain from the head in the first lane, other bundles in the next free
 * lanes. Accepts invalid graphs. Takes O(n log n) time in entries and skips, and yields to other work meanwhile.
 */
export async function layOutChannel(
  list: readonly ChannelEntry[],
  getVersion: (name: string) => Version | undefined,
  { moreReplaces = new Map(), chain }: LayoutOptions = {},
): Promise<ChannelRows> {
  const graph = readGraph(list);
  await takeTurn();
  const order = await orderRows(graph, getVersion, moreReplaces);
  const places = new Map(order.map(({ name }, index) => [name, index]));
  const rows = order.map((entry): LayoutRow => ({ entry, lane: 0, olders: [] }));
  for (const [index, row] of rows.entries()) {
    for (const name of [row.entry.replaces, ...(moreReplaces.get(row.entry.name) ?? [])]) {
      const older = places.get(name);
      if (older === undefined || row.olders.includes(older)) continue;
      row.olders.push(older);
      (rows[older] as LayoutRow).newer ??= index;
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

/** Sorts entries before those that they replace or skip; among several, the newest first. */
async function orderRows(
  graph: ChannelGraph,
  getVersion: (name: string) => Version | undefined,
  moreReplaces: ReadonlyMap<string, readonly string[]>,
): Promise<ChannelEntry[]> {
  const { entries } = graph;
  const versions = new Map<string, Version | undefined>();
  for (const name of entries.keys()) {
    versions.set(name, getVersion(name));
    await takeTurn();
  }
  const newestFirst = [...entries.keys()].sort(
    (a, b) => compareKnownVersions(versions.get(b), versions.get(a)) || compareBytes(b, a),
  );
  const ranks = new Map(newestFirst.map((name, rank) => [name, rank]));
  const waitsFor = new Map<string, number>();
  const targets = (entry: ChannelEntry): Set<string> => {
    const replaced = [entry.replaces, ...(moreReplaces.get(entry.name) ?? [])];
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
    // If no entry is ready, edges form a cycle: continue at its newest entry.
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

/** Priority queue of numbers, smallest first. */
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

/** Sets the lanes of rows, and returns the edges with their lanes. */
async function placeInLanes(
  rows: readonly LayoutRow[],
  chain: ReadonlySet<string>,
): Promise<{ lanes: number; edges: GraphEdge[] }> {
  const edges: GraphEdge[] = [];
  /** Target row of the edge in each lane; −1 reserves a lane. */
  const targetRows: (number | undefined)[] = chain.size > 0 ? [-1] : [];
  let lanes = 1;
  for (const [index, row] of rows.entries()) {
    // In a cycle, an edge of the chain may pass a bundle of the chain that is not its target.
    const isInFirstLane =
      chain.has(row.entry.name) &&
      (targetRows[0] === undefined || targetRows[0] < 0 || targetRows[0] === index);
    const reserved = isInFirstLane ? 0 : targetRows.indexOf(index);
    row.lane = reserved >= 0 ? reserved : takeFreeLane(targetRows);
    for (const [lane, target] of targetRows.entries()) if (target === index) targetRows[lane] = undefined;
    // Reserve the first lane for the chain.
    if (chain.size > 0) targetRows[0] ??= -1;
    for (const [number, older] of row.olders.entries()) {
      if (older > index) {
        const shared = targetRows.indexOf(older);
        const ownLane = number === 0 ? row.lane : takeFreeLane(targetRows);
        const isOnChain = isInFirstLane && older === row.older && chain.has(row.entry.replaces);
        const lane = isOnChain ? 0 : shared >= 0 ? shared : ownLane;
        targetRows[lane] = older;
        edges.push({ from: index, to: older, lane });
      } else if (older !== index) {
        // An upward edge of a cycle is drawn in a lane after all others.
        edges.push({ from: index, to: older, lane: -1 });
      }
    }
    lanes = Math.max(lanes, targetRows.length, row.lane + 1);
    await takeTurn();
  }
  const hasCycle = edges.some(({ lane }) => lane < 0);
  for (const edge of edges) if (edge.lane < 0) edge.lane = lanes;
  return { lanes: hasCycle ? lanes + 1 : lanes, edges };
}

function takeFreeLane(targetRows: (number | undefined)[]): number {
  const free = targetRows.indexOf(undefined);
  return free >= 0 ? free : targetRows.push(undefined) - 1;
}

/** Returns a bracket for every bundle that skips others, within the limits. */
async function placeBrackets(
  rows: readonly LayoutRow[],
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
