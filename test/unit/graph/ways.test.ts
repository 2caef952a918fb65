import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Version, parseVersion } from '../../../src/core/semver.js';
import { followReplaces, readGraph } from '../../../src/graph/channel-graph.js';
import { UpgradeGraph, walkUpgrades } from '../../../src/graph/upgrade-graph.js';
import { SkipRanges } from '../../../src/graph/skip-ranges.js';
import { findWaysTo } from '../../../src/graph/ways.js';
import type { ChannelEntry } from '../../../src/model/declarative-config.js';

const name = fc.integer({ min: 0, max: 7 }).map((minor) => `a.v1.${minor}.0`);
const entries = fc.uniqueArray(
  fc.record({
    name,
    replaces: fc.option(name, { nil: '' }),
    skips: fc.array(name, { maxLength: 3 }),
    skipRange: fc.constantFrom('', '<1.3.0', '>=1.2.0 <1.5.0', 'none'),
  }),
  { selector: (entry) => entry.name },
);
const versions = new Map<string, Version>(
  Array.from({ length: 8 }, (_, minor) => [`a.v1.${minor}.0`, parseVersion(`1.${minor}.0`)] as const),
);
const ranges = new SkipRanges();

const isNamed = (from: string, { replaces, skips }: ChannelEntry): boolean =>
  replaces === from || skips.includes(from);
const leads = (from: string, to: ChannelEntry): boolean =>
  from !== to.name &&
  (isNamed(from, to) || ranges.get(to.skipRange)?.contains(versions.get(from) as Version) === true);

/** Adds whatever leads to something that was found, until nothing does. */
function closure(
  list: readonly ChannelEntry[],
  target: string,
  leads: (from: string, to: ChannelEntry) => boolean,
): ReadonlySet<string> {
  const found = new Set([target]);
  for (let size = 0; size !== found.size;) {
    size = found.size;
    for (const to of list.filter((entry) => found.has(entry.name))) {
      for (const from of list) if (leads(from.name, to)) found.add(from.name);
    }
  }
  return found;
}

describe('graph/ways findWaysTo', () => {
  it('finds all that leads to a target by name, and with versions by range', () => {
    fc.assert(
      fc.property(entries, name, (list, target) => {
        const byName = new Map(list.map((entry) => [entry.name, entry]));
        const named = findWaysTo([target], byName).reached;
        expect(named).toEqual(closure(list, target, isNamed));
        const { reached, next } = findWaysTo([target], byName, { versions, ranges });
        expect(reached).toEqual(closure(list, target, leads));
        expect(new Set([target, ...next.keys()])).toEqual(reached);
        for (const [from, to] of next) expect(leads(from, byName.get(to) as ChannelEntry)).toBe(true);
      }),
    );
  });

  it('leads back the ways that upgrades lead on', () => {
    fc.assert(
      fc.property(entries, name, (list, from) => {
        const byName = new Map(list.map((entry) => [entry.name, entry]));
        const version = versions.get(from);
        const graph = new UpgradeGraph([{ name: 'stable', entries: list }]);
        const found = walkUpgrades(graph, [[from, version]], versions);
        const leading = [...byName.keys()].filter(
          (to) =>
            to !== from &&
            findWaysTo([to], byName, {
              versions,
              ranges,
              isKnown: () => true,
              candidates: versions.keys(),
            }).reached.has(from),
        );
        expect(new Set(found)).toEqual(new Set(leading));
      }),
    );
  });

  it('ends early below zero of its budget', () => {
    const list = ['<1.3.0', '', ''].map((skipRange, minor): [string, ChannelEntry] => {
      const one = `a.v1.${3 - minor}.0`;
      return [one, { name: one, replaces: '', skips: [], skipRange }];
    });
    const budget = { left: 1 };
    expect([...findWaysTo(['a.v1.3.0'], new Map(list), { versions, ranges, budget }).reached]).toEqual([
      'a.v1.3.0',
    ]);
    expect(budget.left).toBe(-1);
  });
});

describe('graph/channel-graph followReplaces', () => {
  it('goes on past skipped entries to a name that is no entry, and stops in a cycle', () => {
    const entry = (own: string, replaces: string, skips: string[] = []): ChannelEntry => ({
      name: own,
      replaces,
      skips,
      skipRange: '',
    });
    const cut = [entry('c', 'b', ['b']), entry('b', 'a')];
    expect(followReplaces(readGraph(cut))).toEqual({ names: ['c', 'b', 'a'], isCycle: false });
    const circle = [entry('c', 'b'), entry('b', 'a'), entry('a', 'b')];
    expect(followReplaces(readGraph(circle))).toEqual({ names: ['c', 'b', 'a'], isCycle: true });
  });
});
