import { ErrorList } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { getOrAdd } from '../core/groups.js';
import {
  type OpenShiftVersion,
  compareOpenShiftNames,
  formatOpenShift,
  readOpenShiftVersion,
  stepOpenShift,
} from '../core/openshift-version.js';
import { type Version, compareVersions, parseVersion } from '../core/semver.js';
import { findNearest } from '../document/field.js';
import type { ReleaseNode, UpdateGraph } from './update-graph.js';
import { type UpdatePath, findNearestReached, findUpdatePath } from './update-path.js';

/** Publishers of releases. */
export type ReleaseType = 'ocp' | 'okd';

/** A requested channel with its range. */
export interface ChannelRequest {
  name: string;
  type: ReleaseType;
  minVersion: string | undefined;
  maxVersion: string | undefined;
  /** Start at the oldest release of the channel. */
  full: boolean;
  /** Select only releases on the shortest path between both ends. */
  shortestPath: boolean;
}

/** A release to mirror. */
export interface SelectedRelease {
  architecture: string;
  node: ReleaseNode;
  type: ReleaseType;
  /** Graph of the release. */
  channel: string;
  /** Reason for messages. */
  reason: string;
}

interface SelectOptions {
  /** Fail instead of using updates with known risks. */
  avoidRisks: boolean;
  /** Reads a graph; called once per channel. */
  readGraph: (type: ReleaseType, channel: string) => Promise<UpdateGraph>;
}

/** A channel with both ends. */
interface ChannelRange {
  channel: ChannelRequest;
  graph: UpdateGraph;
  min: Version;
  max: Version;
}

/**
 * Selects the releases of one architecture: of each channel those between both ends, or on the shortest path; of
 * several channels also the path from the oldest to the newest release. Throws OpmateError for channels without
 * releases, unknown versions, and ends without an update path. (Source: oc-mirror v2.)
 */
export async function selectReleases(
  channels: readonly ChannelRequest[],
  architecture: string,
  { avoidRisks, readGraph }: SelectOptions,
): Promise<{ releases: SelectedRelease[]; warnings: string[] }> {
  return new ReleaseSelection(channels, architecture, avoidRisks, readGraph).run();
}

/** Selects releases, reading the graph of each channel once. */
class ReleaseSelection {
  readonly #channels: readonly ChannelRequest[];
  readonly #architecture: string;
  readonly #avoidRisks: SelectOptions['avoidRisks'];
  readonly #readGraph: SelectOptions['readGraph'];
  readonly #graphs = new Map<string, Promise<UpdateGraph>>();
  readonly #selected = new Map<string, SelectedRelease>();
  readonly #warnings = new Set<string>();

  constructor(
    channels: readonly ChannelRequest[],
    architecture: string,
    avoidRisks: SelectOptions['avoidRisks'],
    readGraph: SelectOptions['readGraph'],
  ) {
    this.#channels = channels;
    this.#architecture = architecture;
    this.#avoidRisks = avoidRisks;
    this.#readGraph = readGraph;
  }

