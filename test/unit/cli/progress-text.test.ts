import { describe, expect, it } from 'vitest';
import { type RunningTask, describeProgress, withEvent } from '../../../src/cli/progress-text.js';
import type { ProgressEvent } from '../../../src/core/log.js';

/** What a terminal shows after events, each with its time. */
function shownAfter(...events: readonly (readonly [at: number, event: ProgressEvent])[]): string {
  let running: ReadonlyMap<string, RunningTask> = new Map();
  for (const [at, event] of events) running = withEvent(running, event, at);
  return describeProgress(running.values(), events.at(-1)?.[0] ?? 0);
}

const mib = 1024 * 1024;
const bytes = (current: number, total: number): ProgressEvent => ({
  task: 'mirror',
  state: 'update',
  current,
  total,
  unit: 'bytes',
});

describe('cli/progress-text', () => {
  it('shows percent, rate, time left and what is under way', () => {
    expect(
      shownAfter(
        [0, bytes(0, 100 * mib)],
        [100, { task: 'copy a', state: 'start' }],
        [200, { task: 'copy b', state: 'start' }],
        [4000, bytes(20 * mib, 100 * mib)],
      ),
    ).toBe('mirror 20%, 20 MiB of 100 MiB, 5.0 MiB/s, 16s left · copy b (and 1 more)');
  });

  it('measures the rate from what was there when the work began', () => {
    expect(shownAfter([0, bytes(50 * mib, 100 * mib)], [2000, bytes(60 * mib, 100 * mib)])).toBe(
      'mirror 60%, 60 MiB of 100 MiB, 5.0 MiB/s, 8s left',
    );
    expect(
      shownAfter(
        [0, { task: 'mirror', state: 'start' }],
        [9000, bytes(mib, 4 * mib)],
        [10_000, bytes(2 * mib, 4 * mib)],
      ),
    ).toBe('mirror 50%, 2.0 MiB of 4.0 MiB, 1.0 MiB/s, 2s left');
  });

  it.each([
    [59_000, '59s'],
    [200_000, '3m20s'],
    [7_500_000, '2h05m'],
  ])('shows %d ms as %s', (left, text) => {
    const total = left + 1000;
    const items = (current: number): ProgressEvent => ({ task: 'read', state: 'update', current, total });
    expect(shownAfter([0, items(0)], [1000, items(1000)])).toContain(`, ${text} left`);
  });

  it('says nothing of a rate that is not known', () => {
    expect(shownAfter([0, bytes(0, 10)], [500, bytes(5, 10)])).toBe('mirror 50%, 5 bytes of 10 bytes');
    expect(shownAfter([0, bytes(5, 10)], [5000, bytes(5, 10)])).toBe('mirror 50%, 5 bytes of 10 bytes');
    expect(shownAfter([0, { task: 'pull x', state: 'start' }])).toBe('pull x');
    expect(shownAfter([0, { task: 'read', state: 'update', current: 7, unit: 'items' }])).toBe('read 7');
    expect(shownAfter([0, bytes(0, 0)])).toBe('mirror 100%, 0 bytes of 0 bytes');
  });

  it('forgets work that is done', () => {
    expect(shownAfter([0, bytes(1, 2)], [1, { task: 'mirror', state: 'done' }])).toBe('working');
  });

  it('names the part under way within the width of the terminal', () => {
    const item = `registry.example.com/${'team/'.repeat(20)}widget:v1.0.0`;
    const event: ProgressEvent = { ...bytes(20 * mib, 100 * mib), item };
    const running = withEvent(new Map(), event, 0);
    const show = (width?: number): string => describeProgress(running.values(), 0, width);
    const start = 'mirror 20%, 20 MiB of 100 MiB';
    expect(show()).toBe(`${start} · ${item}`);
    expect(show(60)).toMatch(/^mirror 20%, 20 MiB of 100 MiB · ….*team\/widget:v1\.0\.0$/);
    for (let width = 1; width < 200; width++) expect(show(width).length).toBeLessThanOrEqual(width);
    expect(show(40)).toBe(start);
    const other: ProgressEvent = { task: 'pull x', state: 'start' };
    expect(describeProgress(withEvent(running, other, 0).values(), 0)).toBe(
      `${start} · ${item} (and 1 more)`,
    );
  });

  it('shows names without control characters and credentials', () => {
    const event: ProgressEvent = { ...bytes(1, 2), item: 'a.io/\u001b[31mred\nline:v1' };
    expect(shownAfter([0, event])).not.toMatch(/[\u0000-\u001f]/);
    const secret: ProgressEvent = { task: 'pull https://user:hunter2@a.io/b', state: 'start' };
    expect(shownAfter([0, secret])).not.toContain('hunter2');
  });
});
