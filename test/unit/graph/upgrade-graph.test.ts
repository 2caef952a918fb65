import fc from 'fast-check';
import { firstBy } from '../../../src/core/groups.js';
import { describe, expect, it } from 'vitest';
import { parseBundleVersion } from '../../../src/graph/bundle-version.js';
import {
  type UpgradeFrom,
  UpgradeGraph,
  describeEdge,
  longestPath,
  shortestPath,
  findStream,
} from '../../../src/graph/upgrade-graph.js';

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

describe('graph/upgrade-graph', () => {
  it('finds direct successors, each entry once and with the first kind that holds', () => {
    const graph = new UpgradeGraph([stable, channel('fast', { name: 'w.v2.0.0', skipRange: '<2.0.0' })]);
    expect(
      graph
        .edgesFrom('w.v1.0.1', from('1.0.1').version?.version)
        .map((edge) => `${edge.to} ${describeEdge(edge)}`),
    ).toEqual([
      'w.v1.1.0 replaces the installed bundle in channel stable',
      'w.v1.2.0 skips the installed bundle in channel stable',
      'w.v2.0.0 skips the range "<2.0.0" in channel fast',
    ]);
    expect(graph.edgesFrom('other', undefined)).toEqual([]);
    expect(graph.edgesFrom('', undefined)).toEqual([]);
  });

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

  it.each([
    ['1.0.0', '1.0.1', 'z'],
    ['1.0.0', '1.0.0+1', 'z'],
    ['1.0.0', '1.1.0', 'y'],
    ['1.0.0', '2.0.0', 'x'],
    ['1.0.0', '1.0.0', undefined],
    ['1.0.0', '1.0.0-rc', undefined],
  ])('%s to %s is the stream %s', (before, after, stream) => {
    expect(findStream(parseBundleVersion(before), parseBundleVersion(after))).toBe(stream);
  });

  it('ends on any graph, with paths whose every step is an upgrade', () => {
    const name = fc.constantFrom(...bundles.keys());
    const entry = fc.record({
      name,
      replaces: fc.oneof(name, fc.constant('')),
      skips: fc.array(name, { maxLength: 3 }),
      skipRange: fc.constantFrom('', '', '<9.0.0', '>=1.0.0 <1.2.0', '?'),
    });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 10 }), name, name, (entries, start, end) => {
        const graph = new UpgradeGraph([channel('c', ...entries)]);
        const first = from(start.slice(3));
        const fewest = shortestPath(graph, bundles, first, (bundle) => bundle.name === end);
        const most = longestPath(graph, bundles, first, end);
        for (const path of [fewest, most]) {
          let at = start;
          for (const { to } of path ?? []) {
            expect(graph.edgesFrom(at, from(at.slice(3)).version?.version).map((edge) => edge.to)).toContain(
              to,
            );
            at = to;
          }
          if (path !== undefined) expect(at).toBe(end);
        }
        if (most !== undefined) expect(most.length).toBeGreaterThanOrEqual(fewest?.length ?? Infinity);
      }),
      { numRuns: 500 },
    );
  });
});
