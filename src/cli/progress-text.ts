import { redactUrls } from '../core/errors.js';
import type { ProgressEvent } from '../core/log.js';
import { amountOfBytes, printableLine } from './printable.js';

/** Minimum time before a rate is shown. */
const settlingMs = 1000;

/** Running task with its start, the base of the rate. */
export interface RunningTask {
  readonly event: ProgressEvent;
  readonly startedAt: number;
  readonly startedWith: number;
}

/** Returns the running tasks after an event, oldest first. `now` is in milliseconds. */
export function withEvent(
  running: ReadonlyMap<string, RunningTask>,
  event: ProgressEvent,
  now: number,
): Map<string, RunningTask> {
  const next = new Map(running);
  if (event.state === 'done' || event.state === 'failed') {
    next.delete(event.task);
    return next;
  }
  const before = next.get(event.task);
  // A task may begin before its amount is known.
  const isFirstAmount = before?.event.current === undefined && event.current !== undefined;
  next.set(event.task, {
    event,
    startedAt: before === undefined || isFirstAmount ? now : before.startedAt,
    startedWith: before === undefined || isFirstAmount ? (event.current ?? 0) : before.startedWith,
  });
  return next;
}

/** Minimum length of a shortened name. */
const minNameLength = 12;

/**
 * Returns the progress line: the largest task with percentage, rate and time left, then its part or another task, and the
 * number of others. Shortened to `width` characters; names are printable and without secrets.
 */
export function describeProgress(running: Iterable<RunningTask>, now: number, width = Infinity): string {
  const tasks = [...running];
  const main = tasks.reduce<RunningTask | undefined>(
    (largest, task) => (largest === undefined || getTotal(task) > getTotal(largest) ? task : largest),
    undefined,
  );
  if (main === undefined) return 'working';
  const others = tasks.filter((task) => task !== main);
  const part = main.event.item ?? others.pop()?.event.task;
  const start = `${toShown(main.event.task)}${formatAmount(main, now)}`;
  if (part === undefined) return start.slice(0, width);
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  const name = toShown(part);
  const room = width - start.length - more.length - ' · '.length;
  if (name.length <= room) return `${start} · ${name}${more}`;
  // Images of one registry differ at the end of their references.
  if (room > minNameLength) return `${start} · …${name.slice(1 - room)}${more}`;
  return start.slice(0, width);
}

function toShown(name: string): string {
  return printableLine(redactUrls(name));
}

function getTotal({ event }: RunningTask): number {
  return event.total ?? 0;
}

function formatAmount({ event, startedAt, startedWith }: RunningTask, now: number): string {
  const { current, total, unit } = event;
  if (current === undefined) return '';
  const show = (value: number): string => (unit === 'bytes' ? amountOfBytes(value) : String(value));
  if (total === undefined) return ` ${show(current)}`;
  const percent = total === 0 ? 100 : Math.floor((100 * current) / total);
  const text = ` ${percent}%, ${show(current)} of ${show(total)}`;
  const elapsed = now - startedAt;
  const perMs = (current - startedWith) / elapsed;
  if (elapsed < settlingMs || !(perMs > 0)) return text;
  const rate = unit === 'bytes' ? `, ${amountOfBytes(Math.round(perMs * 1000))}/s` : '';
  return `${text}${rate}, ${formatDuration((total - current) / perMs)} left`;
}

/** Returns a duration in at most two units: `8s`, `3m20s`, `2h05m`. */
function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const pad = (value: number): string => String(value).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${pad(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h${pad(Math.floor((seconds % 3600) / 60))}m`;
}
