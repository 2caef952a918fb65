import { printableLine } from '../core/printable.js';
import { parseVersion, tryParse } from '../core/semver.js';
import { formatBundleVersion } from '../graph/bundle-version.js';
import { selectDrawn } from '../graph/mermaid.js';
import { type ChannelEntry, schemas } from '../model/declarative-config.js';
import type { CatalogFacts } from '../model/facts.js';
import { layOutChannel } from './channel-rows.js';

/** A channel as it is drawn. */
export interface DrawnChannel {
  package: string;
  name: string;
  entries: ChannelEntry[];
  /** The version of a bundle; empty if it is not in the catalog. */
  versionOf(bundle: string): string;
  deprecationOf(bundle: string): string | undefined;
}

const row = 26;
const lane = 18;
const column = 10;
const margin = 16;
const characterWidth = 7.3;
/** Characters of a line; longer ones are cut. */
const maxLine = 300;

const style = `
    text { font: 12px ui-monospace, monospace; fill: #1f2328; }
    .package { font: bold 16px system-ui, sans-serif; }
    .channel { font: bold 13px system-ui, sans-serif; }
    .more { fill: #656d76; }
    .edge { fill: none; stroke: #57606a; stroke-width: 1.5; }
    .bracket { fill: none; stroke: #afb8c1; }
    circle { fill: #0969da; }
    .skipped { fill: #ffffff; stroke: #0969da; stroke-width: 1.5; }
    .deprecated { fill: #bc4c00; }`;

/** Returns the channels of a selection, by package and name. Throws what `drawGraph` throws. */
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
    versionOf: (bundle) => versions.get(`${packageName}/${bundle}`) ?? '',
    deprecationOf: (bundle) => deprecations.get(`${packageName}/${bundle}`),
  }));
}

/**
 * Draws channels below each other as SVG: newest bundle on top, a line to the bundle that it replaces, brackets to those
 * that it skips. Grows with the entries of a channel, not with the links that ranges make.
 */
export async function* drawSvg(channels: readonly DrawnChannel[]): AsyncGenerator<string, void> {
  let width = 320;
  let y = margin;
  const drawn: string[] = [];
  let previous: string | undefined;
  for (const channel of channels) {
    if (channel.package !== previous) {
      y += 24;
      drawn.push(`  <text class="package" x="${margin}" y="${y}">${escapeXml(channel.package)}</text>\n`);
      previous = channel.package;
    }
    y += 26;
    drawn.push(`  <text class="channel" x="${margin}" y="${y}">${escapeXml(channel.name)}</text>\n`);
    y += 8;
    const one = await drawChannel(channel, y);
    drawn.push(one.text);
    width = Math.max(width, one.width);
    y += one.height;
  }
  const size = `width="${Math.ceil(width)}" height="${y + margin}"`;
  yield `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${Math.ceil(width)} ${y + margin}">\n`;
  yield `  <style>${style}\n  </style>\n  <rect width="100%" height="100%" fill="#ffffff"/>\n`;
  yield* drawn;
  yield '</svg>\n';
}

async function drawChannel(
  channel: DrawnChannel,
  top: number,
): Promise<{ text: string; width: number; height: number }> {
  const { rows, lanes, edges, brackets, bracketColumns, graph } = await layOutChannel(
    channel.entries,
    (bundle) => tryParse(parseVersion, channel.versionOf(bundle)),
  );
  const left = margin + bracketColumns * column + 8;
  const x = (at: number): number => left + (at + 0.5) * lane;
  const y = (at: number): number => top + (at + 0.5) * row;
  const laneOf = (at: number): number => rows[at]?.lane ?? 0;
  const parts: string[] = [];
  for (const { from, to, column: at } of brackets) {
    const line = left - 4 - (at + 0.5) * column;
    const ends = [from, ...to].sort((a, b) => a - b);
    const ticks = ends.map((end) => `M${line} ${y(end)}H${x(laneOf(end)) - 8}`).join('');
    const last = ends.at(-1) ?? from;
    parts.push(`<path class="bracket" d="M${line} ${y(ends[0] ?? from)}V${y(last)}${ticks}"/>`);
  }
  for (const { from, to, lane: at } of edges) {
    const [start, end] = [x(laneOf(from)), x(laneOf(to))];
    const middle = x(at);
    const path =
      to <= from || to === from + 1
        ? `M${start} ${y(from)}L${end} ${y(to)}`
        : `M${start} ${y(from)}L${middle} ${y(from + 1)}V${y(to - 1)}L${end} ${y(to)}`;
    parts.push(`<path class="edge" d="${path}"/>`);
  }
  const textX = left + lanes * lane + 8;
  let width = 0;
  for (const [at, { entry }] of rows.entries()) {
    const isDeprecated = channel.deprecationOf(entry.name) !== undefined;
    const mark = isDeprecated ? 'deprecated' : graph.skipped.has(entry.name) ? 'skipped' : 'bundle';
    parts.push(`<circle class="${mark}" cx="${x(laneOf(at))}" cy="${y(at)}" r="5"/>`);
    const more = [
      ...(graph.heads.includes(entry.name) ? ['head'] : []),
      ...(isDeprecated ? ['deprecated'] : []),
      ...(entry.skips.length > 0 ? [`skips ${entry.skips.length}`] : []),
      ...(entry.skipRange === '' ? [] : [`skipRange ${entry.skipRange}`]),
    ].join(', ');
    const name = shorten(entry.name);
    const note = shorten(more);
    const shownNote = note === '' ? '' : `  <tspan class="more">${escapeXml(note)}</tspan>`;
    parts.push(
      `<text x="${textX}" y="${y(at) + 4}" xml:space="preserve">${escapeXml(name)}${shownNote}</text>`,
    );
    width = Math.max(width, textX + (name.length + note.length + 3) * characterWidth);
  }
  return {
    text: parts.map((part) => `  ${part}\n`).join(''),
    width: width + margin,
    height: rows.length * row,
  };
}

function shorten(text: string): string {
  return text.length > maxLine ? `${text.slice(0, maxLine - 1)}…` : text;
}

const entities: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };

function escapeXml(text: string): string {
  return printableLine(text).replace(/[<>&"]/g, (character) => entities[character] as string);
}
