import { type OpenShiftVersion, compareOpenShift } from '../core/openshift-version.js';
import { compareVersions } from '../core/semver.js';
import { type ReleaseNode, type UpdateGraph, type UpdateRisk, mergeGraphs } from './update-graph.js';
import { findUpdatePath, listReached } from './update-path.js';

/** An update of a cluster to a release. */
export interface ReleaseUpdate {
  from: string;
  node: ReleaseNode;
  /** Channel whose graph has the update. */
  channel: string;
  risks: readonly UpdateRisk[];
}

/** Updates of a cluster, one after the other. */
interface ClusterPath {
  updates: ReleaseUpdate[];
  /** Reason why the path ends before its target; undefined if it does not. */
  problem: string | undefined;
}

/** Graph of a channel. */
export interface ReleaseChannel {
  channel: string;
  graph: UpdateGraph;
}

/**
 * Finds the updates from a release to a version of OpenShift, by the graphs of several channels, oldest first. The target is
 * a release, or the newest one of a version that is reachable with the fewest risky updates. Without a path to it, the
 * path leads to the nearest release below it.
 */
export function findClusterPath(
  channels: readonly ReleaseChannel[],
  from: string,
  to: { version: OpenShiftVersion; release: string | undefined },
): ClusterPath {
  const graph = mergeGraphs(channels.map((channel) => channel.graph));
  const names = channels.map(({ channel }) => channel).join(', ');
  const start = graph.byVersion.get(from);
  if (start === undefined) return { updates: [], problem: `release ${from} is not in ${names}` };
  const order = (a: ReleaseNode, b: ReleaseNode): number => compareVersions(a.parsed, b.parsed);
  const reached = listReached(graph, start).filter(({ node }) => node !== start);
  const isTarget = ({ version, parsed }: ReleaseNode): boolean =>
    to.release === undefined
      ? compareOpenShift(toOpenShift(parsed), to.version) === 0
      : version === to.release;
  const [target] = reached
    .filter(({ node }) => isTarget(node))
    .sort((a, b) => a.risky - b.risky || order(b.node, a.node));
  const nearest = reached
    .filter(({ node }) => compareOpenShift(toOpenShift(node.parsed), to.version) < 0)
    .sort((a, b) => order(b.node, a.node))[0];
  const end = target?.node ?? nearest?.node;
  const updates = end === undefined ? [] : listUpdates(channels, graph, start, end);
  if (target !== undefined) return { updates, problem: undefined };
  const name = to.release ?? `${to.version.major}.${to.version.minor}`;
  const newest =
    nearest === undefined ? `${from} has no updates` : `the newest reachable is ${nearest.node.version}`;
  return { updates, problem: `no update leads to ${name} in ${names}: ${newest}` };
}

function toOpenShift({ major, minor }: ReleaseNode['parsed']): OpenShiftVersion {
  return { major: Number(major), minor: Number(minor) };
}

function listUpdates(
  channels: readonly ReleaseChannel[],
  graph: UpdateGraph,
  start: ReleaseNode,
  end: ReleaseNode,
): ReleaseUpdate[] {
  const { nodes, risky } = findUpdatePath(graph, start, end) ?? { nodes: [], risky: [] };
  return nodes.slice(1).map((node, index) => {
    const from = (nodes[index] as ReleaseNode).version;
    const has = ({ graph: { edges } }: ReleaseChannel): boolean =>
      edges.get(from)?.some(({ to }) => to.version === node.version) === true;
    return {
      from,
      node,
      channel: channels.find(has)?.channel ?? '',
      risks: risky.find((item) => item.from === from && item.to === node.version)?.risks ?? [],
    };
  });
}
