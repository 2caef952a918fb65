/** What may be tried again, how often and when: rules without timers or HTTP of their own. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CancelOptions } from '../../core/concurrency.js';
import { getMessage, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';

/** Responses of 500 and above that another attempt does not change: the server lacks the function or the space. */
const lastingFaults: readonly number[] = [501, 505, 506, 507, 508, 510, 511];

/** Whether the same request may succeed a little later: after 408, 425, 429, and 5xx of servers and of front ends. */
export function isRetryStatus(status: number): boolean {
  if ([408, 425, 429].includes(status)) return true;
  return status >= 500 && status < 600 && !lastingFaults.includes(status);
}

/** How much a request may be retried. The time is the budget; attempts are limited only where that is asked for. */
export interface RetryBudget {
  /** No attempt begins later than this after the first. */
  timeoutMs: number;
  /** How often a request is tried in all; as often as the time allows when left out. */
  maxAttempts?: number | undefined;
  /** The wait after the first failure; doubles from one to the next up to eight times, four times as long after 429. */
  baseDelayMs: number;
  /** The same wait after each failure, in place of one that doubles. */
  constantDelayMs?: number | undefined;
}

/** A failed attempt. */
interface FailedAttempt {
  /** From 1. */
  attempt: number;
  /** Since the first attempt began. */
  elapsedMs: number;
  /** Status of the answer, if there was one. */
  status?: number | undefined;
  /** How long the answer asks to wait. */
  retryAfterMs?: number | undefined;
  /** From 0 to 1. */
  jitter: number;
}

/** When to try again, or why not. */
type RetryDecision = { waitMs: number } | { giveUp: 'attempts' | 'time' | 'asked for longer' };

const maxBackoff = 8;

/** Decides what follows a failed attempt. `Retry-After` is obeyed, and ends it at once beyond the time. */
export function decideRetry(failed: FailedAttempt, budget: RetryBudget): RetryDecision {
  const { attempt, elapsedMs, status, retryAfterMs, jitter } = failed;
  const left = budget.timeoutMs - elapsedMs;
  if (retryAfterMs !== undefined && retryAfterMs > left) return { giveUp: 'asked for longer' };
  if (attempt >= (budget.maxAttempts ?? Infinity)) return { giveUp: 'attempts' };
  const factor = Math.min(maxBackoff, 2 ** (attempt - 1)) * (status === 429 ? 4 : 1);
  const backoffMs = budget.constantDelayMs ?? budget.baseDelayMs * factor * (0.5 + jitter / 2);
  // Towards the end waits get shorter, so that the time is used and leaves some for an answer.
  const lastMs = left * 0.75;
  if (backoffMs > left && lastMs < budget.baseDelayMs) return { giveUp: 'time' };
  return { waitMs: Math.max(retryAfterMs ?? 0, backoffMs > left ? lastMs : backoffMs) };
}

/** How often content that arrives damaged is read in all, and a manifest put whose content the target lacks. */
export const maxContentAttempts = 3;

/** Whether content came that is not what was asked for: a flipped bit, a wrong length, the page of a portal. */
function isDamaged(error: unknown): boolean {
  return error instanceof OpmateError && error.code === 'DIGEST';
}

/** Does work again, from its beginning, when the content that it read came damaged; three times in all. */
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

/** Waits before content is read or put again: 100 ms, doubling. */
export async function pauseBeforeAttempt(attempt: number, { signal }: CancelOptions): Promise<void> {
  await pause(100 * 2 ** (attempt - 2), signal);
}

/** Waits. Throws CancelledError when `signal` fires. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  throwIfCancelled(signal);
  try {
    await sleep(ms, undefined, signal ? { signal } : {});
  } catch (error) {
    throwIfCancelled(signal);
    throw error;
  }
}
