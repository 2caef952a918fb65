import { printableLine } from '../core/printable.js';
import type { GraphEdge, GraphRow, PathStep, RowMark, SkipBracket } from './responses.js';

/** Graph of one or several channels. */
export interface DrawnGraph {
  package: string;
  channels: string[];
  rows: Pick<GraphRow, 'name' | 'lane' | 'marks' | 'skips' | 'skipRange' | 'channels'>[];
  lanes: number;
  edges: GraphEdge[];
  brackets: SkipBracket[];
  bracketColumns: number;
  steps?: PathStep[];
}

const row = 26;
const lane = 18;
const column = 10;
const margin = 16;
const characterWidth = 7.3;
/** Maximum characters of a line. */
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
    .deprecated { fill: #bc4c00; }
    .edge.added { stroke: #1a7f37; stroke-width: 2; }
    .edge.removed { stroke: #cf222e; stroke-dasharray: 4 3; }
    circle.removed { fill: #ffffff; stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 2 2; }
    text.removed { fill: #656d76; text-decoration: line-through; }
    .step { fill: none; stroke: #8250df; stroke-width: 2.5; }
    .on-path { font-weight: bold; }`;

/** Labels of marks; marks without a label have a sign. */
const markWords: Partial<Record<RowMark, string>> = {
  head: 'head',
  deprecated: 'deprecated',
  stranded: 'stranded',
  undefined: 'no bundle',
  added: 'new',
  changed: 'changed',
  rewired: 'rewired',
  removed: 'removed',
};

/**
 * Draws graphs below each other as SVG: newest bundle first, lines to replaced bundles, brackets to skipped ones, curves
 * along an upgrade path. Runs in Node.js and in browsers.
 */
export function* drawGraphs(graphs: readonly DrawnGraph[]): Generator<string, void> {
  let width = 320;
  let y = margin;
  const drawn: string[] = [];
  let previous: string | undefined;
  const write = (kind: string, text: string): void => {
    drawn.push(`  <text class="${kind}" x="${margin}" y="${y}">${escapeXml(shorten(text))}</text>\n`);
  };
  for (const graph of graphs) {
    if (graph.package !== previous) {
      y += 24;
      write('package', graph.package);
      previous = graph.package;
    }
    y += 26;
    write('channel', graph.channels.join(' + '));
    const { steps = [] } = graph;
    if (steps.length > 0) {
      y += 20;
      write('more', `upgrade path: ${[steps[0]?.from, ...steps.map(({ to }) => to)].join(' → ')}`);
    }
    y += 8;
    const { text, ...size } = drawGraph(graph, y);
    drawn.push(text);
    width = Math.max(width, size.width);
    y += size.height;
  }
  const size = `width="${Math.ceil(width)}" height="${y + margin}"`;
  yield `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${Math.ceil(width)} ${y + margin}">\n`;
  yield `  <style>${style}\n  </style>\n  <rect width="100%" height="100%" fill="#ffffff"/>\n`;
  yield* drawn;
  yield '</svg>\n';
}

/** Positions in a graph, in pixels. */
interface Positions {
  /** Of the first lane. */
  left: number;
  x: (lane: number) => number;
  y: (row: number) => number;
  /** Of the sign of a row. */
  laneX: (row: number) => number;
}

function drawGraph(graph: DrawnGraph, top: number): { text: string; width: number; height: number } {
  const { rows, bracketColumns } = graph;
  const left = margin + bracketColumns * column + 8;
  const x = (position: number): number => left + (position + 0.5) * lane;
  const y = (position: number): number => top + (position + 0.5) * row;
  const laneX = (position: number): number => x(rows[position]?.lane ?? 0);
  const positions = { left, x, y, laneX };
  const { parts, width } = drawRows(graph, positions);
  const lines = [
    ...drawBrackets(graph, positions),
    ...drawEdges(graph, positions),
    ...drawSteps(graph, positions),
  ];
  return {
    text: [...lines, ...parts].map((part) => `  ${part}\n`).join(''),
    width: width + margin,
    height: rows.length * row,
  };
}

function drawBrackets({ brackets }: DrawnGraph, { left, y, laneX }: Positions): string[] {
  return brackets.map(({ from, to, column: position }) => {
    const line = left - 4 - (position + 0.5) * column;
    const ends = [from, ...to].sort((a, b) => a - b);
    const ticks = ends.map((end) => `M${line} ${y(end)}H${laneX(end) - 8}`).join('');
    const last = ends.at(-1) ?? from;
    return `<path class="bracket" d="M${line} ${y(ends[0] ?? from)}V${y(last)}${ticks}"/>`;
  });
}

function drawEdges({ edges }: DrawnGraph, { x, y, laneX }: Positions): string[] {
  return edges.map(({ from, to, lane: position, change }) => {
    const [start, end] = [laneX(from), laneX(to)];
    const middle = x(position);
    const path =
      to <= from || to === from + 1
        ? `M${start} ${y(from)}L${end} ${y(to)}`
        : `M${start} ${y(from)}L${middle} ${y(from + 1)}V${y(to - 1)}L${end} ${y(to)}`;
    return `<path class="edge${change === undefined ? '' : ` ${change}`}" d="${path}"/>`;
  });
}

/** Draws a curve for each step of the upgrade path whose bundles are in the graph. */
function drawSteps({ rows, steps = [] }: DrawnGraph, { y, laneX }: Positions): string[] {
  const places = new Map(rows.map(({ name }, index) => [name, index]));
  return steps.flatMap(({ from, to }) => {
    const [start, end] = [places.get(from), places.get(to)];
    if (start === undefined || end === undefined) return [];
    const bend = Math.max(2, Math.min(laneX(start), laneX(end)) - Math.min(40, 6 + (start - end) * 4));
    const curve = `C${bend} ${y(start)} ${bend} ${y(end)} ${laneX(end)} ${y(end)}`;
    return [`<path class="step" d="M${laneX(start)} ${y(start)}${curve}"/>`];
  });
}

/** Draws the sign and the text of each bundle; `width` is that of the longest row. */
function drawRows(
  { rows, lanes, channels, steps = [] }: DrawnGraph,
  { left, y, laneX }: Positions,
): { parts: string[]; width: number } {
  const onPath = new Set(steps.flatMap(({ from, to }) => [from, to]));
  const textX = left + lanes * lane + 8;
  const parts: string[] = [];
  let width = 0;
  for (const [index, graphRow] of rows.entries()) {
    const { name, marks } = graphRow;
    const sign =
      (['removed', 'deprecated', 'skipped'] as const).find((mark) => marks.includes(mark)) ?? 'bundle';
    parts.push(`<circle class="${sign}" cx="${laneX(index)}" cy="${y(index)}" r="5"/>`);
    const note = describeRow(graphRow, channels);
    const shown = shorten(name);
    const more = note === '' ? '' : `  <tspan class="more">${escapeXml(note)}</tspan>`;
    const kind = marks.includes('removed') ? 'removed' : onPath.has(name) ? 'on-path' : '';
    const attributes = `${kind === '' ? '' : `class="${kind}" `}x="${textX}" y="${y(index) + 4}"`;
    parts.push(`<text ${attributes} xml:space="preserve">${escapeXml(shown)}${more}</text>`);
    width = Math.max(width, textX + (shown.length + note.length + 3) * characterWidth);
  }
  return { parts, width };
}

/** Returns what a row says beside the name of its bundle: marks, skips, skip range and channels. */
function describeRow(
  { marks, skips, skipRange, channels: inChannels = [] }: DrawnGraph['rows'][number],
  channels: readonly string[],
): string {
  const notes = marks.flatMap((mark) => markWords[mark] ?? []);
  if (skips > 0) notes.push(`skips ${skips}`);
  if (skipRange !== '') notes.push(`skipRange ${skipRange}`);
  if (inChannels.length > 0) notes.push(`in ${inChannels.map((channel) => channels[channel]).join(' and ')}`);
  return shorten(notes.join(', '));
}

function shorten(text: string): string {
  return text.length > maxLine ? `${text.slice(0, maxLine - 1)}…` : text;
}

const entities: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };

function escapeXml(text: string): string {
  return printableLine(text).replace(/[<>&"]/g, (character) => entities[character] as string);
}
