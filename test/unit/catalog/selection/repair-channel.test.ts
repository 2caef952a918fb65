import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Version, parseRange, parseVersion } from '../../../../src/core/semver.js';
import { repairChannel } from '../../../../src/catalog/selection/repair-channel.js';
import type { ChannelEntry } from '../../../../src/model/declarative-config.js';
import { describeGraphFault, readGraph } from '../../../../src/model/graph.js';

/** An entry as `name replaces skips… <skipRange>`; names are versions without their zeros. */
function entryOf(text: string): ChannelEntry {
  const [, names = '', skipRange = ''] = /^([^<>]*?) ?(>.*)?$/.exec(text) ?? [];
  const [name = '', replaces = '-', ...skips] = names.split(' ');
  return { name, replaces: replaces === '-' ? '' : replaces, skips, skipRange };
}

function textOf({ name, replaces, skips, skipRange }: ChannelEntry): string {
  return [name, replaces || '-', ...skips, ...(skipRange === '' ? [] : [skipRange])]
    .join(' ')
    .replace(/ -$/, '');
}

const versionOf = (name: string): Version => parseVersion(`${name}.0.0`.split('.').slice(0, 3).join('.'));

function versionsOf(entries: readonly ChannelEntry[]): Map<string, Version> {
  return new Map(entries.map(({ name }) => [name, versionOf(name)]));
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

/** The names from which the head is reached, in the plainest way. */
function reaching(entries: readonly ChannelEntry[], head: string): Set<string> {
  const found = new Set([head]);
  for (let size = 0; size !== found.size;) {
    size = found.size;
    for (const { name, replaces, skips, skipRange } of entries) {
      if (!found.has(name)) continue;
      for (const other of entries) {
        const isInRange = skipRange !== '' && parseRange(skipRange).contains(versionOf(other.name));
        if (replaces === other.name || skips.includes(other.name) || isInRange) found.add(other.name);
      }
    }
  }
  return found;
}

/** Channels as they may come: a chain, entries beside it that some entry skips, ranges, and names that are nowhere. */
const channels = fc
  .record({
    size: fc.integer({ min: 1, max: 9 }),
    links: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
  })
  .map(({ size, links }) => {
    let at = 0;
    const pick = (most: number): number => (links[at++ % links.length] as number) % most;
    const names = Array.from({ length: size }, (_, minor) => `1.${minor}`);
    const nowhere = ['0.1', '0.2', ''];
    const some = (): string => [...names, ...nowhere][pick(size + nowhere.length)] as string;
    return names.map((name): ChannelEntry => {
      const skips = Array.from({ length: pick(3) }, some).filter((one) => one !== '');
      const below = pick(size + 1);
      const skipRange = pick(4) === 0 ? `>=1.${pick(below + 1)}.0 <1.${below}.0` : '';
      return { name, replaces: some(), skips, skipRange };
    });
  });

/** Mostly sound ones: the last entry leads a chain, what is not on it is skipped by a later one. */
const orderly = fc
  .array(fc.record({ onChain: fc.boolean(), by: fc.nat(), also: fc.nat(), range: fc.nat(), to: fc.nat() }), {
    minLength: 1,
    maxLength: 10,
  })
  .map((plan) => {
    const entries = plan.map((_, minor): ChannelEntry => {
      return { name: `1.${minor}`, replaces: '', skips: [], skipRange: '' };
    });
    const last = entries.length - 1;
    let below = '';
    for (const [at, { onChain, by, also, range, to }] of plan.entries()) {
      const entry = entries[at] as ChannelEntry;
      if (onChain || at === last) {
        entry.replaces = below;
        below = entry.name;
      } else {
        entries[at + 1 + (by % (last - at))]?.skips.push(entry.name);
        if (also % 3 > 0) entry.replaces = `1.${also % entries.length}`;
      }
      if (range % 3 === 0) entry.skipRange = `>=1.${range % (at + 1)}.0 <1.${at}.0`;
      if (to % 4 === 0) entry.skips.push(`0.${to % 5}`);
    }
    return entries;
  });

describe('mirror/repair-channel', () => {
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
      changes: ['"1.2" skips "1.0"'],
    });
    expect(repair(texts, ['1.1', '1.2'])).toEqual({
      left: ['1.0', '1.3 - 1.2 1.1 1.0'],
      changes: ['"1.3" no longer replaces "1.2" and skips "1.0"'],
    });
  });

  it('makes the highest version of those that are left the head', () => {
    expect(repair(['1.0', '1.1 1.0', '1.2 1.1'], ['1.2'])).toEqual({
      left: ['1.0', '1.1 1.0'],
      changes: ['its head is "1.1" now, since "1.2" is left out'],
    });
    expect(repair(['1.0', '1.1', '1.2', '1.3 1.0 1.1 1.2'], ['1.3'])).toEqual({
      left: ['1.0', '1.1', '1.2 1.0 1.1'],
      changes: ['its head is "1.2" now, since "1.3" is left out', '"1.2" replaces "1.0" and skips "1.1"'],
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

  it.each([
    ['orderly', orderly],
    ['any', channels],
  ])('leaves %s valid channels valid, and every way to the head', (_, arbitrary) => {
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
