import { UsageError } from '../../core/errors.js';
import { parseGoDuration } from '../../core/text/go-duration.js';

/** Returns a reader of integers within bounds, in decimal digits. */
export function integer(minimum: number, maximum = 1_000_000_000): (text: string) => number {
  return (text) => {
    const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= minimum && value <= maximum) return value;
    throw new UsageError(`expected an integer from ${minimum} to ${maximum}`);
  };
}

const sizeUnits: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** Reads a size in bytes, or with `K`, `M`, `G` or `T` (also `Ki`, `KiB` …) for powers of 1024. */
export function byteSize(text: string): number {
  const match = /^(\d+)([kmgt]?)(?:i?b?)$/i.exec(text);
  const size =
    match === null ? Number.NaN : Number(match[1]) * (sizeUnits[(match[2] ?? '').toLowerCase()] ?? 1);
  if (!Number.isSafeInteger(size) || size <= 0) throw new UsageError('expected a size such as 500M or 8G');
  return size;
}

/**
 * Returns a reader of durations such as `30s` or `1m30s`, by default in seconds; it returns milliseconds. Timers of
 * Node.js end at once beyond 596h.
 */
export function duration(minimum = '0s', maximum = '500h'): (text: string) => number {
  const [minimumMs = 0, maximumMs = 0] = [minimum, maximum].map(parseGoDuration);
  return (text) => {
    const value = parseGoDuration(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text) ?? Number.NaN;
    if (value >= minimumMs && value <= maximumMs) return value;
    throw new UsageError(`expected a duration from ${minimum} to ${maximum}`);
  };
}

/** Reads the interval of a CatalogSource, which is written as the user wrote it. */
export function pollInterval(text: string): string {
  duration('1s', '720h')(text);
  return /^\d+(\.\d+)?$/.test(text) ? `${text}s` : text;
}

/** Returns the trimmed, nonempty items of a comma-separated list. */
export function getItems(value: string): string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
