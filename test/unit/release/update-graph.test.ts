import { describe, expect, it } from 'vitest';
import { parseUpdateGraph } from '../../../src/release/update-graph.js';
import { findNearestReached, findUpdatePath } from '../../../src/release/update-path.js';
import { digestOfText, graphText, payloadOf } from '../../support/releases.js';

const label = 'channel demo-4.1 (amd64)';

function pathIn(text: string, from: string, to: string) {
  const graph = parseUpdateGraph(text, label);
  const node = (version: string) => {
    const found = graph.byVersion.get(version);
    if (found === undefined) throw new Error(`no ${version}`);
    return found;
  };
  const path = findUpdatePath(graph, node(from), node(to));
  return {
    versions: path?.nodes.map(({ version }) => version),
    risky: path?.risky.map((one) => `${one.from} ${one.to} ${one.risks.map(({ name }) => name).join()}`),
    nearest: findNearestReached(graph, node(from), node(to)).version,
  };
}

describe('release/update-graph', () => {
  it('orders releases by version, and keeps the first of duplicate versions', () => {
    const text = JSON.stringify({
      nodes: ['4.1.10', '4.1.2', '4.1.2', '4.1.2-rc.1'].map((version, i) => ({
        version,
        payload: payloadOf(`${version} ${i}`),
        metadata: { 'io.openshift.upgrades.graph.release.channels': 'b,a' },
      })),
    });
    const { nodes } = parseUpdateGraph(text, label);
    expect(nodes.map(({ version }) => version)).toEqual(['4.1.2-rc.1', '4.1.2', '4.1.10']);
    expect(nodes[1]?.payload.digest).toBe(digestOfText('4.1.2 1'));
    expect(nodes[1]?.channels).toEqual(['a', 'b']);
  });

  it('omits updates to versions outside the channel', () => {
    const text = graphText(['4.1.0'], [], { conditional: [{ from: '4.1.0', to: '4.2.0', risk: 'R' }] });
    expect(parseUpdateGraph(text, label).edges.size).toBe(0);
  });

  it.each([
    ['{', 'SYNTAX', 'not JSON'],
    ['[]', 'INVALID', 'expected an object'],
    ['{"nodes":[{"version":"v4.x","payload":"q.io/a/b@' + digestOfText('a') + '"}]}', 'INVALID', '"v4.x"'],
    ['{"nodes":[{"version":"4.1.0","payload":"quay.io/a/b:v1"}]}', 'INVALID', 'by digest'],
    [graphText(['4.1.0']).replace('"edges":[]', '"edges":[[0,1]]'), 'INVALID', 'edges[0][1]'],
    [graphText(['4.1.0']).replace('"edges":[]', '"edges":[[0]]'), 'INVALID', 'two indexes'],
    [
      `{"nodes":[{"version":"4.1.0","payload":"${payloadOf('a')}","metadata":{"io.openshift.upgrades.graph.release.manifestref":"${digestOfText('b')}"}}]}`,
      'INVALID',
      digestOfText('b'),
    ],
  ])('refuses %s', (text, code, words) => {
    const fault = (() => {
      try {
        return parseUpdateGraph(text, label);
      } catch (error) {
        return error;
      }
    })();
    expect(fault).toMatchObject({ code });
    expect((fault as Error).message).toContain(words);
    expect((fault as Error).message).toContain(label);
  });
});

describe('release/update-path', () => {
  it('selects the shortest path, among several the one with the newest first release', () => {
    const text = graphText(
      ['4.1.0', '4.1.1', '4.1.2', '4.1.3', '4.1.4'],
      [
        ['4.1.0', '4.1.1'],
        ['4.1.0', '4.1.2'],
        ['4.1.1', '4.1.4'],
        ['4.1.2', '4.1.4'],
        ['4.1.2', '4.1.3'],
        ['4.1.3', '4.1.4'],
      ],
    );
    expect(pathIn(text, '4.1.0', '4.1.4')).toEqual({
      versions: ['4.1.0', '4.1.2', '4.1.4'],
      risky: [],
      nearest: '4.1.4',
    });
    expect(pathIn(text, '4.1.4', '4.1.4').versions).toEqual(['4.1.4']);
    expect(pathIn(text, '4.1.4', '4.1.0').versions).toBeUndefined();
  });

  it('prefers a longer path to a conditional update', () => {
    const text = graphText(
      ['4.1.0', '4.1.1', '4.1.2', '4.1.3'],
      [
        ['4.1.0', '4.1.1'],
        ['4.1.1', '4.1.2'],
        ['4.1.2', '4.1.3'],
      ],
      { conditional: [{ from: '4.1.0', to: '4.1.3', risk: 'R' }] },
    );
    expect(pathIn(text, '4.1.0', '4.1.3')).toMatchObject({
      versions: ['4.1.0', '4.1.1', '4.1.2', '4.1.3'],
      risky: [],
    });
  });

  it('uses as few conditional updates as possible, on the shortest such path', () => {
    const text = graphText(
      ['4.1.0', '4.1.1', '4.1.2', '4.1.3', '4.1.4', '4.1.5'],
      [
        ['4.1.0', '4.1.1'],
        ['4.1.1', '4.1.2'],
        ['4.1.4', '4.1.5'],
      ],
      {
        conditional: [
          { from: '4.1.0', to: '4.1.3', risk: 'A' },
          { from: '4.1.3', to: '4.1.5', risk: 'B' },
          { from: '4.1.2', to: '4.1.4', risk: 'C' },
          { from: '4.1.1', to: '4.1.4', risk: 'D' },
        ],
      },
    );
    expect(pathIn(text, '4.1.0', '4.1.5')).toMatchObject({
      versions: ['4.1.0', '4.1.1', '4.1.4', '4.1.5'],
      risky: ['4.1.1 4.1.4 D'],
    });
  });

  it('prefers an unconditional update to the same conditional one', () => {
    const text = graphText(['4.1.0', '4.1.1'], [['4.1.0', '4.1.1']], {
      conditional: [{ from: '4.1.0', to: '4.1.1', risk: 'A' }],
    });
    expect(pathIn(text, '4.1.0', '4.1.1').risky).toEqual([]);
  });

  it('names the newest reachable release', () => {
    const text = graphText(
      ['4.1.0', '4.1.1', '4.1.2', '4.1.3', '4.1.9'],
      [
        ['4.1.0', '4.1.1'],
        ['4.1.1', '4.1.2'],
        ['4.1.0', '4.1.9'],
      ],
    );
    expect(pathIn(text, '4.1.0', '4.1.3')).toMatchObject({ versions: undefined, nearest: '4.1.2' });
    expect(pathIn(text, '4.1.3', '4.1.9')).toMatchObject({ versions: undefined, nearest: '4.1.3' });
  });
});
