import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type {
  BundlePlace,
  ChannelLayout,
  GraphEdge,
  GraphRow,
  UpgradePath,
  SkipBracket,
} from '../../answers.js';
import { NodeSign, RowMarks } from './marks.js';
import { Badge, count } from '../parts.js';
import { type Route, getAddress } from '../route.js';

const rowHeight = 30;
const laneWidth = 18;
const bracketWidth = 10;
/** All lanes together get no wider than this: many come closer together. */
const maxLanesWidth = 240;
const zooms = [0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1, 1.2, 1.45, 1.75] as const;
/** Below this height of a row only versions are shown. */
const minReadable = 14;
/** Below this one, only the brackets of the chosen bundle are drawn. */
const minBrackets = 8;
/** Columns of versions where rows are lower than their words; with more of them none is shown. */
const maxColumns = 8;
/** Pixels of such a column, and of a character in it. */
const minColumnWidth = 58;
const maxColumnWidth = 170;
const labelCharacter = 6.6;
/** Pixels that the mouse moves before it drags. */
const dragDistance = 4;
/** Rows that are drawn beyond what is seen. */
const overscan = 20;

/** Where things stand in pixels. */
interface Geometry {
  row: number;
  x(lane: number): number;
  y(row: number): number;
  bracketX(column: number): number;
  width: number;
}

/**
 * The upgrade graph of a channel, newest on top: a list of links with the graph drawn beside it, so that it is also
 * read and walked through without seeing it. Only what is in sight is in the document.
 */
