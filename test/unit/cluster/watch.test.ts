import { describe, expect, it } from 'vitest';
import { CancelledError, OpmateError, UsageError } from '../../../src/core/errors.js';
import { silentLogger } from '../../../src/core/log.js';
import { delayAfter, watch } from '../../../src/api/deployment/watch-deployments.js';

/** Runs `work` this many times; gives the pauses and what was logged. */
async function pausesOf(
  times: number,
  work: (round: number) => Promise<void>,
): Promise<{ pauses: number[]; logged: string[] }> {
  const cancel = new AbortController();
  const pauses: number[] = [];
  const logged: string[] = [];
  const options: Parameters<typeof watch>[1] = {
    intervalMs: 300_000,
    logger: { ...silentLogger, log: (_level, message) => void logged.push(message) },
    signal: cancel.signal,
    sleep: (ms) => {
      pauses.push(ms);
      if (pauses.length === times) cancel.abort();
      return Promise.resolve();
    },
  };
  let round = 0;
  await watch(() => work(++round), options);
  return { pauses, logged };
}

describe('cluster/watch', () => {
  it('waits longer after each consecutive failure, and the usual time after a success', async () => {
    const { pauses, logged } = await pausesOf(6, (round) =>
      round === 5 ? Promise.resolve() : Promise.reject(new OpmateError('NETWORK', 'not reached')),
    );
    expect(pauses).toEqual([10_000, 20_000, 40_000, 80_000, 300_000, 10_000]);
    expect(logged[1]).toBe('not reached: tried again in 20 s');
  });

  it('waits at most 15 minutes, or the interval', () => {
    expect(delayAfter(1000, 300_000)).toBe(900_000);
    expect(delayAfter(1000, 3_600_000)).toBe(3_600_000);
    expect(delayAfter(1, 1000)).toBe(1000);
  });

  it.each([new UsageError('wrong'), new CancelledError(), new TypeError('a defect')])(
    'ends with what trying again does not mend: %s',
    async (error) => {
      await expect(pausesOf(3, () => Promise.reject(error))).rejects.toBe(error);
    },
  );
});
