import { invalidValue, OpmateError, UsageError } from '../../core/errors.js';
import { parseGoDuration } from '../../kube/duration.js';
import { type LabelSelector, parseLabelSelector } from '../../graph/resolve-selector.js';

/** Returns what `read` makes of the text of a flag or argument. Throws UsageError that names it and the text. */
export function readValue<T>(name: string, text: string, read: (text: string) => T): T {
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw invalidValue(name, text, error.message, { hint: error.hint });
  }
}

/** Reads a whole number above 0. */
export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value <= 0) throw new UsageError('expected a whole number above 0');
  return value;
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

/** Reads a whole number from 0. */
export function retryCount(text: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw new UsageError('expected a whole number from 0');
  return value;
}

/** Reads a whole number from 1 to 10. */
export function upToTen(text: string): number {
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= 10) return value;
  throw new UsageError('expected a whole number from 1 to 10');
}

/** Reads a duration such as `30s` or `1m30s`, by default in seconds; returns milliseconds. */
export function milliseconds(text: string): number {
  const value = parseGoDuration(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text);
  if (value !== undefined) return value;
  throw new UsageError('expected a duration such as 30s or 2m');
}

/** Reads a duration above 0; returns milliseconds. */
export function positiveMilliseconds(text: string): number {
  const value = milliseconds(text);
  if (value > 0) return value;
  throw new UsageError('expected a duration above 0, such as 10m');
}

/** Returns the trimmed, nonempty items of a comma-separated list. */
export function getItems(value: string): string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** Reads the value of `--selector`. Throws UsageError. */
export function labelSelector(text: string): LabelSelector {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw new UsageError(`--${error.message}`, { hint: error.hint });
  }
}
