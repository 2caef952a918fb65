import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { mapConcurrent, onAbort, takeTurn } from '../../../src/core/concurrency.js';

describe('core/concurrency: onAbort', () => {
  it('calls once, at once when it is too late to wait, and never without a signal', () => {
    const controller = new AbortController();
    const calls: string[] = [];
    onAbort(undefined, () => calls.push('none'))();
    onAbort(controller.signal, () => calls.push('waiting'));
    onAbort(controller.signal, () => calls.push('taken off'))();
    expect(calls).toEqual([]);
    controller.abort();
    onAbort(controller.signal, () => calls.push('late'));
    expect(calls).toEqual(['waiting', 'late']);
  });

  it('lets any number wait without a warning, and leaves nothing behind', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    const { signal } = new AbortController();
    const off = Array.from({ length: 30 }, () => onAbort(signal, () => undefined));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', note);
    expect(warnings).toEqual([]);
    for (const each of off) each();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('core/concurrency: takeTurn', () => {
  const keepLoop = (): void => {
    for (const start = performance.now(); performance.now() - start < 25;);
  };

  it('goes on at once after short work, and lets others go first after long work', async () => {
    await takeTurn();
    keepLoop();
    await takeTurn();
    expect(takeTurn()).toBeUndefined();
    const order: string[] = [];
    keepLoop();
    setImmediate(() => order.push('other'));
    await takeTurn();
    order.push('work');
    expect(order).toEqual(['other', 'work']);
  });

  it('lets one of several long works go on per turn of the event loop', async () => {
    keepLoop();
    let turn = 0;
    const turns: number[] = [];
    const works = [1, 2, 3].map(async () => {
      await takeTurn();
      turns.push(turn);
    });
    const count = (): void => {
      turn++;
      if (turn < 10) setImmediate(count);
    };
    setImmediate(count);
    await Promise.all(works);
    expect(new Set(turns).size).toBe(3);
  });
});

describe('core/concurrency: mapConcurrent', () => {
  it('throws the failure, not the aborts that it causes, whichever comes first', async () => {
    const abort = new AbortController();
    const work = async (item: string): Promise<void> => {
      if (item === 'aborted') throw new DOMException('This operation was aborted', 'AbortError');
      await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      throw new Error(item);
    };
    await expect(mapConcurrent(['aborted', 'disk full', 'aborted'], 3, work)).rejects.toThrow('disk full');
    await expect(mapConcurrent(['aborted'], 3, work)).rejects.toThrow('This operation was aborted');
  });
});
