import { describe, expect, it } from 'vitest';
import { decideRetry } from '../../../../src/oci/transport/retry-policy.js';

describe('oci/retry-policy', () => {
  const budget = { timeoutMs: 60_000, baseDelayMs: 500 };
  const failed = { attempt: 1, elapsedMs: 0, jitter: 1 };

  it('doubles the wait from one attempt to the next, up to eight times the first', () => {
    const waits = [1, 2, 3, 4, 5, 20].map((attempt) => decideRetry({ ...failed, attempt }, budget));
    expect(waits).toEqual([500, 1000, 2000, 4000, 4000, 4000].map((waitMs) => ({ waitMs })));
    expect(decideRetry({ ...failed, jitter: 0 }, budget)).toEqual({ waitMs: 250 });
    expect(decideRetry({ ...failed, status: 429 }, budget)).toEqual({ waitMs: 2000 });
  });

  it('obeys Retry-After within the time', () => {
    expect(decideRetry({ ...failed, retryAfterMs: 20_000 }, budget)).toEqual({ waitMs: 20_000 });
    expect(decideRetry({ ...failed, retryAfterMs: 1 }, budget)).toEqual({ waitMs: 500 });
    expect(decideRetry({ ...failed, retryAfterMs: 61_000 }, budget)).toEqual({ giveUp: 'longer requested' });
  });

  it('ends with the time, and with the attempts where they are limited', () => {
    expect(decideRetry({ ...failed, attempt: 99, elapsedMs: 50_000 }, budget)).toEqual({ waitMs: 4000 });
    expect(decideRetry({ ...failed, attempt: 99, elapsedMs: 58_000 }, budget)).toEqual({ waitMs: 1500 });
    expect(decideRetry({ ...failed, attempt: 99, elapsedMs: 59_500 }, budget)).toEqual({ giveUp: 'time' });
    expect(decideRetry({ ...failed, attempt: 2 }, { ...budget, maxAttempts: 2 })).toEqual({
      giveUp: 'attempts',
    });
  });
});