  async run(): Promise<{ releases: SelectedRelease[]; warnings: string[] }> {
    const errors = new ErrorList();
    const ranges: ChannelRange[] = [];
    for (const channel of this.#channels) {
      await errors.try(
        async () => {
          const range = await this.#readRange(channel);
          ranges.push(range);
          if (channel.shortestPath) this.#addShortestPath(range);
          else this.#addRange(range);
        },
        ({ code }) => code !== 'INTERNAL',
      );
    }
    errors.throwIfAny();
    const published = ranges.filter(({ channel }) => channel.type === 'ocp');
    if (ranges.length > 1 && published.length > 0) await this.#addCrossPath(published);
    const releases = [...this.#selected.values()];
    releases.sort((a, b) => compareVersions(a.node.parsed, b.node.parsed));
    return { releases, warnings: [...this.#warnings] };
  }

  #getGraph(type: ReleaseType, channel: string): Promise<UpdateGraph> {
    const key = `${type} ${channel}`;
    return getOrAdd(this.#graphs, key, () => this.#readGraph(type, channel));
  }

  async #readRange(channel: ChannelRequest): Promise<ChannelRange> {
    const { name, type, minVersion, maxVersion, full } = channel;
    const graph = await this.#getGraph(type, name);
    const [first, last] = [graph.nodes[0], graph.nodes.at(-1)];
    if (first === undefined || last === undefined) {
      throw new OpmateError('NOT_FOUND', 'no releases', {
        subject: graph.label,
        hint: 'check the name with api.listReleaseChannels',
      });
    }
    const max = maxVersion === undefined ? last.parsed : parseVersion(maxVersion);
    const fromFirst = full || maxVersion !== undefined;
    const min = minVersion === undefined ? (fromFirst ? first.parsed : max) : parseVersion(minVersion);
    return { channel, graph, min, max };
  }

  #addRange({ channel, graph, min, max }: ChannelRange): void {
    const chosen = graph.nodes.filter(
      ({ parsed }) => compareVersions(parsed, min) >= 0 && compareVersions(parsed, max) <= 0,
    );
    if (chosen.length === 0) {
      const [first, last] = [graph.nodes[0] as ReleaseNode, graph.nodes.at(-1) as ReleaseNode];
      const { minVersion, maxVersion } = channel;
      const range = [
        minVersion === undefined ? '' : `from version ${minVersion}`,
        maxVersion === undefined ? '' : `up to version ${maxVersion}`,
      ];
      throw new OpmateError('NOT_FOUND', `no release ${range.filter(Boolean).join(' ')}`, {
        subject: graph.label,
        hint: `use a version from ${first.version} to ${last.version}`,
      });
    }
    const isHead = channel.minVersion === undefined && chosen.length === 1;
    for (const node of chosen)
      this.#add(node, channel, isHead ? `head of ${channel.name}` : `in ${channel.name}`);
  }

  #addShortestPath({ channel, graph, min, max }: ChannelRange): void {
    const [from, to] = [getNode(graph, min, channel.minVersion), getNode(graph, max, channel.maxVersion)];
    const path = findUpdatePath(graph, from, to);
    if (path === undefined) {
      const nearest = findNearestReached(graph, from, to);
      const reached =
        nearest === from
          ? `${from.version} has no updates`
          : `the newest reachable version is ${nearest.version}`;
      throw new OpmateError('INVALID', `no update path from ${from.version} to ${to.version}`, {
        subject: graph.label,
        hint: `change minVersion or maxVersion, or remove shortestPath: ${reached}`,
      });
    }
    this.#addPath(path, graph, channel, `on the shortest path in ${channel.name}`);
  }

