import { deprecationKey } from '../model/deprecations.js';
import { takeTurn } from '../core/concurrency.js';
import type { Severity } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { firstBy, groupBy, pushTo } from '../core/groups.js';
import { type Version, parseVersion, tryParse } from '../core/semver.js';
import { notFound } from '../core/suggest.js';
import { formatBundleVersion, parseBundleVersion } from '../graph/bundle-version.js';
import { type ChannelGraph, describeGraphFault, readGraph } from '../graph/channel-graph.js';
import type { PackageBundle } from '../graph/resolve-content.js';
import { UpgradeGraph, findReadableVersion } from '../graph/upgrade-graph.js';
import { longestPath, shortestPath } from '../graph/upgrade-paths.js';
import { type ChannelEntry, schemas } from '../model/declarative-config.js';
import type {
  BundlePlace,
  ChannelLayout,
  GraphEdge,
  GraphRow,
  UpgradePath,
  PathStep,
  ProblemCounts,
  RowMark,
} from './responses.js';
import { findBundlePlaces } from './bundle-places.js';
import { layOutChannel } from './channel-rows.js';

/** Maximum channels of a graph. */
const maxChannels = 20;

/** Facts of the graphs and upgrades of a package; plain JSON, part of exported pages. */
export interface PackageGraphFacts {
  package: string;
  defaultChannel: string;
  channels: ChannelEntries[];
  bundles: { name: string; version: string; release: string; change?: 'added' | 'changed' }[];
  /** Messages by `deprecationKey`. */
  deprecations: [key: string, message: string][];
  problems: { severity: Severity; channel?: string | undefined; bundle?: string | undefined }[];
  /** Channels of the package in the other catalog. */
  before: ChannelEntries[];
}

interface ChannelEntries {
  name: string;
  entries: readonly ChannelEntry[];
}

/** Counts errors and warnings; notices are not counted. */
export function countBySeverity(problems: readonly { severity: Severity }[]): ProblemCounts {
  const count = (wanted: Severity): number => problems.filter(({ severity }) => severity === wanted).length;
  return { errors: count('error'), warnings: count('warning') };
}

/** The graphs and upgrades of a package. Runs in the server and in browsers. */
export class PackageGraph {
  readonly #facts: PackageGraphFacts;
  readonly #byName: Map<string, ChannelEntries>;
  readonly #bundles: Map<string, PackageGraphFacts['bundles'][number]>;
  readonly #deprecations: ReadonlyMap<string, string>;
  readonly #scope: string;

  constructor(facts: PackageGraphFacts) {
    this.#facts = facts;
    this.#byName = new Map(facts.channels.map((channel) => [channel.name, channel]));
    this.#bundles = new Map(facts.bundles.map((bundle) => [bundle.name, bundle]));
    this.#deprecations = new Map(facts.deprecations);
    this.#scope = `package ${quoteGo(facts.package)}`;
  }

  #requireChannels(names: readonly string[]): ChannelEntries[] {
    return [...new Set(names)].slice(0, maxChannels).map((name) => {
      const channel = this.#byName.get(name);
      if (channel !== undefined) return channel;
      throw notFound('channel', name, this.#byName.keys(), { scope: this.#scope });
    });
  }

