import { InvalidArgumentError } from 'commander';
import { OpmateError, UsageError } from '../../core/errors.js';
import { type LabelSelector, parseLabelSelector } from '../../graph/resolve-selector.js';

/** A whole number above 0. */
export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value <= 0)
    throw new InvalidArgumentError('expected a whole number above 0');
  return value;
}

const sizeUnits: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** Bytes, or a number with `K`, `M`, `G` or `T` (also `Ki`, `KiB` …) for powers of 1024. */
export function byteSize(text: string): number {
  const match = /^(\d+)([kmgt]?)(?:i?b?)$/i.exec(text);
  const size =
    match === null ? Number.NaN : Number(match[1]) * (sizeUnits[(match[2] ?? '').toLowerCase()] ?? 1);
  if (!Number.isSafeInteger(size) || size <= 0)
    throw new InvalidArgumentError('expected a size such as 500M or 8G');
  return size;
}

const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A duration such as `30s`, in milliseconds. */
export function milliseconds(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text);
  if (match === null) throw new InvalidArgumentError('expected a duration such as 30s or 2m');
  return Number(match[1]) * (durationUnits[match[2] ?? 's'] ?? 1_000);
}

/** The items of a list separated by commas; blanks around an item and empty items are dropped. */
export function itemsOf(value: string): string[] {
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
