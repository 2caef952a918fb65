import type { OpmateError } from '../core/errors.js';
import { type Version, compareVersions, formatVersion, parseVersion } from '../core/semver.js';

/** A bundle on the way from the head of a channel to its end. */
export interface ChainNode {
  name: string;
  /** As its catalog has it. */
  version: string;
  /** The node that this one replaces. */
  next: ChainNode | undefined;
  /** The node that replaces this one; the head has none. */
  previous: ChainNode | undefined;
  /** Names that it skips in addition; there need be no bundles of these names. */
  skips: Set<string>;
}

/** The upgrade path of a channel: from the head along `replaces`, each bundle with what it skips. */
export interface ReplacesChain {
  name: string;
  head: ChainNode | undefined;
  /** Bundles that the channel leads to without their being nodes, and their versions. */
  skipped: Map<string, string>;
}

/** Links bundles from the head down, each of which replaces the next. */
export function linkChain(
  name: string,
  bundles: Iterable<{ name: string; version: string; skips?: Iterable<string> }>,
): ReplacesChain {
  const chain: ReplacesChain = { name, head: undefined, skipped: new Map() };
  let previous: ChainNode | undefined;
  for (const { name: bundle, version, skips } of bundles) {
    const node: ChainNode = { name: bundle, version, next: undefined, previous, skips: new Set(skips) };
    if (previous === undefined) chain.head = node;
    else previous.next = node;
    previous = node;
  }
  return chain;
}

/** Yields the nodes of a chain from the head down. */
export function* iterateNodes({ head }: ReplacesChain): Generator<ChainNode, void, undefined> {
  for (let node = head; node !== undefined; node = node.next) yield node;
}

interface Place {
  version: Version;
  node: ChainNode;
}

/**
 * A channel whose nodes can be found by version, and into which bundles are put by it. `parse` gives a node's version,
 * or throws; `fail` makes the error for a graph that does not go by version.
 */
export class VersionLine {
  readonly #graph: ReplacesChain;
  readonly #fail: (what: string, hint?: string) => OpmateError;
  /** Nodes by ascending version, whatever their order in the graph. */
  readonly #places: Place[] = [];
  /** Who has which version, skipped bundles too. */
  readonly #owners = new Map<string, string>();

  constructor(
    graph: ReplacesChain,
    parse: (node: ChainNode) => Version,
    fail: (what: string, hint?: string) => OpmateError,
  ) {
    this.#graph = graph;
    this.#fail = fail;
    for (const node of iterateNodes(graph)) {
      const version = parse(node);
      this.#places.push({ version, node });
      this.#owners.set(getPrecedence(version), node.name);
    }
    this.#places.sort((a, b) => compareVersions(a.version, b.version));
    for (const [name, text] of graph.skipped) {
      try {
        this.#owners.set(getPrecedence(parseVersion(text)), name);
      } catch {
        // What is skipped is never compared, so it needs no version.
      }
    }
  }

  /** Takes a version for a bundle. Returns the name of the bundle that has it already, if there is one. */
  claim(version: Version, name: string): string | undefined {
    const key = getPrecedence(version);
    const owner = this.#owners.get(key);
    if (owner === undefined) this.#owners.set(key, name);
    return owner;
  }

  /**
   * Puts a bundle between the lowest version above it and the highest below it. With `skipPatch`, of its major.minor only
   * the highest version stays in the line; it skips all others of that major.minor, and what these skipped.
   */
  add(record: { name: string; version: string }, version: Version, skipPatch: boolean): void {
    const position = this.#lowerBound(version);
    const node: ChainNode = {
      name: record.name,
      version: record.version,
      next: undefined,
      previous: undefined,
      skips: new Set(),
    };
    if (!skipPatch) {
      this.#insert(position, { version, node });
      return;
    }
    const isMate = (place: Place | undefined): place is Place =>
      place?.version.major === version.major && place.version.minor === version.minor;
    let first = position;
    let end = position;
    while (isMate(this.#places[first - 1])) first--;
    while (isMate(this.#places[end])) end++;
    // The highest takes in all others; the new bundle may be one of these.
    const highest = end > position ? (this.#places[end - 1] as Place).node : node;
    for (const { node: mate } of this.#places.slice(first, end)) {
      if (mate !== highest) this.#fold(mate, highest);
    }
    if (highest === node) {
      this.#places.splice(first, end - first);
      this.#insert(first, { version, node });
    } else {
      this.#places.splice(first, end - 1 - first);
      highest.skips.add(node.name);
    }
  }

  /** Position of the first node that has this version or a higher one. */
  #lowerBound(version: Version): number {
    let low = 0;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareVersions((this.#places[middle] as Place).version, version) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #insert(position: number, place: Place): void {
    const { node } = place;
    const above = this.#places[position]?.node;
    const below = this.#places[position - 1]?.node;
    const follower = above === undefined ? this.#graph.head : above.next;
    if (follower !== below) {
      throw this.#fail(
        `Invalid graph: bundle "${node.name}" belongs ${above === undefined ? 'at the head' : `below "${above.name}"`} and ${below === undefined ? 'at the end' : `above "${below.name}"`}, which do not follow each other`,
        'add to this package in replaces mode',
      );
    }
    this.#places.splice(position, 0, place);
    node.next = below;
    node.previous = above;
    if (below !== undefined) below.previous = node;
    if (above === undefined) this.#graph.head = node;
    else {
      above.next = node;
      above.skips.delete(node.name);
    }
  }

  /** Takes a node out of the line, to be skipped by another one with all that it skipped. */
  #fold(mate: ChainNode, into: ChainNode): void {
    if (mate.previous === undefined) this.#graph.head = mate.next;
    else mate.previous.next = mate.next;
    if (mate.next !== undefined) mate.next.previous = mate.previous;
    for (const name of [mate.name, ...mate.skips]) if (name !== into.name) into.skips.add(name);
  }
}

/** The same text for versions that are equal in precedence. */
function getPrecedence(version: Version): string {
  return formatVersion({ ...version, build: [] });
}
