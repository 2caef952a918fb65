import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChannelWays } from '../../../../src/catalog/selection/keep-ways.js';
import { describeGraphFault, readGraph } from '../../../../src/graph/channel-graph.js';
import { entriesOf, randomChannels, reaching, versionsOf } from './channels.js';

function keep(texts: string[], asked: string[]) {
  const entries = entriesOf(texts);
  expect(describeGraphFault(readGraph(entries))).toBeUndefined();
  const { names, reasons } = new ChannelWays(entries, versionsOf(entries)).keep(new Set(asked));
  const left = entries.filter(({ name }) => names.has(name));
  expect(describeGraphFault(readGraph(left))).toBeUndefined();
  expect([...reasons.keys()].sort()).toEqual([...names].filter((name) => !asked.includes(name)).sort());
  return { names: left.map(({ name }) => name), reasons: Object.fromEntries(reasons) };
}

describe('catalog/selection/keep-ways', () => {
  const chain = ['1.0', '1.1 1.0', '1.2 1.1', '1.3 1.2'];

  it('keeps what stands between', () => {
    expect(keep(chain, ['1.0', '1.2'])).toEqual({
      names: ['1.0', '1.1', '1.2'],
      reasons: { '1.1': 'is on the upgrade path from "1.0" to the head "1.2"' },
    });
    expect(keep(chain, ['1.1', '1.2']).names).toEqual(['1.1', '1.2']);
    expect(keep(chain, ['1.0']).names).toEqual(['1.0']);
    expect(keep(chain, ['1.0', '1.1', '1.2', '1.3']).names).toHaveLength(4);
  });

  it('takes the shortest way', () => {
    expect(keep(['1.0', '1.1 1.0', '1.2 1.1 1.0'], ['1.0', '1.2']).names).toEqual(['1.0', '1.2']);
  });

  it('does not take a range for what a valid channel needs', () => {
    // 1.3 may be gone to from everywhere, but only names make one head.
    expect(keep(['1.0', '1.1 1.0', '1.2 1.1', '1.3 1.2 >=1.0.0 <1.3.0'], ['1.0', '1.3']).names).toHaveLength(
      4,
    );
  });

  it('finds a head that all lead to where the highest asked for is not one', () => {
    // 1.0 and 1.1 are both skipped by 1.2 alone.
    expect(keep(['1.0', '1.1', '1.2 - 1.0 1.1', '1.3 1.2'], ['1.0', '1.1'])).toEqual({
      names: ['1.0', '1.1', '1.2'],
      reasons: { '1.2': 'is the head that all others lead to: "1.0", "1.1"' },
    });
    // Builds of one stream skip each other: none above them is needed.
    const stream = ['1.0', '1.1 - 1.0', '1.2 - 1.1 1.0', '1.3 - 1.2 1.1 1.0'];
    expect(keep(stream, ['1.0', '1.2']).names).toEqual(['1.0', '1.2']);
  });

  it('counts from the newest on', () => {
    const newest = (texts: string[]): string[] => {
      const entries = entriesOf(texts);
      return new ChannelWays(entries, versionsOf(entries)).newestFirst();
    };
    // A head that skips old patches besides: what it replaces is newer than they are.
    expect(newest(['1.0', '1.1', '1.2 - 1.0 1.1', '2.0 1.2 1.0 1.1'])).toEqual(['2.0', '1.2', '1.1', '1.0']);
    // A head that skips its own patches, and replaces the minor version before.
    expect(newest(['1.9', '2.0', '2.1', '2.2 1.9 2.0 2.1'])).toEqual(['2.2', '2.1', '2.0', '1.9']);
    // Versions once were years.
    expect(newest(['2023.1', '2023.2 2023.1', '1.0 2023.2', '1.1 1.0'])).toEqual([
      '1.1',
      '1.0',
      '2023.2',
      '2023.1',
    ]);
  });

  it.each(randomChannels)(
    'makes a valid channel of any part of %s ones, in which no way is lost',
    (_, arbitrary) => {
      let looked = 0;
      fc.assert(
        fc.property(arbitrary, fc.infiniteStream(fc.boolean()), (entries, dice) => {
          const graph = readGraph(entries);
          fc.pre(describeGraphFault(graph) === undefined);
          const asked = new Set(entries.map(({ name }) => name).filter(() => dice.next().value === true));
          fc.pre(asked.size > 0);
          looked++;
          const { names, reasons } = new ChannelWays(entries, versionsOf(entries)).keep(asked);
          const left = entries.filter(({ name }) => names.has(name));
          const after = readGraph(left);
          expect(describeGraphFault(after)).toBeUndefined();
          for (const name of asked) expect(names).toContain(name);
          const added = [...names].filter((name) => !asked.has(name));
          expect([...reasons.keys()].sort()).toEqual(added.sort());
          const had = reaching(entries, graph.heads[0] as string);
          const has = reaching(left, after.heads[0] as string);
          for (const { name } of left) if (had.has(name)) expect(has).toContain(name);
          if (asked.has(graph.heads[0] as string)) expect(after.heads).toEqual(graph.heads);
        }),
        { numRuns: 1000, maxSkipsPerRun: 1000 },
      );
      expect(looked).toBeGreaterThan(900);
    },
  );
});

describe('catalog/selection/channel-ways', () => {
  const waysOf = (texts: string[]) => new ChannelWays(entriesOf(texts), versionsOf(entriesOf(texts)));

  it('orders entries from the newest on, each before what it skips', () => {
    expect(waysOf(['1.0', '1.1 1.0', '1.2', '1.3 1.1 1.2']).newestFirst()).toEqual([
      '1.3',
      '1.2',
      '1.1',
      '1.0',
    ]);
    // What is on the chain stands there, whoever skips it.
    expect(waysOf(['1.0', '1.1 1.0', '1.2 1.1 1.0']).newestFirst()).toEqual(['1.2', '1.1', '1.0']);
    expect(waysOf(['1.0', '1.1 - 1.0', '1.2 - 1.1', '1.3 1.2']).newestFirst()).toEqual([
      '1.3',
      '1.2',
      '1.1',
      '1.0',
    ]);
  });

  it('finds all that a cluster can come to', () => {
    const ways = waysOf(['1.0', '1.1 1.0', '1.2', '1.3 1.1 1.2', '1.4 1.3 >=1.0.0 <1.1.0']);
    const from = (names: string[], version?: string) => {
      const found = ways.reachableFrom(
        new Set(names),
        version === undefined ? undefined : versionsOf(entriesOf([version])).get(version),
      );
      return [...found].sort();
    };
    expect(from(['1.2'])).toEqual(['1.2', '1.3', '1.4']);
    expect(from(['1.0'])).toEqual(['1.0', '1.1', '1.3', '1.4']);
    expect(from(['0.9'])).toEqual([]);
    // It is in no entry, but in the range of one.
    expect(from(['1.0.5'], '1.0')).toEqual(['1.4']);
  });
});
