import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repairChannel } from '../../../../src/catalog/selection/repair-channel.js';
import type { ChannelEntry } from '../../../../src/model/declarative-config.js';
import { describeGraphFault, readGraph } from '../../../../src/graph/channel-graph.js';
import { entryOf, randomChannels, reaching, versionsOf } from './channels.js';

function textOf({ name, replaces, skips, skipRange }: ChannelEntry): string {
  return [name, replaces || '-', ...skips, ...(skipRange === '' ? [] : [skipRange])]
    .join(' ')
    .replace(/ -$/, '');
}

function repair(texts: string[], gone: string[]) {
  const entries = texts.map(entryOf);
  expect(describeGraphFault(readGraph(entries))).toBeUndefined();
  const repaired = repairChannel(entries, new Set(gone), versionsOf(entries));
  if (repaired.entries.length > 0) {
    expect(describeGraphFault(readGraph(repaired.entries))).toBeUndefined();
  }
  return { left: repaired.entries.map(textOf), changes: repaired.changes };
}

describe('catalog/selection/repair-channel', () => {
  it('leads past an entry that is gone', () => {
    expect(repair(['1.0', '1.1 1.0', '1.2 1.1'], ['1.1'])).toEqual({
      left: ['1.0', '1.2 1.0 1.1'],
      changes: ['"1.2" replaces "1.0" in place of "1.1"'],
    });
    // Several in a row, with what they skipped; the last of them had replaced what is not in the catalog.
    expect(repair(['1.0 0.9', '1.1 1.0 0.8', '1.2 1.1'], ['1.0', '1.1'])).toEqual({
      left: ['1.2 0.9 1.1 0.8 1.0'],
      changes: ['"1.2" replaces "0.9" in place of "1.1"'],
    });
  });

  it('takes over the range that an entry skipped, where it adds to its own', () => {
    const range = '>=1.0.0 <1.2.0';
    expect(repair(['1.0', `1.2 1.0 ${range}`, '1.3 1.2'], ['1.2']).left[1]).toBe(`1.3 1.0 1.2 ${range}`);
    expect(repair(['1.0', `1.2 1.0 ${range}`, `1.3 1.2 ${range}`], ['1.2']).left[1]).toBe(
      `1.3 1.0 1.2 ${range}`,
    );
    const both = repair(['1.0', `1.2 1.0 ${range}`, '1.3 1.2 >=0.5.0'], ['1.2']).left[1];
    expect(both).toBe(`1.3 1.0 1.2 >=0.5.0 || ${range}`);
  });

  it('keeps the way of what only a skipped entry led on from', () => {
    // 1.0 goes to 1.1 alone, which is skipped.
    const texts = ['1.0', '1.1 - 1.0', '1.2 - 1.1', '1.3 1.2'];
    expect(repair(texts, ['1.1'])).toEqual({
      left: ['1.0', '1.2 - 1.1 1.0', '1.3 1.2'],
      changes: ['"1.2" now skips "1.0"'],
    });
    expect(repair(texts, ['1.1', '1.2'])).toEqual({
      left: ['1.0', '1.3 - 1.2 1.1 1.0'],
      changes: ['"1.3" no longer replaces "1.2", and now skips "1.0"'],
    });
  });

  it('makes the highest version of those that are left the head', () => {
    expect(repair(['1.0', '1.1 1.0', '1.2 1.1'], ['1.2'])).toEqual({
      left: ['1.0', '1.1 1.0'],
      changes: ['head is now "1.1"; "1.2" is omitted'],
    });
    expect(repair(['1.0', '1.1', '1.2', '1.3 1.0 1.1 1.2'], ['1.3'])).toEqual({
      left: ['1.0', '1.1', '1.2 1.0 1.1'],
      changes: ['head is now "1.2"; "1.3" is omitted', '"1.2" replaces "1.0", and now skips "1.1"'],
    });
  });

  it('opens a circle that only what is gone had made harmless', () => {
    expect(repair(['1.0 1.1', '1.1 1.0', '1.2 - 1.0 1.1'], ['1.2']).left).toEqual(['1.0', '1.1 1.0']);
    expect(repair(['1.0 1.1', '1.1 1.0', '1.2 1.0', '1.3 - 1.0 1.1 1.2'], ['1.3']).left).toEqual([
      '1.0 1.1',
      '1.1',
      '1.2 1.0',
    ]);
  });

  it('has nothing to do, or nothing left', () => {
    expect(repair(['1.0', '1.1 1.0'], ['0.9'])).toEqual({ left: ['1.0', '1.1 1.0'], changes: [] });
    expect(repair(['1.0', '1.1 1.0'], ['1.0', '1.1'])).toEqual({ left: [], changes: [] });
  });

  it.each(randomChannels)('leaves %s valid channels valid, and every way to the head', (_, arbitrary) => {
    let looked = 0;
    fc.assert(
      fc.property(arbitrary, fc.infiniteStream(fc.boolean()), (entries, dice) => {
        const graph = readGraph(entries);
        fc.pre(describeGraphFault(graph) === undefined);
        looked++;
        const gone = new Set(entries.filter(() => dice.next().value === true).map(({ name }) => name));
        const { entries: left } = repairChannel(entries, gone, versionsOf(entries));
        expect(left.map(({ name }) => name)).toEqual(
          entries.map(({ name }) => name).filter((name) => !gone.has(name)),
        );
        if (left.length === 0) return;
        const after = readGraph(left);
        expect(describeGraphFault(after)).toBeUndefined();
        const had = reaching(entries, graph.heads[0] as string);
        const has = reaching(left, after.heads[0] as string);
        for (const { name } of left) if (had.has(name)) expect(has).toContain(name);
        const isHeadKept = !gone.has(graph.heads[0] as string);
        if (isHeadKept) expect(after.heads).toEqual(graph.heads);
      }),
      { numRuns: 1000, maxSkipsPerRun: 1000 },
    );
    expect(looked).toBeGreaterThan(900);
  });
});
