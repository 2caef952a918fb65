import { CancelledError, OpmateError, getMessage } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';

/** How something is done again and again. */
export interface WatchOptions {
  intervalMs: number;
  /** Resolves after this time, or as soon as `signal` fires. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  logger: Logger;
  signal: AbortSignal;
}

const firstDelayMs = 10_000;
const longestDelayMs = 15 * 60_000;

/** How long to wait after this many failures in a row: twice as long each time, from 10 s, to 15 min. */
export function delayAfter(failures: number, intervalMs: number): number {
  const longest = Math.max(intervalMs, longestDelayMs);
  return Math.min(longest, Math.min(intervalMs, firstDelayMs) * 2 ** Math.min(failures - 1, 30));
}

/**
 * Does `work` until `signal` fires, with a pause after each time; after a failure, which is logged, the pause is that
 * of `delayAfter`. Wrong usage and defects end it.
 */
export async function watch(work: () => Promise<void>, options: WatchOptions): Promise<void> {
  const { intervalMs, sleep, logger, signal } = options;
  let failures = 0;
  while (!signal.aborted) {
    let delay = intervalMs;
    try {
      await work();
      failures = 0;
    } catch (error) {
      if (error instanceof CancelledError) throw error;
      if (!(error instanceof OpmateError) || error.code === 'USAGE' || error.code === 'INTERNAL') throw error;
      failures++;
      delay = delayAfter(failures, intervalMs);
      logger.log('error', `${getMessage(error)}: tried again in ${Math.ceil(delay / 1000)} s`);
    }
    await sleep(delay, signal);
  }
}
