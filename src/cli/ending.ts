import type { Logger } from '../core/log.js';
import type { ClosableLogger } from './logger.js';
import { countMore } from './printable.js';

/** Maximum lines of one kind in a summary. */
const maxItems = 3;

/** Ends a long command: clears the progress line, logs a summary and the command that usually follows. */
export function reportEnding(logger: ClosableLogger, summary: readonly string[], next?: string): void {
  logger.close();
  for (const line of summary) logger.log('info', line);
  if (next !== undefined) logger.log('info', `next: ${next}`);
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
