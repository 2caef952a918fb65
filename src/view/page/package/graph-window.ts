import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { rowHeight } from './channel-drawing.js';

const zooms = [0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1, 1.2, 1.45, 1.75] as const;
/** Minimum distance of a drag in pixels. */
const dragDistance = 4;
/** Rows that are drawn above and below the visible ones. */
const overscan = 20;

type Scroller = RefObject<HTMLDivElement | null>;

/** The visible part of the box that scrolls, in pixels. */
interface ScrolledBox {
  top: number;
  height: number;
  width: number;
}

/** Follows the visible part of the box; `update` reads it again after the box was scrolled. */
export function useScrolledBox(scroller: Scroller): { box: ScrolledBox; update: () => void } {
  const [box, setBox] = useState<ScrolledBox>({ top: 0, height: 900, width: 600 });
  const update = (): void => {
    const element = scroller.current;
    if (element !== null)
      setBox({ top: element.scrollTop, height: element.clientHeight, width: element.clientWidth });
  };
  useLayoutEffect(() => {
    update();
    addEventListener('resize', update);
    return () => removeEventListener('resize', update);
  }, []);
  // Paper has no scrolling: all rows are in the document while the page is printed.
  useEffect(() => {
    const showWhole = (): void =>
      setBox((before) => ({ ...before, top: 0, height: Number.MAX_SAFE_INTEGER }));
    addEventListener('beforeprint', showWhole);
    addEventListener('afterprint', update);
    return () => {
      removeEventListener('beforeprint', showWhole);
      removeEventListener('afterprint', update);
    };
  }, []);
  return { box, update };
}

/** Returns the rows to draw: from `first` to before `last`. */
export function getDrawnRows(
  { top, height }: ScrolledBox,
  row: number,
  count: number,
): { first: number; last: number } {
  return {
    first: Math.max(0, Math.floor(top / row) - overscan),
    last: Math.min(count, Math.ceil((top + height) / row) + overscan),
  };
}

/** Scrolls the box by the least that shows a row with its neighbors. */
export function scrollToRow(element: HTMLElement, index: number, row: number): void {
  const [top, bottom] = [index * row, (index + 1) * row];
  if (top < element.scrollTop + row) element.scrollTop = Math.max(0, top - row);
  else if (bottom > element.scrollTop + element.clientHeight - row)
    element.scrollTop = bottom - element.clientHeight + row;
}

/** Scrolls the box so that a row is in its middle, unless the row is visible. */
export function centerRow(element: HTMLElement, index: number, row: number): void {
  const isInSight =
    index * row >= element.scrollTop && (index + 1) * row <= element.scrollTop + element.clientHeight;
  if (!isInSight) element.scrollTop = (index + 0.5) * row - element.clientHeight / 2;
}

/** Size of the graph, and what changes it. */
export interface Zoom {
  zoom: number;
  step: (by: 1 | -1) => void;
  reset: () => void;
  /** Shows the whole channel. */
  fit: (rows: number) => void;
}

/** Zooms the box by buttons, and by the wheel with Ctrl; `getRow` is the height of a row, `update` follows the scrolling. */
export function useZoom(scroller: Scroller, getRow: (zoom: number) => number, update: () => void): Zoom {
  const [zoom, setZoom] = useState(1);
  /** `anchor` is the fixed offset in the box; default: the middle. */
  const zoomTo = (next: number, anchor?: number): void => {
    const element = scroller.current;
    const fixed = anchor ?? (element?.clientHeight ?? 0) / 2;
    const middle = element === null ? 0 : (element.scrollTop + fixed) / getRow(zoom);
    setZoom(next);
    requestAnimationFrame(() => {
      if (element === null) return;
      element.scrollTop = middle * rowHeight * next - fixed;
      update();
    });
  };
  const step = (by: 1 | -1, anchor?: number): void => {
    const near = zooms.reduce((a, b) => (Math.abs(b - zoom) < Math.abs(a - zoom) ? b : a));
    zoomTo(zooms[Math.min(Math.max(zooms.indexOf(near) + by, 0), zooms.length - 1)] ?? 1, anchor);
  };
  useWheel(scroller, step);
  return {
    zoom,
    step: (by) => step(by),
    reset: () => zoomTo(1),
    fit: (rows) => {
      const height = scroller.current?.clientHeight ?? 600;
      zoomTo(Math.min(Math.max((height - 8) / (rows * rowHeight), 0.1), 1.2));
      // The box itself may end below the window.
      scroller.current?.scrollIntoView({ block: 'nearest' });
    },
  };
}

/**
 * Zooms by the wheel with Ctrl, which else scrolls. Listeners of Preact are passive and could not prevent the zoom of the
 * browser.
 */
function useWheel(scroller: Scroller, step: (by: 1 | -1, anchor: number) => void): void {
  const wheelNow = useRef<(event: WheelEvent) => void>(() => undefined);
  wheelNow.current = (event) => {
    const element = scroller.current;
    if (element === null || !event.ctrlKey) return;
    const { top } = element.getBoundingClientRect();
    event.preventDefault();
    step(event.deltaY < 0 ? 1 : -1, event.clientY - top);
  };
  useEffect(() => {
    const element = scroller.current;
    const wheel = (event: WheelEvent): void => wheelNow.current(event);
    element?.addEventListener('wheel', wheel, { passive: false });
    return () => element?.removeEventListener('wheel', wheel);
  }, []);
}

/** Returns handlers that scroll an element by dragging; the click at the end of a drag is ignored. */
export function useDrag(box: Scroller): Record<string, (event: MouseEvent) => void> {
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
      // Browsers scroll by touch.
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
