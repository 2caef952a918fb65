import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** Minimum distance of a drag in pixels. */
const dragDistance = 4;

/** Returns handlers that scroll an element by dragging; the click at the end of a drag is ignored. */
export function useDrag(box: RefObject<HTMLElement | null>): Record<string, (event: MouseEvent) => void> {
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
