import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeGraphFault, readGraph } from '../../../src/graph/channel-graph.js';
import { entry } from '../model/read-facts.js';

describe('graph/channel-graph', () => {
  it('follows the chain from the head to what is no entry', () => {
    const graph = readGraph([entry('a', { replaces: 'gone' }), entry('b', { replaces: 'a' })]);
    expect(graph).toMatchObject({ heads: ['b'], chain: ['b', 'a'], end: 'missing', stranded: [] });
    expect(describeGraphFault(graph)).toBeUndefined();
  });

  it('ends the chain where the next entry is skipped, and does not call that one stranded', () => {
    const graph = readGraph([
      entry('a'),
      entry('b', { replaces: 'a' }),
      entry('c', { replaces: 'b', skips: ['b'] }),
    ]);
    expect(graph).toMatchObject({ heads: ['c'], chain: ['c'], end: 'skipped', stranded: ['a'] });
  });

  it('counts an entry that replaces itself as replaced', () => {
    expect(describeGraphFault(readGraph([entry('a', { replaces: 'a' })]))).toBe(
      'no channel head found in graph',
    );
  });

  it('reports the part of the chain that goes round', () => {
    const graph = readGraph([
      entry('a', { replaces: 'b' }),
      entry('b', { replaces: 'a' }),
      entry('c', { replaces: 'b' }),
    ]);
    expect(describeGraphFault(graph)).toBe('detected cycle in replaces chain of upgrade graph: b -> a -> b');
  });

  it('sorts heads by bytes', () => {
    const graph = readGraph([entry('b'), entry('\u{1f600}'), entry('\ufffd'), entry('B')]);
    expect(graph.heads).toEqual(['B', 'b', '\ufffd', '\u{1f600}']);
  });

  it('follows a chain of a hundred thousand entries', () => {
    const entries = Array.from({ length: 100_000 }, (_, i) =>
      entry(`v${i}`, { replaces: i > 0 ? `v${i - 1}` : '' }),
    );
    expect(readGraph(entries)).toMatchObject({ heads: ['v99999'], end: 'tail', stranded: [] });
  });

  it('puts every entry of a channel with one head on the chain, with the skipped or with the stranded', () => {
    const name = fc.constantFrom('', 'a', 'b', 'c', 'd', 'e', 'f');
    const entries = fc.array(
      fc.record({
        name,
        replaces: name,
        skips: fc.array(name, { maxLength: 2 }),
        skipRange: fc.constant(''),
      }),
      { maxLength: 7 },
    );
    fc.assert(
      fc.property(entries, (list) => {
        const graph = readGraph(list);
        if (graph.heads.length !== 1 || graph.end === 'cycle') {
          expect(graph.stranded).toEqual([]);
          return;
        }
        expect(graph.chain[0]).toBe(graph.heads[0]);
        expect(new Set(graph.chain).size).toBe(graph.chain.length);
        for (const key of graph.entries.keys()) {
          const places = [graph.chain.includes(key) || graph.skipped.has(key), graph.stranded.includes(key)];
          expect(places.filter(Boolean)).toHaveLength(1);
        }
      }),
      { numRuns: 500 },
    );
  });
});
