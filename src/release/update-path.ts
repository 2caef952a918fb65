import { compareVersions } from '../core/semver.js';
import type { ReleaseNode, Update, UpdateGraph, UpdateRisk } from './update-graph.js';

/** Releases of a path, including both ends. */
export interface UpdatePath {
  nodes: ReleaseNode[];
  /** Updates that are not recommended to all clusters. */
  risky: { from: string; to: string; risks: readonly UpdateRisk[] }[];
}

/** Cost of an update: the number of risky updates, then of all. */
interface Reached {
  node: ReleaseNode;
  risky: number;
  steps: number;
  by: { from: Reached; update: Update } | undefined;
}

/**
 * Returns the path with the fewest risky updates, then the shortest, then the one with the newest first release;
 * undefined if unreachable.
 */
export function findUpdatePath(
  graph: UpdateGraph,
  from: ReleaseNode,
  to: ReleaseNode,
): UpdatePath | undefined {
  const end = reach(graph, from).get(to.version);
  if (end === undefined) return undefined;
  const path: UpdatePath = { nodes: [end.node], risky: [] };
  for (let reached = end; reached.by !== undefined; reached = reached.by.from) {
    const { from: before, update } = reached.by;
    path.nodes.unshift(before.node);
    if (update.risks.length > 0)
      path.risky.unshift({ from: before.node.version, to: reached.node.version, risks: update.risks });
  }
  return path;
}

/** Returns the releases that are reachable, with the number of risky updates on the best path to each. */
export function listReached(graph: UpdateGraph, from: ReleaseNode): { node: ReleaseNode; risky: number }[] {
  return [...reach(graph, from).values()];
}

/** Returns the newest release up to `to` that is reachable from `from`, possibly `from` itself. */
export function findNearestReached(graph: UpdateGraph, from: ReleaseNode, to: ReleaseNode): ReleaseNode {
  let nearest = from;
  for (const { node } of reach(graph, from).values()) {
    if (compareVersions(node.parsed, to.parsed) <= 0 && compareVersions(node.parsed, nearest.parsed) > 0)
      nearest = node;
  }
  return nearest;
}

/** Returns reachable releases with their best paths: those with n risky updates are found before those with more. */
function reach(graph: UpdateGraph, from: ReleaseNode): Map<string, Reached> {
  const settled = new Map<string, Reached>();
  let level: Reached[] = [{ node: from, risky: 0, steps: 0, by: undefined }];
  while (level.length > 0) {
    const riskier = new Map<string, Reached>();
    // Releases after a risky update differ in path length, so the shortest start first.
    const waiting = level.sort((a, b) => a.steps - b.steps);
    let queue: Reached[] = [];
    for (let steps = waiting[0]?.steps ?? 0; waiting.length > 0 || queue.length > 0; steps++) {
      const next: Reached[] = [];
      const entering = waiting.filter((reached) => reached.steps === steps);
      waiting.splice(0, entering.length);
      for (const item of [...queue, ...entering]) {
        if (settled.has(item.node.version)) continue;
        settled.set(item.node.version, item);
        for (const update of graph.edges.get(item.node.version) ?? []) {
          const { to, risks } = update;
          if (settled.has(to.version)) continue;
          const reached = { node: to, steps: item.steps + 1, by: { from: item, update } };
          if (risks.length === 0) next.push({ ...reached, risky: item.risky });
          else {
            const known = riskier.get(to.version);
            if (known === undefined || reached.steps < known.steps)
              riskier.set(to.version, { ...reached, risky: item.risky + 1 });
          }
        }
      }
      queue = next;
    }
    level = [...riskier.values()].filter(({ node }) => !settled.has(node.version));
  }
  return settled;
}
