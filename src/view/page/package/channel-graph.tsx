import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { BundlePlace, ChannelLayout, UpgradePath } from '../../responses.js';
import type { PackageRoute } from '../route.js';
import { Drawing, Leaders, getGeometry } from './channel-drawing.js';
import { Legend } from './graph-legend.js';
import { BundleLink, GroupButton, type Highlights, type RowForm, getRowForm } from './graph-rows.js';
import {
  type Zoom,
  centerRow,
  getDrawnRows,
  scrollToRow,
  useDrag,
  useScrolledBox,
  useZoom,
} from './graph-window.js';
import {
  type MinorGroup,
  type ShownLayout,
  findGroup,
  groupMinors,
  maxUngroupedRows,
  showAll,
} from './minor-groups.js';

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
  const { route, selected, place, path } = props;
  const { channel, toggle, grouping } = useGroups(props.channel, route.bundle);
  const { rows } = channel;
  const scroller = useRef<HTMLDivElement>(null);
  const { box, update } = useScrolledBox(scroller);
  const zooming = useZoom(scroller, (zoom) => getGeometry(channel, zoom).row, update);
  const geometry = getGeometry(channel, zooming.zoom);
  const { row, width } = geometry;
  const position = rows.findIndex(({ name }) => name === selected);
  const { focused, setFocused, moveTo } = useFocus(scroller, { position, count: rows.length, row, update });
  const drag = useDrag(scroller);
  const { first, last } = getDrawnRows(box, row, rows.length);
  const form = getRowForm(rows, row, box.width - width);
  const { columns, columnWidth } = form;
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ...getMoves(rows, focused, moveTo, toggle), ...getZoomKeys(zooming) };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };
  return (
    <div class="graph">
      <Tools zooming={zooming} rows={rows.length} grouping={grouping} hidden={channel.hiddenBrackets} />
      <div class="scroller" ref={scroller} onScroll={update} {...drag}>
        <div class="canvas" style={{ height: `${rows.length * row}px` }}>
          {!form.isReadable && form.hasLabels && columns > 1 && (
            <Leaders {...{ channel, geometry, first, last, columns, columnWidth }} />
          )}
          <Drawing {...{ channel, geometry, first, last, place, path }} selected={position} />
          <ol
            aria-label={`Bundles of ${channel.channel}, newest first. Right arrow: replaced bundle, left arrow: back.`}
            onKeyDown={onKey}
            style={{ fontSize: `${Math.min(Math.max(zooming.zoom, 0.72), 1.3)}em` }}
          >
            <Rows
              {...{ channel, route, selected, first, last, focused, form }}
              {...{ row, indent: width, highlights: getHighlights(place, path) }}
              onFocus={setFocused}
              onToggle={toggle}
            />
          </ol>
        </div>
      </div>
    </div>
  );
}

/** Switch that groups minor versions; undefined for channels with few bundles. */
type Grouping = { isGrouped: boolean; onChange: (isGrouped: boolean) => void } | undefined;

/** Groups the minor versions of a channel with many bundles, and expands that of the bundle of the route. */
function useGroups(
  whole: ChannelLayout,
  bundle: string,
): { channel: ShownLayout; toggle: (group: MinorGroup) => void; grouping: Grouping } {
  const canGroup = whole.rows.length > maxUngroupedRows;
  const [isGrouped, setGrouped] = useState(true);
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set());
  const channel = useMemo(
    () => (canGroup && isGrouped ? groupMinors(whole, expanded) : showAll(whole)),
    [whole, canGroup, isGrouped, expanded],
  );
  // A bundle that the user selects is shown, until its group is collapsed again.
  useLayoutEffect(() => {
    const key = findGroup(whole, bundle);
    if (key !== undefined) setExpanded((keys) => new Set([...keys, key]));
  }, [whole, bundle]);
  const toggle = ({ key }: MinorGroup): void => {
    const next = new Set(expanded);
    if (!next.delete(key)) next.add(key);
    setExpanded(next);
  };
  return { channel, toggle, grouping: canGroup ? { isGrouped, onChange: setGrouped } : undefined };
}

