import type {
  BundlePlace,
  ChannelLayout,
  GraphEdge,
  GraphRow,
  UpgradePath,
  SkipBracket,
} from '../../responses.js';
import { GroupSign, NodeSign } from './marks.js';
import type { ShownLayout } from './minor-groups.js';

/** Height of a row at normal size, in pixels. */
export const rowHeight = 30;
const laneWidth = 18;
const bracketWidth = 10;
/** Maximum width of all lanes. */
const maxLanesWidth = 240;
/** Minimum height of a row with all brackets; lower rows have those of the selected bundle only. */
const minBrackets = 8;

/** Positions in pixels. */
interface Geometry {
  row: number;
  x(lane: number): number;
  y(row: number): number;
  bracketX(column: number): number;
  width: number;
}

/** Returns the positions at a zoom factor. */
export function getGeometry(
  { lanes, bracketColumns, hiddenBrackets }: ChannelLayout,
  zoom: number,
): Geometry {
  const row = Math.max(rowHeight * zoom, 3);
  const scale = Math.min(Math.max(zoom, 0.6), 1.2);
  const lane = Math.min(laneWidth * scale, maxLanesWidth / lanes);
  // One more column for a hidden bracket, which is drawn while its bundle is selected.
  const brackets = (bracketColumns + (hiddenBrackets > 0 ? 1 : 0)) * bracketWidth * scale;
  const left = 8 + brackets + 8;
  return {
    row,
    x: (position) => left + (position + 0.5) * lane,
    y: (position) => (position + 0.5) * row,
    bracketX: (column) => 8 + brackets - (column + 0.5) * bracketWidth * scale,
    width: left + lanes * lane + 10,
  };
}

/** Lines from the rows to their versions in several columns, to be drawn below the versions of earlier columns. */
export function Leaders(props: {
  channel: ChannelLayout;
  geometry: Geometry;
  first: number;
  last: number;
  columns: number;
  columnWidth: number;
}) {
  const { channel, geometry, first, last, columns, columnWidth } = props;
  const { rows } = channel;
  const { x, y, row, width } = geometry;
  return (
    <svg class="leaders" width={width + columns * columnWidth} height={rows.length * row} aria-hidden="true">
      {rows.slice(first, last).map(({ lane }, index) => {
        const position = first + index;
        const end = width + (position % columns) * columnWidth - 3;
        const start = x(lane) + nodeSize(row) + 2;
        return <path key={position} class="leader" d={`M${start} ${y(position)}H${end}`} />;
      })}
    </svg>
  );
}

/** Returns the radius of the sign of a row. */
function nodeSize(row: number): number {
  return Math.min(Math.max(row / 6, 1.5), 5.5);
}

interface DrawingProps {
  channel: ShownLayout;
  geometry: Geometry;
  first: number;
  last: number;
  selected: number;
  place: BundlePlace | undefined;
  path: UpgradePath | undefined;
}

/** Lines and signs beside the rows from `first` to before `last`. */
export function Drawing(props: DrawingProps) {
  const { channel, geometry, path } = props;
  const { row, width } = geometry;
  return (
    <svg class="drawing" width={width} height={channel.rows.length * row} aria-hidden="true">
      <Brackets {...props} />
      <Edges {...props} />
      <PathDrawing path={path} channel={channel} geometry={geometry} />
      <Nodes {...props} />
    </svg>
  );
}

/** Reports whether a line between two rows crosses the drawn ones. */
function isSeen({ first, last }: DrawingProps, from: number, to: number): boolean {
  return Math.min(from, to) < last && Math.max(from, to) >= first;
}

/** Lines beside the rows, from bundles to those that they skip; those of the selected bundle above the others. */
function Brackets(props: DrawingProps) {
  const { channel, geometry, first, last, selected, place } = props;
  const { row } = geometry;
  const isHot = ({ from, to }: SkipBracket): boolean => from === selected || to.includes(selected);
  const seen = withSelected(channel, selected, place).filter(
    (bracket) =>
      isSeen(
        props,
        Math.min(bracket.from, bracket.to[0] ?? 0),
        Math.max(bracket.from, bracket.to.at(-1) ?? 0),
      ) &&
      (row >= minBrackets || isHot(bracket)),
  );
  return (
    <>
      {seen
        .sort((a, b) => Number(isHot(a)) - Number(isHot(b)))
        .map((bracket) => (
          <path
            key={`b${bracket.from}`}
            class={`bracket${isHot(bracket) ? ' hot' : ''}`}
            d={toBracketPath(bracket, channel.rows, geometry, { size: nodeSize(row), first, last })}
          />
        ))}
    </>
  );
}

