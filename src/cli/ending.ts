import type { Logger } from '../core/log.js';
import type { ClosableLogger } from './logger.js';
import { getPlaceholder, longName } from './command/command-line.js';
import type { Flags } from './command/flags.js';
import { countMore, shellWord } from './printable.js';

/** Maximum lines of one kind in a summary. */
const maxItems = 3;

/** Ends a long command: clears the progress line, logs a summary and the command that usually follows. */
export function reportEnding(logger: ClosableLogger, summary: readonly string[], next?: string): void {
  logger.close();
  for (const line of summary) logger.log('info', line);
  if (next !== undefined) logger.log('info', `next: ${next}`);
}

/**
 * Returns the set flags for a proposed command, each after a space; a placeholder for a secret, and nothing for a flag
 * with its default.
 */
export function formatFlags(flags: Flags, values: object): string {
  const given = new Map<string, unknown>(Object.entries(values));
  const words = Object.entries(flags).flatMap(([key, flag]) => {
    const value = given.get(key);
    const name = flag.short === undefined ? longName(key) : `-${flag.short}`;
    if (value === undefined || value === (flag.default ?? false) || typeof value === 'function') return [];
    if (typeof value === 'boolean') return [value ? name : `${name}=false`];
    const isSecret = /password|token/.test(flag.value ?? '');
    const text = flag.value === '<duration>' ? `${Number(value) / 1000}s` : value;
    return [text].flat().flatMap((item) => [name, isSecret ? getPlaceholder(flag) : String(item)]);
  });
  return words.map((word) => ` ${shellWord(word)}`).join('');
}

/** Returns the first items and the number of others; all items if debug messages are shown. */
export function summarizeItems(
  items: readonly string[],
  noun: string,
  logger: Pick<Logger, 'shows'>,
): readonly string[] {
  if (items.length <= maxItems || (logger.shows?.('debug') ?? true)) return items;
  const shown = items.slice(0, maxItems - 1);
  return [...shown, `… and ${countMore(items.length - shown.length, noun)}; --verbose lists all`];
}
