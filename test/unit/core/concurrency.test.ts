import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { onAbort } from '../../../src/core/concurrency.js';

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
