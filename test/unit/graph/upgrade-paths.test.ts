import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstBy } from '../../../src/core/groups.js';
import { parseBundleVersion } from '../../../src/graph/bundle-version.js';
import { type UpgradeFrom, UpgradeGraph } from '../../../src/graph/upgrade-graph.js';
import { longestPath, shortestPath } from '../../../src/graph/upgrade-paths.js';

interface Entry {
  name: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
}

function channel(name: string, ...entries: Entry[]) {
  return {
    name,
    entries: entries.map((entry) => ({ replaces: '', skips: [], skipRange: '', ...entry })),
  };
}

const bundles = firstBy(
  ['1.0.0', '1.0.1', '1.1.0', '1.2.0', '2.0.0'].map((version) => ({
    name: `w.v${version}`,
    image: '',
    version: parseBundleVersion(version),
    dependencies: [],
  })),
  ({ name }) => name,
);

function from(version: string): UpgradeFrom {
  return { name: `w.v${version}`, version: parseBundleVersion(version) };
}

const stable = channel(
  'stable',
  { name: 'w.v1.0.0' },
  { name: 'w.v1.0.1', replaces: 'w.v1.0.0' },
  { name: 'w.v1.1.0', replaces: 'w.v1.0.1', skipRange: '>=1.0.0 <1.1.0' },
  { name: 'w.v1.2.0', replaces: 'w.v1.1.0', skips: ['w.v1.0.1'] },
  { name: 'w.v2.0.0', replaces: 'w.v1.2.0' },
);

/** Lengths of all paths without repetitions, and of those through ascending versions only. */
function listPathLengths(start: string, end: string, successors: (name: string) => string[]) {
  const lengths = { all: [] as number[], ascending: [] as number[] };
  const order = [...bundles.keys()];
  const follow = (path: string[], isAscending: boolean): void => {
    const last = path.at(-1) as string;
    if (last === end) {
      lengths.all.push(path.length - 1);
      if (isAscending) lengths.ascending.push(path.length - 1);
      return;
    }
    for (const next of new Set(successors(last)))
      if (!path.includes(next))
        follow([...path, next], isAscending && order.indexOf(next) > order.indexOf(last));
  };
  follow([start], true);
  return lengths;
}

describe('graph/upgrade-paths', () => {
  it('finds the fewest and the most upgrades', () => {
    const graph = new UpgradeGraph([stable]);
    const names = (path: { to: string }[] | undefined) => path?.map(({ to }) => to.slice(3));
    const head = 'w.v2.0.0';
    expect(names(shortestPath(graph, bundles, from('1.0.0'), ({ name }) => name === head))).toEqual([
      '1.0.1',
      '1.2.0',
      '2.0.0',
    ]);
    expect(names(longestPath(graph, bundles, from('1.0.0'), head))).toEqual([
      '1.0.1',
      '1.1.0',
      '1.2.0',
      '2.0.0',
    ]);
    expect(longestPath(graph, bundles, from('2.0.0'), head)).toEqual([]);
    expect(longestPath(graph, bundles, from('2.0.0'), 'w.v1.0.0')).toBeUndefined();
    expect(shortestPath(graph, bundles, from('2.0.0'), ({ name }) => name === 'w.v1.0.0')).toBeUndefined();
    expect(shortestPath(graph, bundles, from('2.0.0'), ({ name }) => name === head)).toEqual([]);
  });

  it('finds the longest path where every entry skips all older ones', () => {
    const versions = Array.from({ length: 20_000 }, (_, index) => `0.0.${index}`);
    const many = firstBy(
      versions.map((version) => ({
        ...{ name: `w.v${version}`, image: '', version: parseBundleVersion(version), dependencies: [] },
      })),
      ({ name }) => name,
    );
    const entries = versions.map((version) => ({ name: `w.v${version}`, skipRange: `<${version}` }));
    const graph = new UpgradeGraph([channel('c', ...entries)]);
    const head = 'w.v0.0.19999';
    expect(longestPath(graph, many, from('0.0.0'), head)).toHaveLength(19_999);
    expect(shortestPath(graph, many, from('0.0.0'), ({ name }) => name === head)).toHaveLength(1);
  });

  it('finds the paths of an exhaustive search on any graph', () => {
    const name = fc.constantFrom(...bundles.keys());
    const entry = fc.record({
      name,
      replaces: fc.oneof(name, fc.constant('')),
      skips: fc.array(name, { maxLength: 3 }),
      skipRange: fc.constantFrom(
        '',
        '',
        '<9.0.0',
        '>=1.0.0 <1.2.0',
        '<1.0.1 || >1.1.0',
        '!=1.1.0',
        '1.x',
        '?',
      ),
    });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 10 }), name, name, (entries, start, end) => {
        const graph = new UpgradeGraph([channel('c', ...entries)]);
        const successors = (at: string) =>
          graph.edgesFrom(at, from(at.slice(3)).version?.version).map((edge) => edge.to);
        const first = from(start.slice(3));
        const fewest = shortestPath(graph, bundles, first, (bundle) => bundle.name === end);
        const most = longestPath(graph, bundles, first, end);
        for (const path of [fewest, most]) {
          let at = start;
          for (const { to } of path ?? []) {
            expect(successors(at)).toContain(to);
            at = to;
          }
          if (path !== undefined) expect(at).toBe(end);
        }
        const lengths = listPathLengths(start, end, successors);
        expect(fewest?.length ?? Infinity).toBe(Math.min(Infinity, ...lengths.all));
        expect(most?.length ?? -1).toBe(Math.max(-1, ...lengths.ascending));
      }),
      { numRuns: 500 },
    );
  });
});