/** Lines from bundles to those that they replace; those of the selected bundle above the others. */
function Edges(props: DrawingProps) {
  const { channel, geometry, selected } = props;
  const isHot = ({ from, to }: GraphEdge): boolean => from === selected || to === selected;
  const seen = channel.edges.filter(({ from, to }) => isSeen(props, from, to));
  return (
    <>
      {seen
        .sort((a, b) => Number(isHot(a)) - Number(isHot(b)))
        .map((edge) => (
          <path
            key={`e${edge.from}-${edge.to}`}
            class={`edge ${edge.change ?? ''}${isHot(edge) ? ' hot' : ''}${edge.to <= edge.from ? ' circular' : ''}`}
            d={toEdgePath(edge, channel.rows, geometry)}
          />
        ))}
    </>
  );
}

/** Signs of bundles and groups. */
function Nodes({ channel, geometry, first, last, selected }: DrawingProps) {
  const { row } = geometry;
  const size = nodeSize(row);
  return (
    <>
      {channel.rows.slice(first, last).map((graph, index) => {
        const [x, y] = [geometry.x(graph.lane), geometry.y(first + index)];
        if (graph.group?.isExpanded === true) return null;
        const isDangling = graph.replaces !== '' && graph.older === undefined;
        return (
          <g key={graph.name}>
            {isDangling && <path class="dangling" d={`M${x} ${y}V${y + row * 0.62}`} />}
            {graph.group === undefined ? (
              <NodeSign marks={graph.marks} x={x} y={y} size={size} />
            ) : (
              <GroupSign x={x} y={y} size={size} />
            )}
            {first + index === selected && <circle class="chosen" cx={x} cy={y} r={size + 6} />}
          </g>
        );
      })}
    </>
  );
}

/** Curves along the steps of an upgrade path. */
function PathDrawing(props: { path: UpgradePath | undefined; channel: ShownLayout; geometry: Geometry }) {
  const {
    path,
    channel: { rows, places },
    geometry: { x, y, row },
  } = props;
  const steps = path?.steps ?? [];
  return (
    <>
      {steps.map(({ from, to }) => {
        const [start, end] = [places.get(from), places.get(to)];
        if (start === undefined || end === undefined || start === end) return null;
        const [x1, x2] = [x(rows[start]?.lane ?? 0), x(rows[end]?.lane ?? 0)];
        const out = Math.max(2, Math.min(x1, x2) - Math.min(40, 6 + Math.abs(start - end) * row * 0.15));
        return (
          <path
            key={from}
            class="step"
            d={`M${x1} ${y(start)}C${out} ${y(start)} ${out} ${y(end)} ${x2} ${y(end)}`}
          />
        );
      })}
    </>
  );
}

/** Returns the brackets, including a hidden one of the selected bundle. */
function withSelected(
  { places, brackets, bracketColumns }: ShownLayout,
  selected: number,
  place: BundlePlace | undefined,
): SkipBracket[] {
  if (selected < 0 || place === undefined || brackets.some(({ from }) => from === selected))
    return [...brackets];
  const skipped = new Set(place.skips.flatMap((name) => places.get(name) ?? []));
  skipped.delete(selected);
  const to = [...skipped].sort((a, b) => a - b);
  return to.length === 0 ? [...brackets] : [...brackets, { from: selected, to, column: bracketColumns }];
}

/** Returns the path of an edge through its lane. */
function toEdgePath({ from, to, lane }: GraphEdge, rows: readonly GraphRow[], geometry: Geometry): string {
  const { row, x, y } = geometry;
  const [x1, y1] = [x(rows[from]?.lane ?? 0), y(from)];
  const [x2, y2] = [x(rows[to]?.lane ?? 0), y(to)];
  const middle = x(lane);
  if (to <= from) return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  const half = row / 2;
  let path = `M${x1} ${y1}`;
  if (middle !== x1) path += `C${x1} ${y1 + half} ${middle} ${y1 + half} ${middle} ${y1 + row}`;
  if (middle === x2) return `${path}V${y2}`;
  return `${path}V${y2 - row}C${middle} ${y2 - half} ${x2} ${y2 - half} ${x2} ${y2}`;
}

/** Returns the path of a bracket: a line beside the rows, with an arrow to each skipped bundle. */
function toBracketPath(
  { from, to, column }: SkipBracket,
  rows: readonly GraphRow[],
  { x, y, bracketX }: Geometry,
  { size, first, last }: { size: number; first: number; last: number },
): string {
  const line = bracketX(column);
  const ends = [from, ...to];
  const [top, bottom] = [Math.min(...ends), Math.max(...ends)];
  let path = `M${line} ${y(top)}V${y(bottom)}`;
  const nodeX = (position: number): number => x(rows[position]?.lane ?? 0) - size - 2;
  if (from >= first && from < last) path += `M${line} ${y(from)}H${nodeX(from)}`;
  const tip = Math.min(size * 0.7, 3.5);
  for (const position of to) {
    if (position < first || position >= last) continue;
    path += `M${line} ${y(position)}H${nodeX(position)}m${-tip} ${-tip}l${tip} ${tip}l${-tip} ${tip}`;
  }
  return path;
}
