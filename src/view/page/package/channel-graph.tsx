import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { BundlePlace, ChannelLayout, GraphRow, UpgradePath } from '../../responses.js';
import { RowMarks } from './marks.js';
import { type MinorGroup, findGroup, groupMinors, maxUngroupedRows, showAll } from './minor-groups.js';
import { Badge, formatCount } from '../parts.js';
import { type PackageRoute, getUrl } from '../route.js';
import { Drawing, Leaders, getGeometry, rowHeight } from './channel-drawing.js';
import { useDrag } from './drag.js';
import { Legend } from './graph-legend.js';

const zooms = [0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1, 1.2, 1.45, 1.75] as const;
/** Minimum height of a row that shows more than the version. */
const minReadable = 14;
/** Maximum columns of versions beside low rows; no versions are shown if they need more. */
const maxColumns = 8;
/** Widths of such a column, and of a character in it, in pixels. */
const minColumnWidth = 58;
const maxColumnWidth = 170;
const labelCharacter = 6.6;
/** Rows that are drawn above and below the visible ones. */
const overscan = 20;

/**
 * Upgrade graph of a channel, newest first: an accessible list of links with a drawing beside it. Only visible rows are
 * in the document.
 */
export function ChannelGraphView(props: {
  channel: ChannelLayout;
  route: PackageRoute;
  selected: string;
  place: BundlePlace | undefined;
  path: UpgradePath | undefined;
}) {
  const { channel: whole, route, selected, place, path } = props;
  const canGroup = whole.rows.length > maxUngroupedRows;
  const [isGrouped, setGrouped] = useState(true);
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set());
  const channel = useMemo(
    () => (canGroup && isGrouped ? groupMinors(whole, expanded) : showAll(whole)),
    [whole, canGroup, isGrouped, expanded],
  );
  const { rows } = channel;
  const toggle = ({ key }: MinorGroup): void => {
    const next = new Set(expanded);
    if (!next.delete(key)) next.add(key);
    setExpanded(next);
  };
  // A bundle that the user selects is shown, until its group is collapsed again.
  useLayoutEffect(() => {
    const key = findGroup(whole, route.bundle);
    if (key !== undefined) setExpanded((keys) => new Set([...keys, key]));
  }, [whole, route.bundle]);
  const scroller = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const [view, setView] = useState({ top: 0, height: 900, width: 600 });
  const position = rows.findIndex(({ name }) => name === selected);
  const [focused, setFocused] = useState(Math.max(position, 0));
  const wantsFocus = useRef(false);
  const geometry = getGeometry(channel, zoom);
  const { row, width } = geometry;

  const updateView = (): void => {
    const box = scroller.current;
    if (box !== null) setView({ top: box.scrollTop, height: box.clientHeight, width: box.clientWidth });
  };
  const scrollTo = (index: number): void => {
    const box = scroller.current;
    if (box === null) return;
    const [top, bottom] = [index * row, (index + 1) * row];
    if (top < box.scrollTop + row) box.scrollTop = Math.max(0, top - row);
    else if (bottom > box.scrollTop + box.clientHeight - row) box.scrollTop = bottom - box.clientHeight + row;
    updateView();
  };
  useLayoutEffect(() => {
    updateView();
    addEventListener('resize', updateView);
    return () => removeEventListener('resize', updateView);
  }, []);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (position < 0 || box === null) return;
    setFocused(position);
    const isInSight =
      position * row >= box.scrollTop && (position + 1) * row <= box.scrollTop + box.clientHeight;
    if (!isInSight) box.scrollTop = (position + 0.5) * row - box.clientHeight / 2;
    updateView();
  }, [position]);
  // Move the focus before the next key event, which is for the new row.
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    const row = scroller.current?.querySelector<HTMLElement>(`[data-at="${focused}"]`);
    row?.focus({ preventScroll: true });
    // The box may reach below the window, where its own scrolling does not show the row.
    row?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });

  const moveTo = (index: number | undefined): void => {
    if (index === undefined || index < 0 || index >= rows.length) return;
    wantsFocus.current = true;
    setFocused(index);
    scrollTo(index);
  };
  /** `anchor` is the fixed offset in the box; default: the middle. */
  const zoomTo = (next: number, anchor?: number): void => {
    const box = scroller.current;
    const fixed = anchor ?? (box?.clientHeight ?? 0) / 2;
    const middle = box === null ? 0 : (box.scrollTop + fixed) / row;
    setZoom(next);
    requestAnimationFrame(() => {
      if (box === null) return;
      box.scrollTop = middle * rowHeight * next - fixed;
      updateView();
    });
  };
  const step = (by: 1 | -1, anchor?: number): void => {
    const near = zooms.reduce((a, b) => (Math.abs(b - zoom) < Math.abs(a - zoom) ? b : a));
    zoomTo(zooms[Math.min(Math.max(zooms.indexOf(near) + by, 0), zooms.length - 1)] ?? 1, anchor);
  };
  const fit = (): void => {
    const height = scroller.current?.clientHeight ?? 600;
    zoomTo(Math.min(Math.max((height - 8) / (rows.length * rowHeight), 0.1), 1.2));
    // The box itself may end below the window.
    scroller.current?.scrollIntoView({ block: 'nearest' });
  };
  const expand = (group: MinorGroup): void => (group.isExpanded ? moveTo(focused + 1) : toggle(group));
  const collapse = (group: MinorGroup): void => {
    if (group.isExpanded) toggle(group);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const current = rows[focused];
    const moves: Record<string, () => void> = {
      ArrowDown: () => moveTo(focused + 1),
      ArrowUp: () => moveTo(focused - 1),
      ArrowRight: () => (current?.group === undefined ? moveTo(current?.older) : expand(current.group)),
      ArrowLeft: () =>
        current?.group === undefined ? moveTo(current?.newer ?? current?.skippedBy) : collapse(current.group),
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
  // The wheel zooms with Ctrl only, else it scrolls. Listeners of Preact are passive and could not prevent the zoom of
  // the browser.
  const wheelNow = useRef<(event: WheelEvent) => void>(() => undefined);
  wheelNow.current = (event) => {
    const box = scroller.current;
    if (box === null || !event.ctrlKey) return;
    const { top } = box.getBoundingClientRect();
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
  // Paper has no scrolling: all rows are in the document while the page is printed.
  useEffect(() => {
    const showWhole = (): void =>
      setView((before) => ({ ...before, top: 0, height: Number.MAX_SAFE_INTEGER }));
    addEventListener('beforeprint', showWhole);
    addEventListener('afterprint', updateView);
    return () => {
      removeEventListener('beforeprint', showWhole);
      removeEventListener('afterprint', updateView);
    };
  }, []);

  const first = Math.max(0, Math.floor(view.top / row) - overscan);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / row) + overscan);
  const isReadable = row >= minReadable;
  // Low rows show their versions in several columns.
  const columns = isReadable ? 1 : Math.ceil(minReadable / row);
  const hasLabels = columns <= maxColumns;
  const columnWidth = getColumnWidth(rows, (view.width - width) / columns);
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
          <button type="button" onClick={() => zoomTo(1)} title="Normal size">
            {Math.round(zoom * 100)} %
          </button>
          <button type="button" onClick={() => step(1)} aria-label="Larger">
            +
          </button>
          <button type="button" onClick={fit} aria-label="Fit the whole channel">
            Fit
          </button>
        </div>
        {canGroup && (
          <button type="button" aria-pressed={isGrouped} onClick={() => setGrouped(!isGrouped)}>
            Group minor versions
          </button>
        )}
        <Legend hidden={channel.hiddenBrackets} />
      </div>
      <div class="scroller" ref={scroller} onScroll={updateView} {...drag}>
        <div class="canvas" style={{ height: `${rows.length * row}px` }}>
          {!isReadable && hasLabels && columns > 1 && (
            <Leaders {...{ channel, geometry, first, last, columns, columnWidth }} />
          )}
          <Drawing
            channel={channel}
            geometry={geometry}
            first={first}
            last={last}
            selected={position}
            place={place}
            path={path}
          />
          <ol
            aria-label={`Bundles of ${channel.channel}, newest first. Right arrow: replaced bundle, left arrow: back.`}
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
                {graph.group === undefined ? (
                  <a
                    href={getUrl({ ...route, bundle: graph.name })}
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
                ) : (
                  <button
                    type="button"
                    class={`group${isReadable ? '' : ' small'}`}
                    data-at={first + index}
                    style={{ paddingLeft: `${width}px` }}
                    tabIndex={first + index === focused ? 0 : -1}
                    aria-expanded={graph.group.isExpanded}
                    onFocus={() => setFocused(first + index)}
                    onClick={() => graph.group !== undefined && toggle(graph.group)}
                  >
                    <GroupText
                      row={graph}
                      group={graph.group}
                      isNext={graph.group.names.some((name) => next.has(name))}
                    />
                  </button>
                )}
              </li>
            ))}
          </ol>
        </div>
      </div>
    </div>
  );
}

/** Returns a width for the longest version, if available. */
function getColumnWidth(rows: readonly GraphRow[], available: number): number {
  const longest = rows.reduce((length, { name, version }) => Math.max(length, (version || name).length), 0);
  const ideal = Math.min(longest * labelCharacter + 8, maxColumnWidth);
  return Math.max(minColumnWidth, Math.min(ideal, available));
}

function GroupText({ row, group, isNext }: { row: GraphRow; group: MinorGroup; isNext: boolean }) {
  const { minor, names, newest, oldest, isExpanded } = group;
  return (
    <>
      <span class="version">{minor}</span>
      <span class="id">
        {formatCount(names.length, 'bundle')}: {newest} to {oldest}
      </span>
      <RowMarks row={row} />
      {isNext && !isExpanded && <Badge kind="next">next upgrade</Badge>}
    </>
  );
}

function RowText(props: { row: GraphRow; channels: string[]; isCovered: boolean; isNext: boolean }) {
  const { row, channels, isCovered, isNext } = props;
  return (
    <>
      <span class="version">{row.version || '?'}</span>
      <span class="id">{row.name}</span>
      <RowMarks row={row} />
      {isNext && <Badge kind="next">next upgrade</Badge>}
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
