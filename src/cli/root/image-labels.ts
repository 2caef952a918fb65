import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';

/** Reads `key=value` pairs, also comma-separated; the last of a key takes precedence. Throws UsageError. */
export function parseLabels(values: readonly string[]): Map<string, string> {
  const labels = new Map<string, string>();
  for (const pair of values.flatMap((value) => value.split(','))) {
    const equals = pair.indexOf('=');
    if (equals < 0) {
      throw new UsageError(`invalid label ${quoteGo(pair)}`, { hint: 'use key=value' });
    }
    labels.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
  return labels;
}
