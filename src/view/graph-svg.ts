import { parseVersion, tryParse } from '../core/semver.js';
import { formatBundleVersion } from '../graph/bundle-version.js';
import { selectDrawn } from '../graph/mermaid.js';
import { type ChannelEntry, schemas } from '../model/declarative-config.js';
import type { CatalogFacts } from '../model/facts.js';
import type { RowMark } from './responses.js';
import { layOutChannel } from './channel-rows.js';
import { type DrawnGraph, drawGraphs } from './graph-drawing.js';

/** Channel to draw. */
export interface DrawnChannel {
  package: string;
  name: string;
  entries: ChannelEntry[];
  /** Returns the version of a bundle; empty if the catalog lacks it. */
  getVersion(bundle: string): string;
  getDeprecation(bundle: string): string | undefined;
}

/** Returns the channels of a selection, by package and name. Throws like `drawGraph`. */
export function readDrawnChannels(
  facts: CatalogFacts,
  selection: Parameters<typeof selectDrawn>[1],
): DrawnChannel[] {
  const versions = new Map<string, string>();
  for (const bundle of facts.bundles) {
    versions.set(`${bundle.package}/${bundle.name}`, formatBundleVersion(bundle.packageProperties[0]));
  }
  const deprecations = new Map<string, string>();
  for (const { package: packageName, entries } of facts.deprecations) {
    for (const { reference, message } of entries) {
      if (reference.schema === schemas.bundle) deprecations.set(`${packageName}/${reference.name}`, message);
    }
  }
  return selectDrawn(facts, selection).map(({ package: packageName, name, entries }) => ({
    package: packageName,
    name,
    entries,
    getVersion: (bundle) => versions.get(`${packageName}/${bundle}`) ?? '',
    getDeprecation: (bundle) => deprecations.get(`${packageName}/${bundle}`),
  }));
}

/** Draws channels below each other as SVG. Memory grows with entries, not with edges of skip ranges. */
export async function* drawSvg(channels: readonly DrawnChannel[]): AsyncGenerator<string, void> {
  const graphs: DrawnGraph[] = [];
  for (const channel of channels) graphs.push(await toDrawnGraph(channel));
  yield* drawGraphs(graphs);
}

async function toDrawnGraph(channel: DrawnChannel): Promise<DrawnGraph> {
  const { entries, getVersion: getVersion, getDeprecation: getDeprecation } = channel;
  const laid = await layOutChannel(entries, (bundle) => tryParse(parseVersion, getVersion(bundle)));
  const { graph, lanes, edges, brackets, bracketColumns } = laid;
  const heads = new Set(graph.heads);
  const rows = laid.rows.map(({ entry: { name, skips, skipRange }, lane }) => {
    const marks: RowMark[] = [
      ...(heads.has(name) ? (['head'] as const) : []),
      ...(graph.skipped.has(name) ? (['skipped'] as const) : []),
      ...(getDeprecation(name) === undefined ? [] : (['deprecated'] as const)),
    ];
    return { name, lane, marks, skips: skips.length, skipRange };
  });
  return { package: channel.package, channels: [channel.name], rows, lanes, edges, brackets, bracketColumns };
}