export function ChannelGraph({
  channel,
  route,
  selected,
  place,
  path,
}: {
  channel: ChannelLayout;
  route: Extract<Route, { view: 'package' }>;
  selected: string;
  place: BundlePlace | undefined;
  path: UpgradePath | undefined;
}) {
  const { rows } = channel;
  const scroller = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const [view, setView] = useState({ top: 0, height: 900, width: 600 });
  const position = rows.findIndex(({ name }) => name === selected);
  const [focused, setFocused] = useState(Math.max(position, 0));
  const wantsFocus = useRef(false);
  const geometry = getGeometry(channel, zoom);
  const { row, width } = geometry;

  const look = (): void => {
    const box = scroller.current;
    if (box !== null) setView({ top: box.scrollTop, height: box.clientHeight, width: box.clientWidth });
  };
  const show = (index: number): void => {
    const box = scroller.current;
    if (box === null) return;
    const [top, bottom] = [index * row, (index + 1) * row];
    if (top < box.scrollTop + row) box.scrollTop = Math.max(0, top - row);
    else if (bottom > box.scrollTop + box.clientHeight - row) box.scrollTop = bottom - box.clientHeight + row;
    look();
  };
  useLayoutEffect(() => {
    look();
    addEventListener('resize', look);
    return () => removeEventListener('resize', look);
  }, []);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (position < 0 || box === null) return;
    setFocused(position);
    const isInSight =
      position * row >= box.scrollTop && (position + 1) * row <= box.scrollTop + box.clientHeight;
    if (!isInSight) box.scrollTop = (position + 0.5) * row - box.clientHeight / 2;
    look();
  }, [position]);
  // Before the next key: it is meant for the row that has been moved to.
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-at="${focused}"]`)?.focus({ preventScroll: true });
  });

  const moveTo = (index: number | undefined): void => {
    if (index === undefined || index < 0 || index >= rows.length) return;
    wantsFocus.current = true;
    setFocused(index);
    show(index);
  };
  /** `anchor` is the height in the box of what stays in its place: the middle, where it is left out. */
  const zoomTo = (next: number, anchor?: number): void => {
    const box = scroller.current;
    const fixed = anchor ?? (box?.clientHeight ?? 0) / 2;
    const middle = box === null ? 0 : (box.scrollTop + fixed) / row;
    setZoom(next);
    requestAnimationFrame(() => {
      if (box === null) return;
      box.scrollTop = middle * rowHeight * next - fixed;
      look();
    });
  };
  const step = (by: 1 | -1, anchor?: number): void => {
    const near = zooms.reduce((a, b) => (Math.abs(b - zoom) < Math.abs(a - zoom) ? b : a));
    zoomTo(zooms[Math.min(Math.max(zooms.indexOf(near) + by, 0), zooms.length - 1)] ?? 1, anchor);
  };
  const fit = (): void => {
    const height = scroller.current?.clientHeight ?? 600;
    zoomTo(Math.min(Math.max((height - 8) / (rows.length * rowHeight), 0.1), 1.2));
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const current = rows[focused];
    const moves: Record<string, () => void> = {
      ArrowDown: () => moveTo(focused + 1),
      ArrowUp: () => moveTo(focused - 1),
      ArrowRight: () => moveTo(current?.older),
      ArrowLeft: () => moveTo(current?.newer ?? current?.skippedBy),
      PageDown: () => moveTo(Math.min(focused + 10, rows.length - 1)),
      PageUp: () => moveTo(Math.max(focused - 10, 0)),
      Home: () => moveTo(0),
      End: () => moveTo(rows.length - 1),
      '+': () => step(1),
      '=': () => step(1),
      '-': () => step(-1),
      '0': () => zoomTo(1),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };
  // Over the drawing the wheel zooms, over names it scrolls; with Ctrl it zooms everywhere. A listener of the framework
  // could not keep the browser from zooming too.
  const wheelNow = useRef<(event: WheelEvent) => void>(() => undefined);
  wheelNow.current = (event) => {
    const box = scroller.current;
    if (box === null) return;
    const { left, top } = box.getBoundingClientRect();
    const isOnDrawing =
      event.clientX - left + box.scrollLeft < width && event.deltaX === 0 && !event.shiftKey;
    if (!event.ctrlKey && !isOnDrawing) return;
    event.preventDefault();
    step(event.deltaY < 0 ? 1 : -1, event.clientY - top);
  };
  useEffect(() => {
    const box = scroller.current;
    const wheel = (event: WheelEvent): void => wheelNow.current(event);
    box?.addEventListener('wheel', wheel, { passive: false });
    return () => box?.removeEventListener('wheel', wheel);
  }, []);
  const drag = useDrag(scroller);

  const first = Math.max(0, Math.floor(view.top / row) - overscan);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / row) + overscan);
  const isReadable = row >= minReadable;
  // Where rows are lower than their words, versions stand in several columns, so that none is left out.
  const columns = isReadable ? 1 : Math.ceil(minReadable / row);
  const hasLabels = columns <= maxColumns;
  const columnWidth = widthOfColumns(rows, (view.width - width) / columns);
  const onPath = new Set(path?.steps?.flatMap(({ from, to }) => [from, to]));
  const covered = new Set(place?.covered);
  const next = new Set(place?.updatesTo);
  return (
    <div class="graph">
      <div class="tools">
        <div class="choice" role="group" aria-label="Size">
          <button type="button" onClick={() => step(-1)} aria-label="Smaller">
            −
          </button>
          <button type="button" onClick={() => zoomTo(1)} aria-label="Normal size">
            {Math.round(zoom * 100)} %
          </button>
          <button type="button" onClick={() => step(1)} aria-label="Larger">
            +
          </button>
          <button type="button" onClick={fit} aria-label="Fit the whole channel">
            Fit
          </button>
        </div>
        <Legend hidden={channel.hiddenBrackets} />
      </div>
      <div class="scroller" ref={scroller} onScroll={look} {...drag}>
        <div class="canvas" style={{ height: `${rows.length * row}px` }}>
          <Drawing
            channel={channel}
            geometry={geometry}
            first={first}
            last={last}
            selected={position}
            place={place}
            path={path}
            columns={isReadable || !hasLabels ? 1 : columns}
            columnWidth={columnWidth}
          />
          <ol
            aria-label={`Bundles of ${channel.channel}, newest first. Right arrow leads to what a bundle replaces, left arrow back.`}
            onKeyDown={onKey}
            style={{ fontSize: `${Math.min(Math.max(zoom, 0.72), 1.3)}em` }}
          >
            {rows.slice(first, last).map((graph, index) => (
              <li
                key={graph.name}
                style={{ top: `${(first + index) * row}px`, height: `${row}px` }}
                aria-setsize={rows.length}
                aria-posinset={first + index + 1}
              >
                <a
                  href={getAddress({ ...route, bundle: graph.name })}
                  draggable={false}
                  data-at={first + index}
                  class={[
                    graph.marks.includes('skipped') ? 'skipped' : '',
                    covered.has(graph.name) ? 'covered' : '',
                    next.has(graph.name) ? 'next' : '',
                    onPath.has(graph.name) ? 'on-path' : '',
                    graph.marks.includes('removed') ? 'gone' : '',
                    isReadable ? '' : 'small',
                  ].join(' ')}
                  style={{
                    paddingLeft: `${width + (isReadable || !hasLabels ? 0 : ((first + index) % columns) * columnWidth)}px`,
                  }}
                  tabIndex={first + index === focused ? 0 : -1}
                  title={isReadable ? undefined : graph.name}
                  aria-label={isReadable ? undefined : graph.name}
                  onFocus={() => setFocused(first + index)}
                  {...(graph.name === selected && { 'aria-current': 'true' as const })}
                >
                  {isReadable ? (
                    <RowText
                      row={graph}
                      channels={channel.channels}
                      isCovered={covered.has(graph.name)}
                      isNext={next.has(graph.name)}
                    />
                  ) : (
                    hasLabels && (
                      <span class="label" style={{ maxWidth: `${columnWidth - 2}px` }}>
                        {graph.version || graph.name}
                      </span>
                    )
                  )}
                </a>
              </li>
            ))}
          </ol>
        </div>
      </div>
    </div>
  );
}

/** Wide enough for the longest version where there is room. */
function widthOfColumns(rows: readonly GraphRow[], available: number): number {
  const longest = rows.reduce((length, { name, version }) => Math.max(length, (version || name).length), 0);
  const wanted = Math.min(longest * labelCharacter + 8, maxColumnWidth);
  return Math.max(minColumnWidth, Math.min(wanted, available));
}

/** Lets the mouse drag what scrolls; a click that ends a drag opens nothing. */
function useDrag(box: RefObject<HTMLElement | null>): Record<string, (event: MouseEvent) => void> {
  const start = useRef<{ x: number; y: number; left: number; top: number }>(undefined);
  const hasMoved = useRef(false);
  useEffect(() => {
    const move = (event: PointerEvent): void => {
      const from = start.current;
      if (from === undefined || box.current === null) return;
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      hasMoved.current ||= Math.abs(x) + Math.abs(y) > dragDistance;
      if (!hasMoved.current) return;
      box.current.classList.add('dragged');
      box.current.scrollLeft = from.left - x;
      box.current.scrollTop = from.top - y;
    };
    const end = (): void => {
      start.current = undefined;
      box.current?.classList.remove('dragged');
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
    return () => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
    };
  }, []);
  return {
    onPointerDown: (event) => {
      hasMoved.current = false;
      // Fingers scroll by themselves.
      const isMouse = event instanceof PointerEvent && event.pointerType === 'mouse' && event.button === 0;
      if (!isMouse || box.current === null) return;
      const { scrollLeft: left, scrollTop: top } = box.current;
      start.current = { x: event.clientX, y: event.clientY, left, top };
    },
    onClickCapture: (event) => {
      if (!hasMoved.current) return;
      hasMoved.current = false;
      event.preventDefault();
      event.stopPropagation();
    },
  };
}

function RowText({
  row,
  channels,
  isCovered,
  isNext,
}: {
  row: GraphRow;
  channels: string[];
  isCovered: boolean;
  isNext: boolean;
}) {
  return (
    <>
      <span class="version">{row.version || '?'}</span>
      <span class="id">{row.name}</span>
      <RowMarks row={row} />
      {isNext && <Badge kind="next">next update</Badge>}
      {isCovered && <Badge kind="covered">in skip range</Badge>}
      {row.channels?.map((position) => (
        <span key={position} class="in-channel">
          {channels[position]}
        </span>
      ))}
      <span class="more">
        {row.replaces !== '' && <span class="unseen">replaces {row.replaces}</span>}
        {row.skips > 0 && <span>skips {row.skips}</span>}
        {row.skipRange !== '' && <span class="range">{row.skipRange}</span>}
      </span>
    </>
  );
}

function getGeometry({ lanes, bracketColumns, hiddenBrackets }: ChannelLayout, zoom: number): Geometry {
  const row = Math.max(rowHeight * zoom, 3);
  const scale = Math.min(Math.max(zoom, 0.6), 1.2);
  const lane = Math.min(laneWidth * scale, maxLanesWidth / lanes);
  // One more column where the brackets of a bundle are drawn only while it is chosen.
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

function Drawing({
  channel,
  geometry,
  first,
  last,
  selected,
  place,
  path,
  columns,
  columnWidth,
}: {
  channel: ChannelLayout;
  geometry: Geometry;
  first: number;
  last: number;
  selected: number;
  place: BundlePlace | undefined;
  path: UpgradePath | undefined;
  columns: number;
  columnWidth: number;
}) {
  const { rows, edges } = channel;
  const { row, width } = geometry;
  const size = Math.min(Math.max(row / 6, 1.5), 5.5);
  const isSeen = (from: number, to: number): boolean =>
    Math.min(from, to) < last && Math.max(from, to) >= first;
  const isHot = ({ from, to }: GraphEdge): boolean => from === selected || to === selected;
  const seenEdges = edges.filter(({ from, to }) => isSeen(from, to));
  const isHotBracket = ({ from, to }: SkipBracket): boolean => from === selected || to.includes(selected);
  const seenBrackets = withSelected(channel, selected, place).filter(
    (bracket) =>
      isSeen(Math.min(bracket.from, bracket.to[0] ?? 0), Math.max(bracket.from, bracket.to.at(-1) ?? 0)) &&
      // Small as they get, they would only be noise.
      (row >= minBrackets || isHotBracket(bracket)),
  );
  return (
    <svg class="drawing" width={width + columns * columnWidth} height={rows.length * row} aria-hidden="true">
      {seenBrackets
        .sort((a, b) => Number(isHotBracket(a)) - Number(isHotBracket(b)))
        .map((bracket) => (
          <path
            key={`b${bracket.from}`}
            class={`bracket${isHotBracket(bracket) ? ' hot' : ''}`}
            d={bracketPath(bracket, rows, geometry, { size, first, last })}
          />
        ))}
      {seenEdges
        .sort((a, b) => Number(isHot(a)) - Number(isHot(b)))
        .map((edge) => (
          <path
            key={`e${edge.from}-${edge.to}`}
            class={`edge ${edge.change ?? ''}${isHot(edge) ? ' hot' : ''}${edge.to <= edge.from ? ' circular' : ''}`}
            d={edgePath(edge, rows, geometry)}
          />
        ))}
      {columns > 1 &&
        rows.slice(first, last).map(({ lane }, index) => {
          const position = first + index;
          const end = width + (position % columns) * columnWidth - 3;
          return (
            <path
              key={position}
              class="leader"
              d={`M${geometry.x(lane) + size + 2} ${geometry.y(position)}H${end}`}
            />
          );
        })}
      <PathDrawing path={path} rows={rows} geometry={geometry} />
      {rows.slice(first, last).map((graph, index) => {
        const [x, y] = [geometry.x(graph.lane), geometry.y(first + index)];
        const isDangling = graph.replaces !== '' && graph.older === undefined;
        return (
          <g key={graph.name}>
            {isDangling && <path class="dangling" d={`M${x} ${y}V${y + row * 0.62}`} />}
            <NodeSign marks={graph.marks} x={x} y={y} size={size} />
            {first + index === selected && <circle class="chosen" cx={x} cy={y} r={size + 6} />}
          </g>
        );
      })}
    </svg>
  );
}

/** The steps of an update path, each as a curve from a bundle up to the one that takes its place. */
function PathDrawing({
  path,
  rows,
  geometry: { x, y, row },
}: {
  path: UpgradePath | undefined;
  rows: readonly GraphRow[];
  geometry: Geometry;
}) {
  const steps = path?.steps ?? [];
  if (steps.length === 0) return null;
  const places = new Map(rows.map(({ name }, index) => [name, index]));
  return (
    <>
      {steps.map(({ from, to }) => {
        const [start, end] = [places.get(from), places.get(to)];
        if (start === undefined || end === undefined) return null;
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

/** The brackets, and that of the chosen bundle where it is left out otherwise. */
function withSelected(
  { rows, brackets, bracketColumns }: ChannelLayout,
  selected: number,
  place: BundlePlace | undefined,
): SkipBracket[] {
  if (selected < 0 || place === undefined || brackets.some(({ from }) => from === selected))
    return [...brackets];
  const skips = new Set(place.skips);
  const to = rows.flatMap(({ name }, index) => (skips.has(name) && index !== selected ? [index] : []));
  return to.length === 0 ? [...brackets] : [...brackets, { from: selected, to, column: bracketColumns }];
}

/** Down from a bundle to the one that it replaces, aside where the lane is another. */
function edgePath({ from, to, lane }: GraphEdge, rows: readonly GraphRow[], geometry: Geometry): string {
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

/** From a bundle to the line beside the rows, along it, and from it a tick with a tip to each that is skipped. */
function bracketPath(
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

function Legend({ hidden }: { hidden: number }) {
  const signs = [
    [[], 'a bundle'],
    [['head'], 'head of the channel'],
    [['skipped'], 'skipped by a newer bundle'],
    [['deprecated'], 'deprecated'],
    [['stranded'], 'stranded: no way to the head'],
    [['undefined'], 'named, but not in the catalog'],
  ] as const;
  return (
    <details class="legend">
      <summary>Legend</summary>
      <div>
        <ul>
          {signs.map(([marks, text]) => (
            <li key={text}>
              <svg width="24" height="22" aria-hidden="true">
                <NodeSign marks={marks} x={12} y={11} />
              </svg>
              {text}
            </li>
          ))}
          <li>
            <svg width="24" height="22" aria-hidden="true">
              <path class="edge" d="M12 2V20" />
            </svg>
            down to the bundle that is replaced
          </li>
          <li>
            <svg width="24" height="22" aria-hidden="true">
              <path class="bracket" d="M20 4H6V17H18m-3 -3l3 3l-3 3" />
            </svg>
            to the bundles that are skipped
          </li>
        </ul>
        <p>
          Updates go upwards. A chosen bundle also shows which bundles its skip range covers.
          {hidden > 0 &&
            ` ${count(hidden, 'bundle')} of this channel skip others that are shown only while it is chosen.`}
        </p>
        <p>
          <kbd>↑</kbd> <kbd>↓</kbd> next row · <kbd>→</kbd> what it replaces · <kbd>←</kbd> what replaces it ·{' '}
          <kbd>Enter</kbd> details · <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> or the wheel over the lines: size
          · drag: move
        </p>
      </div>
    </details>
  );
}