  async #describeRows(
    laid: Awaited<ReturnType<typeof layOutChannel>>['rows'],
    channels: readonly ChannelEntries[],
    graphs: readonly ChannelGraph[],
    edgesBefore: ReadonlyMap<string, ChannelEntry>,
  ): Promise<GraphRow[]> {
    const names = new Set(channels.map(({ name }) => name));
    const problems = groupBy(
      this.#facts.problems.filter(({ channel }) => channel === undefined || names.has(channel)),
      ({ bundle }) => bundle ?? '',
    );
    const stranded = graphs.map((graph) => new Set(graph.stranded));
    const rows: GraphRow[] = [];
    for (const { entry, lane, older, newer, skippedBy } of laid) {
      const { name, replaces, skips, skipRange } = entry;
      const inChannels = graphs.flatMap((graph, place) => (graph.entries.has(name) ? [place] : []));
      const bundle = this.#bundles.get(name);
      const deprecation = this.#deprecations.get(deprecationKey(schemas.bundle, name));
      const isInAny = (has: (graph: ChannelGraph) => boolean): boolean =>
        inChannels.some((place) => has(graphs[place] as ChannelGraph));
      const old = edgesBefore.get(name);
      const isRewired = inChannels.length > 0 && old !== undefined && !hasSameEdges(entry, old);
      const marks: RowMark[] = [];
      if (isInAny(({ heads }) => heads.includes(name))) marks.push('head');
      if (isInAny(({ skipped }) => skipped.has(name))) marks.push('skipped');
      if (inChannels.some((place) => stranded[place]?.has(name))) marks.push('stranded');
      if (deprecation !== undefined) marks.push('deprecated');
      if (bundle === undefined && inChannels.length > 0) marks.push('undefined');
      if (bundle?.change !== undefined) marks.push(bundle.change);
      if (isRewired) marks.push('rewired');
      if (inChannels.length === 0) marks.push('removed');
      rows.push({
        name,
        version: formatBundleVersion(bundle),
        lane,
        marks,
        replaces,
        skips: skips.length,
        skipRange,
        ...(channels.length > 1 && { channels: inChannels }),
        ...(isRewired && {
          before: { replaces: old.replaces, skips: old.skips.length, skipRange: old.skipRange },
        }),
        ...(older !== undefined && { older }),
        ...(newer !== undefined && { newer }),
        ...(skippedBy !== undefined && { skippedBy }),
        ...(deprecation !== undefined && { deprecation }),
        ...countBySeverity(problems.get(name) ?? []),
      });
      await takeTurn();
    }
    return rows;
  }

  /**
   * Lays out one or several channels as one graph; with `isCompared`, including bundles and edges of the other catalog.
   * Throws OpmateError NOT_FOUND.
   */
  async channel(names: readonly string[], isCompared = false): Promise<ChannelLayout> {
    const channels = this.#requireChannels(names);
    const [first] = channels as [ChannelEntries];
    const graphs = channels.map((channel) => readGraph(channel.entries));
    const entriesBefore = channels.flatMap(({ name }) =>
      isCompared ? (this.#facts.before.find((channel) => channel.name === name)?.entries ?? []) : [],
    );
    const joined = joinEntries(
      graphs.flatMap((graph) => [...graph.entries.values()]),
      entriesBefore,
    );
    const laid = await layOutChannel(
      joined.entries,
      (bundle) => tryParse(parseVersion, this.#bundles.get(bundle)?.version ?? ''),
      {
        moreReplaces: joined.moreReplaces,
        chain: graphs[0]?.chain ?? [],
      },
    );
    const faults = graphs.flatMap((graph) => describeGraphFault(graph) ?? []);
    const deprecation = this.#deprecations.get(deprecationKey(schemas.channel, first.name));
    const rows = await this.#describeRows(laid.rows, channels, graphs, joined.edgesBefore);
    const edges = laid.edges.map((edge): GraphEdge => {
      if (!isCompared) return edge;
      const change = compareEdge(rows[edge.from], rows[edge.to]?.name ?? '', joined.edgesBefore);
      return change === undefined ? edge : { ...edge, change };
    });
    const { lanes, brackets, bracketColumns, hiddenBrackets } = laid;
    return {
      package: this.#facts.package,
      channel: first.name,
      channels: channels.map(({ name }) => name),
      isDefault: this.#facts.defaultChannel === first.name,
      ...(deprecation !== undefined && { deprecation }),
      ...(faults[0] !== undefined && { fault: faults[0] }),
      rows,
      lanes,
      edges,
      brackets,
      bracketColumns,
      hiddenBrackets,
    };
  }

  /** Returns the entries of a bundle in the channels of the package, with its upgrades in each. */
  places(bundle: string): BundlePlace[] {
    const versions = new Map(
      this.#facts.bundles.flatMap(({ name, version }): [string, Version][] => {
        const parsed = tryParse(parseVersion, version);
        return parsed === undefined ? [] : [[name, parsed]];
      }),
    );
    return findBundlePlaces(
      { channels: this.#facts.channels, defaultChannel: this.#facts.defaultChannel, versions },
      bundle,
    );
  }

  /**
   * Finds the upgrades from an installed bundle to another one in some channels; both are names or versions, and the
   * installed version may be missing in the catalog. Throws OpmateError NOT_FOUND, USAGE for an invalid version.
   */
  path(names: readonly string[], fromText: string, toText: string): UpgradePath {
    const channels = this.#requireChannels(names);
    const resolved = new Map(
      this.#facts.bundles.map(({ name, version, release }): [string, PackageBundle] => {
        const parsed = tryParse((text) => parseBundleVersion(text, release || undefined), version);
        return [name, { name, image: '', version: parsed ?? '', dependencies: [] }];
      }),
    );
    const find = (text: string): PackageBundle | undefined =>
      resolved.get(text) ??
      [...resolved.values()].find(({ version }) => typeof version !== 'string' && version.text === text);
    const installed = find(fromText);
    const version =
      installed === undefined ? tryParse(parseBundleVersion, fromText) : findReadableVersion(installed);
    if (installed === undefined && version === undefined) {
      throw new OpmateError('USAGE', `from: expected a bundle or version, got ${quoteGo(fromText)}`);
    }
    const to = find(toText);
    if (to === undefined) throw notFound('bundle', toText, resolved.keys(), { scope: this.#scope });
    const from = { name: installed?.name ?? '', version };
    const graph = new UpgradeGraph(channels);
    const edges = shortestPath(graph, resolved, from, ({ name }) => name === to.name);
    const longest = edges === undefined ? undefined : longestPath(graph, resolved, from, to.name)?.length;
    const steps = edges?.map(({ to: name, channel, kind, range }, place): PathStep => ({
      from: edges[place - 1]?.to ?? installed?.name ?? fromText,
      to: name,
      version: findReadableVersion(resolved.get(name))?.text ?? '',
      channel,
      kind,
      ...(range !== undefined && { range }),
    }));
    return {
      from: installed?.name ?? fromText,
      to: to.name,
      ...(steps !== undefined && { steps }),
      ...(longest !== undefined && { longest }),
    };
  }
}

