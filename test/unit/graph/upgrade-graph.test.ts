import { describe, expect, it } from 'vitest';
import { parseBundleVersion } from '../../../src/graph/bundle-version.js';
import {
  type UpgradeFrom,
  UpgradeGraph,
  describeEdge,
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
});
