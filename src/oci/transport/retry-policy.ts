/** Rules for retries, without timers or HTTP. */
import { type CancelOptions, sleep } from '../../core/concurrency.js';
import { getMessage, OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';

/** Statuses of 500 and above for which another attempt is useless. */
const lastingFaults: readonly number[] = [501, 505, 506, 507, 508, 510, 511];

/** Reports whether a request may succeed later: after 408, 425, 429, and most 5xx. */
export function isRetryStatus(status: number): boolean {
  if ([408, 425, 429].includes(status)) return true;
  return status >= 500 && status < 600 && !lastingFaults.includes(status);
}

/** Limits of retries. */
export interface RetryBudget {
  /** Time after the first attempt in which further ones begin. */
  timeoutMs: number;
  /** Default: unlimited. */
  maxAttempts?: number | undefined;
  /** Delay after the first failure, doubled up to eight times as long; four times as long after 429. */
  baseDelayMs: number;
  /** Constant delay, in place of doubling. */
  constantDelayMs?: number | undefined;
}

interface FailedAttempt {
  /** One-based. */
  attempt: number;
  /** Time since the first attempt began. */
  elapsedMs: number;
  /** Status of the response, if any. */
  status?: number | undefined;
  /** Delay that the response requests. */
  retryAfterMs?: number | undefined;
  /** From 0 to 1. */
  jitter: number;
}

/** Delay before the next attempt, or the reason for none. */
type RetryDecision = { waitMs: number } | { giveUp: 'attempts' | 'time' | 'longer requested' };

const maxBackoff = 8;

/** Decides about another attempt. `Retry-After` is obeyed; beyond the time limit, it ends the retries. */
export function decideRetry(failed: FailedAttempt, budget: RetryBudget): RetryDecision {
  const { attempt, elapsedMs, status, retryAfterMs, jitter } = failed;
  const left = budget.timeoutMs - elapsedMs;
  if (retryAfterMs !== undefined && retryAfterMs > left) return { giveUp: 'longer requested' };
  if (attempt >= (budget.maxAttempts ?? Infinity)) return { giveUp: 'attempts' };
  const factor = Math.min(maxBackoff, 2 ** (attempt - 1)) * (status === 429 ? 4 : 1);
  const backoffMs = budget.constantDelayMs ?? budget.baseDelayMs * factor * (0.5 + jitter / 2);
  // Delays get shorter towards the end, which leaves time for a response.
  const lastMs = left * 0.75;
  if (backoffMs > left && lastMs < budget.baseDelayMs) return { giveUp: 'time' };
  return { waitMs: Math.max(retryAfterMs ?? 0, backoffMs > left ? lastMs : backoffMs) };
}

/** Maximum attempts to read damaged content, and to store a manifest whose content the target lacks. */
export const maxContentAttempts = 3;

/** Maximum attempts in a row to read content whose connection breaks, without progress. */
export const maxBrokenAttempts = 5;

/** Reports whether content is damaged: a flipped bit, a wrong length, the page of a portal. */
export function isDamaged(error: unknown): boolean {
  return error instanceof OpmateError && error.code === 'DIGEST';
}

/** Repeats work that read damaged content, three attempts in all. */
export async function retryDamaged<T>(
  work: () => Promise<T>,
  options: CancelOptions & { logger?: Logger | undefined },
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= maxContentAttempts || !isDamaged(error)) throw error;
      options.logger?.log('debug', `${getMessage(error)}; reading it again`);
      await pauseBeforeAttempt(attempt + 1, options);
    }
  }
}

/** Waits before content is read or stored again: 100 ms, doubling. */
export async function pauseBeforeAttempt(attempt: number, { signal }: CancelOptions): Promise<void> {
  await sleep(100 * 2 ** (attempt - 2), signal);
}