  #addPath(path: UpdatePath, graph: UpdateGraph, channel: ChannelRequest, reason: string): void {
    for (const { from, to, risks } of path.risky) {
      const named = risks.map(({ name, url }) => (url === '' ? name : `${name}, ${url}`)).join('; ');
      const problem = `the only way from ${from} to ${to} is a conditional update (${named})`;
      if (this.#avoidRisks) {
        throw new OpmateError('INVALID', problem, {
          subject: graph.label,
          hint: 'review the risk, then remove options.avoidRisks',
        });
      }
      this.#warnings.add(`${graph.label}: ${problem}`);
    }
    for (const node of path.nodes) this.#add(node, channel, reason);
  }

  #add(node: ReleaseNode, { type, name }: ChannelRequest, reason: string): void {
    const key = `${node.payload.registry}/${node.payload.repository}@${node.payload.digest}`;
    if (this.#selected.has(key)) return;
    this.#selected.set(key, { architecture: this.#architecture, node, type, channel: name, reason });
  }

  /** Adds the path from the oldest release of several channels to the newest. */
  async #addCrossPath(ranges: readonly ChannelRange[]): Promise<void> {
    const [first, last] = [
      ranges.reduce((range, other) => (compareVersions(other.min, range.min) < 0 ? other : range)),
      ranges.reduce((range, other) => (compareVersions(other.max, range.max) > 0 ? other : range)),
    ];
    const [source, target] = [first.channel.name, last.channel.name];
    const path = `update path from ${source} to ${target}`;
    const from = findNode(first.graph, first.min);
    const to = findNode(last.graph, last.max);
    if (from === undefined || to === undefined) {
      const missing = from === undefined ? first.channel.minVersion : last.channel.maxVersion;
      this.#warnings.add(`${path}: not computed, version ${missing} is not in its channel`);
      return;
    }
    this.#add(to, last.channel, `head of ${target}`);
    if (source === target) return this.#addStep(last, from, to);
    const [begin, end] = [parseChannel(source), parseChannel(target)];
    if (begin === undefined || end === undefined) {
      this.#warnings.add(`${path}: not computed, the channels do not end with -X.Y`);
      return;
    }
    const isSameMinor = compareOpenShiftNames(begin, end) === 0;
    let reached = from;
    if (!isSameMinor) {
      const latest = first.graph.nodes.at(-1) as ReleaseNode;
      this.#addStep(first, from, latest);
      reached = latest;
    }
    if (compareOpenShiftNames(begin, end) > 0) return;
    let place: OpenShiftVersion = begin;
    for (let isTarget = false; !isTarget;) {
      const step = isSameMinor ? end : stepOpenShift(place, end);
      if (step === undefined) {
        this.#warnings.add(`${path}: not computed, the version after ${formatOpenShift(place)} is unknown`);
        return;
      }
      place = step;
      isTarget = compareOpenShiftNames(place, end) === 0;
      const name = isTarget ? target : `${begin.prefix}-${formatOpenShift(place)}`;
      const channel = isTarget ? last.channel : { ...first.channel, name };
      const graph = isTarget ? last.graph : await this.#getGraph('ocp', name);
      if (!graph.byVersion.has(reached.version)) {
        this.#warnings.add(`${path}: ${reached.version} is not in channel ${name}, so it has no update path`);
        return;
      }
      const next = isTarget ? to : (graph.nodes.at(-1) as ReleaseNode);
      this.#addStep({ channel, graph }, graph.byVersion.get(reached.version) as ReleaseNode, next);
      reached = next;
    }
  }

  #addStep(
    { channel, graph }: Pick<ChannelRange, 'channel' | 'graph'>,
    from: ReleaseNode,
    to: ReleaseNode,
  ): void {
    const path = findUpdatePath(graph, from, to);
    if (path === undefined)
      this.#warnings.add(`${graph.label}: no update path from ${from.version} to ${to.version}`);
    else this.#addPath(path, graph, channel, `on the update path between channels`);
  }
}

/** Parses a channel into prefix and version: `stable-4.18`. */
function parseChannel(name: string): ({ prefix: string } & OpenShiftVersion) | undefined {
  const [, prefix, text = ''] = /^(.+)-(\d+\.\d+)$/.exec(name) ?? [];
  const version = readOpenShiftVersion(text);
  return prefix === undefined || version === undefined ? undefined : { prefix, ...version };
}

function findNode({ nodes }: UpdateGraph, version: Version): ReleaseNode | undefined {
  return nodes.find(({ parsed }) => compareVersions(parsed, version) === 0);
}

/** Throws OpmateError NOT_FOUND for a version that is not in the channel. */
function getNode(graph: UpdateGraph, version: Version, text: string | undefined): ReleaseNode {
  const node = findNode(graph, version);
  if (node !== undefined) return node;
  const near = text === undefined ? undefined : findNearest(text, [...graph.byVersion.keys()]);
  throw new OpmateError('NOT_FOUND', `version ${quoteGo(text ?? '')} is not in the channel`, {
    subject: graph.label,
    hint: near === undefined ? `use a version up to ${graph.nodes.at(-1)?.version}` : `use ${quoteGo(near)}`,
  });
}
