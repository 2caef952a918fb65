import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseVersion } from '../../../src/core/semver.js';
import type { ChannelEntry } from '../../../src/model/declarative-config.js';
import { layOutChannel } from '../../../src/view/channel-rows.js';

function entry(name: string, replaces = '', skips: string[] = []): ChannelEntry {
  return { name, replaces, skips, skipRange: '' };
}

const versionOf = (name: string) => (/^\d+\.\d+\.\d+$/.test(name) ? parseVersion(name) : undefined);

async function namesOf(entries: ChannelEntry[]): Promise<string[]> {
  return (await layOutChannel(entries, versionOf)).rows.map((row) => row.entry.name);
}

describe('layOutChannel', () => {
  it('orders the newest first, with replaced bundles below regardless of versions', async () => {
    expect(await namesOf([entry('1.0.0'), entry('1.10.0', '1.9.0'), entry('1.9.0', '1.0.0')])).toEqual([
      '1.10.0',
      '1.9.0',
      '1.0.0',
    ]);
    expect(await namesOf([entry('1.0.0', '2.0.0'), entry('2.0.0')])).toEqual(['1.0.0', '2.0.0']);
    expect(await namesOf([entry('odd'), entry('1.0.0'), entry('2.0.0')])).toEqual(['2.0.0', '1.0.0', 'odd']);
  });

  it('keeps the chain in the first lane, and other bundles in further lanes', async () => {
    const { rows, edges, lanes } = await layOutChannel(
      [entry('1.0.0'), entry('1.0.1', '1.0.0'), entry('1.0.2', '1.0.0', ['1.0.1']), entry('1.1.0', '1.0.2')],
      versionOf,
    );
    expect(rows.map((row) => [row.entry.name, row.lane])).toEqual([
      ['1.1.0', 0],
      ['1.0.2', 0],
      ['1.0.1', 1],
      ['1.0.0', 0],
    ]);
    expect(edges).toEqual([
      { from: 0, to: 1, lane: 0 },
      { from: 1, to: 3, lane: 0 },
      { from: 2, to: 3, lane: 0 },
    ]);
    expect(lanes).toBe(2);
    expect(rows[2]?.skippedBy).toBe(1);
    expect(rows[3]?.newer).toBe(1);
  });

  it('reuses a lane for consecutive chains', async () => {
    const { lanes } = await layOutChannel(
      [
        entry('3.0.0', '1.0.0', ['2.9.0', '2.8.0', '2.7.0']),
        entry('2.9.0', '1.0.0'),
        entry('2.8.0', '1.0.0'),
        entry('2.7.0', '1.0.0'),
        entry('1.0.0'),
      ],
      versionOf,
    );
    expect(lanes).toBe(2);
  });

  it('draws the upward edge of a cycle in the last lane', async () => {
    const { rows, edges, lanes } = await layOutChannel(
      [entry('3.0.0', '2.0.0'), entry('2.0.0', '1.0.0'), entry('1.0.0', '2.0.0')],
      versionOf,
    );
    expect(rows.map((row) => row.entry.name)).toEqual(['3.0.0', '2.0.0', '1.0.0']);
    expect(edges.at(-1)).toEqual({ from: 2, to: 1, lane: lanes - 1 });
  });

  it('limits brackets and counts the hidden ones', async () => {
    const names = Array.from({ length: 40 }, (_, at) => `1.${at}.0`);
    const { brackets, bracketColumns, hiddenBrackets } = await layOutChannel(
      names.map((name, at) => entry(name, '', names.slice(0, at))),
      versionOf,
    );
    expect(bracketColumns).toBe(6);
    expect(brackets.length + hiddenBrackets).toBe(39);
    expect(brackets[0]).toMatchObject({ from: 0, column: 0 });
  });

  it('draws no edge of the chain through its bundles if it ends in a cycle', async () => {
    const { rows, edges } = await layOutChannel(
      [entry('1.4.0', '1.8.0'), entry('1.8.0', '1.4.0'), entry('1.9.0', '1.4.0')],
      versionOf,
    );
    expect(rows.map((row) => row.entry.name)).toEqual(['1.9.0', '1.8.0', '1.4.0']);
    expect(edges.find(({ from, to }) => from === 0 && to === 2)?.lane).not.toBe(rows[1]?.lane);
  });

  it('lists each entry once, with edges to lower rows in existing lanes, for any graph', async () => {
    const name = fc.constantFrom('', 'x', ...Array.from({ length: 9 }, (_, at) => `1.${at}.0`));
    const entries = fc.array(fc.record({ name, replaces: name, skips: fc.array(name, { maxLength: 4 }) }));
    await fc.assert(
      fc.asyncProperty(entries, async (list) => {
        const given = list.map((one) => ({ ...one, skipRange: '' }));
        const { rows, edges, lanes, brackets, bracketColumns, graph } = await layOutChannel(given, versionOf);
        expect(rows.map((row) => row.entry.name).sort()).toEqual([...graph.entries.keys()].sort());
        for (const { lane } of [...rows, ...edges]) expect(lane >= 0 && lane < lanes).toBe(true);
        for (const { from, to } of edges) expect(rows[from]?.entry.replaces).toBe(rows[to]?.entry.name);
        for (const { column } of brackets) expect(column).toBeLessThan(bracketColumns);
        const taken = new Map<string, number>();
        for (const [at, { lane }] of rows.entries()) taken.set(`${at}/${lane}`, at);
        for (const { from, to, lane } of edges) {
          for (let at = from + 1; at < to; at++) expect(taken.has(`${at}/${lane}`)).toBe(false);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('lays out thousands of entries and skips', async () => {
    const names = Array.from({ length: 3000 }, (_, at) => `1.${at}.0`);
    const { rows } = await layOutChannel(
      names.map((name, at) => entry(name, names[at - 20] ?? '', names.slice(Math.max(0, at - 20), at))),
      versionOf,
    );
    expect(rows[0]?.entry.name).toBe('1.2999.0');
    expect(rows.length).toBe(3000);
  });
});
