import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../../src/core/limiter.js';

describe('core/limiter', () => {
  it('runs no more than it may at a time, in order, whatever fails', async () => {
    const limit = createLimiter(2);
    const ends: (() => void)[] = [];
    const begun: number[] = [];
    const work = [0, 1, 2, 3].map((i) =>
      limit(async () => {
        begun.push(i);
        await new Promise<void>((resolve) => ends.push(resolve));
        if (i === 0) throw new Error('failed');
        return i;
      }),
    );
    const outcomes = Promise.allSettled(work);
    await new Promise(setImmediate);
    expect(begun).toEqual([0, 1]);
    ends[0]?.();
    await new Promise(setImmediate);
    expect(begun).toEqual([0, 1, 2]);
    ends[1]?.();
    ends[2]?.();
    await new Promise(setImmediate);
    expect(begun).toEqual([0, 1, 2, 3]);
    ends[3]?.();
    expect((await outcomes).map(({ status }) => status)).toEqual([
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
  });
});
