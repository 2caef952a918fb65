import { CancelledError, OpmateError, getMessage } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';

/** Options of repeated work. */
export interface WatchOptions {
  intervalMs: number;
  /** Resolves after this time, or as soon as `signal` is aborted. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  logger: Logger;
  signal: AbortSignal;
}

const firstDelayMs = 10_000;
const longestDelayMs = 15 * 60_000;

/** Returns the delay after consecutive failures: from 10 s, doubled each time, to 15 min. */
export function delayAfter(failures: number, intervalMs: number): number {
  const longest = Math.max(intervalMs, longestDelayMs);
  return Math.min(longest, Math.min(intervalMs, firstDelayMs) * 2 ** Math.min(failures - 1, 30));
}

/**
 * Repeats `work` until `signal` is aborted, with a pause after each run, or that of `delayAfter` after a failure,
 * which is logged. Usage errors and defects end it.
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