/** The row that takes the focus; it is that of the selected bundle, at `position`, once this changes. */
function useFocus(
  scroller: { readonly current: HTMLDivElement | null },
  { position, count, row, update }: { position: number; count: number; row: number; update: () => void },
): { focused: number; setFocused: (index: number) => void; moveTo: (index: number | undefined) => void } {
  const [focused, setFocused] = useState(Math.max(position, 0));
  const wantsFocus = useRef(false);
  useLayoutEffect(() => {
    if (position < 0 || scroller.current === null) return;
    setFocused(position);
    centerRow(scroller.current, position, row);
    update();
  }, [position]);
  // Move the focus before the next key event, which is for the new row.
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    const element = scroller.current?.querySelector<HTMLElement>(`[data-at="${focused}"]`);
    element?.focus({ preventScroll: true });
    // The box may reach below the window, where its own scrolling does not show the row.
    element?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });
  const moveTo = (index: number | undefined): void => {
    if (index === undefined || index < 0 || index >= count) return;
    wantsFocus.current = true;
    setFocused(index);
    if (scroller.current === null) return;
    scrollToRow(scroller.current, index, row);
    update();
  };
  return { focused, setFocused, moveTo };
}

/** Returns what keys move the focus to, by their names. */
function getMoves(
  rows: ShownLayout['rows'],
  focused: number,
  moveTo: (index: number | undefined) => void,
  toggle: (group: MinorGroup) => void,
): Partial<Record<string, () => void>> {
  const current = rows[focused];
  const expand = (group: MinorGroup): void => (group.isExpanded ? moveTo(focused + 1) : toggle(group));
  const collapse = (group: MinorGroup): void => {
    if (group.isExpanded) toggle(group);
  };
  return {
    ArrowDown: () => moveTo(focused + 1),
    ArrowUp: () => moveTo(focused - 1),
    ArrowRight: () => (current?.group === undefined ? moveTo(current?.older) : expand(current.group)),
    ArrowLeft: () =>
      current?.group === undefined ? moveTo(current?.newer ?? current?.skippedBy) : collapse(current.group),
    PageDown: () => moveTo(Math.min(focused + 10, rows.length - 1)),
    PageUp: () => moveTo(Math.max(focused - 10, 0)),
    Home: () => moveTo(0),
    End: () => moveTo(rows.length - 1),
  };
}

function getZoomKeys({ step, reset }: Zoom): Partial<Record<string, () => void>> {
  return { '+': () => step(1), '=': () => step(1), '-': () => step(-1), '0': reset };
}

function getHighlights(place: BundlePlace | undefined, path: UpgradePath | undefined): Highlights {
  return {
    onPath: new Set(path?.steps?.flatMap(({ from, to }) => [from, to])),
    covered: new Set(place?.covered),
    next: new Set(place?.updatesTo),
  };
}

/** Buttons above the graph, and its legend. */
function Tools(props: { zooming: Zoom; rows: number; grouping: Grouping; hidden: number }) {
  const { zooming, rows, grouping, hidden } = props;
  const { zoom, step, reset, fit } = zooming;
  return (
    <div class="tools">
      <div class="choice" role="group" aria-label="Size">
        <button type="button" onClick={() => step(-1)} aria-label="Smaller">
          −
        </button>
        <button type="button" onClick={reset} title="Normal size">
          {Math.round(zoom * 100)} %
        </button>
        <button type="button" onClick={() => step(1)} aria-label="Larger">
          +
        </button>
        <button type="button" onClick={() => fit(rows)} aria-label="Fit the whole channel">
          Fit
        </button>
      </div>
      {grouping !== undefined && (
        <button
          type="button"
          aria-pressed={grouping.isGrouped}
          onClick={() => grouping.onChange(!grouping.isGrouped)}
        >
          Group minor versions
        </button>
      )}
      <Legend hidden={hidden} />
    </div>
  );
}

/** The rows from `first` to before `last`. */
function Rows(props: {
  channel: ShownLayout;
  route: PackageRoute;
  selected: string;
  first: number;
  last: number;
  focused: number;
  form: RowForm;
  /** Height of a row. */
  row: number;
  indent: number;
  highlights: Highlights;
  onFocus: (index: number) => void;
  onToggle: (group: MinorGroup) => void;
}) {
  const { channel, route, selected, first, last, focused, row, onFocus, onToggle } = props;
  const { form, indent, highlights } = props;
  const { rows } = channel;
  return (
    <>
      {rows.slice(first, last).map((graph, index) => {
        const position = first + index;
        const { group } = graph;
        const shared = {
          ...{ row: graph, position, form, indent, highlights, isFocused: position === focused },
          onFocus: () => onFocus(position),
        };
        return (
          <li
            key={graph.name}
            style={{ top: `${position * row}px`, height: `${row}px` }}
            aria-setsize={rows.length}
            aria-posinset={position + 1}
          >
            {group === undefined ? (
              <BundleLink
                {...shared}
                route={route}
                channels={channel.channels}
                isSelected={graph.name === selected}
              />
            ) : (
              <GroupButton {...shared} group={group} onToggle={() => onToggle(group)} />
            )}
          </li>
        );
      })}
    </>
  );
}
