import type { OpmateError } from '../core/errors.js';
import { countLeading } from '../core/order.js';
import { type Version, compareVersions, formatVersion, parseVersion } from '../core/semver.js';

/** A bundle on the chain from the head of a channel to its end. */
export interface ChainNode {
  name: string;
  /** Bundle as its catalog has it. */
  version: string;
  /** Replaced node. */
  next: ChainNode | undefined;
  /** Replacing node; undefined for the head. */
  previous: ChainNode | undefined;
  /** Other skipped names, with or without bundles. */
  skips: Set<string>;
}

/** Upgrade chain of a channel: from the head along `replaces`, each bundle with its skips. */
export interface ReplacesChain {
  name: string;
  head: ChainNode | undefined;
  /** Skipped bundles without a node, with their versions. */
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
 * A channel whose nodes are found and inserted by version. `parse` returns the version of a node or throws; `fail`
 * creates the error for a graph that is not ordered by version.
 */
export class VersionLine {
  readonly #graph: ReplacesChain;
  readonly #fail: (what: string, hint?: string) => OpmateError;
  /** Nodes by ascending version, whatever their order in the graph. */
  readonly #places: Place[] = [];
  /** Bundle names by version, including skipped bundles. */
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

  /** Claims a version for a bundle. Returns the name of the bundle that already has it, if any. */
  claim(version: Version, name: string): string | undefined {
    const key = getPrecedence(version);
    const owner = this.#owners.get(key);
    if (owner === undefined) this.#owners.set(key, name);
    return owner;
  }

  /**
   * Inserts a bundle between the next higher and the next lower version. With `skipPatch`, only the highest version
   * of its major.minor stays in the line; it skips the others, and everything they skipped.
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
    // The highest version absorbs all others, possibly the new bundle.
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

  /** Returns the position of the first node with this version or a higher one. */
  #lowerBound(version: Version): number {
    return countLeading(this.#places, (place) => compareVersions(place.version, version) < 0);
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

  /** Removes a node from the line; another one skips it with everything it skipped. */
  #fold(mate: ChainNode, into: ChainNode): void {
    if (mate.previous === undefined) this.#graph.head = mate.next;
    else mate.previous.next = mate.next;
    if (mate.next !== undefined) mate.next.previous = mate.previous;
    for (const name of [mate.name, ...mate.skips]) if (name !== into.name) into.skips.add(name);
  }
}

/** Returns the same text for versions of equal precedence. */
function getPrecedence(version: Version): string {
  return formatVersion({ ...version, build: [] });
}