/**
 * Joins the entries of several channels by name, followed by those of the other catalog only. `moreReplaces` has bundles
 * that an entry replaces elsewhere, `edgesBefore` the entries of the other catalog.
 */
function joinEntries(
  now: readonly ChannelEntry[],
  before: readonly ChannelEntry[],
): {
  entries: ChannelEntry[];
  moreReplaces: Map<string, string[]>;
  edgesBefore: Map<string, ChannelEntry>;
} {
  const entries = new Map<string, ChannelEntry>();
  const moreReplaces = new Map<string, string[]>();
  for (const entry of now) {
    const known = entries.get(entry.name);
    if (known === undefined) {
      entries.set(entry.name, entry);
      continue;
    }
    if (entry.replaces !== '' && entry.replaces !== known.replaces)
      pushTo(moreReplaces, entry.name, entry.replaces);
    entries.set(entry.name, {
      ...known,
      replaces: known.replaces || entry.replaces,
      skips: [...new Set([...known.skips, ...entry.skips])],
      skipRange: known.skipRange || entry.skipRange,
    });
  }
  const edgesBefore = firstBy(before, ({ name }) => name);
  for (const entry of before) {
    const known = entries.get(entry.name);
    if (known === undefined) entries.set(entry.name, { ...entry, skips: [] });
    else if (entry.replaces !== '' && entry.replaces !== known.replaces) {
      pushTo(moreReplaces, entry.name, entry.replaces);
    }
  }
  return { entries: [...entries.values()], moreReplaces, edgesBefore };
}

function hasSameEdges(a: ChannelEntry, b: ChannelEntry): boolean {
  const skips = (entry: ChannelEntry): string => [...new Set(entry.skips)].sort().join('\0');
  return a.replaces === b.replaces && a.skipRange === b.skipRange && skips(a) === skips(b);
}

/** Returns the change of an edge compared with the other catalog. */
function compareEdge(
  row: GraphRow | undefined,
  older: string,
  edgesBefore: ReadonlyMap<string, ChannelEntry>,
): GraphEdge['change'] {
  if (row === undefined) return undefined;
  const wasEdge = edgesBefore.get(row.name)?.replaces === older;
  const isEdge = !row.marks.includes('removed') && row.replaces === older;
  if (wasEdge === isEdge) return undefined;
  return isEdge ? 'added' : 'removed';
}
