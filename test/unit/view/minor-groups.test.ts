import { describe, expect, it } from 'vitest';
import {
  findGroup,
  groupMinors,
  showAll,
  type ShownLayout,
} from '../../../src/view/page/package/minor-groups.js';
import type { ChannelLayout, GraphRow } from '../../../src/view/responses.js';

/** A chain of versions, newest first. */
function chain(versions: readonly string[], more: Partial<ChannelLayout> = {}): ChannelLayout {
  const rows = versions.map((version, at): GraphRow => {
    const isLast = at === versions.length - 1;
    return {
      ...{
        name: `p.v${version}`,
        version,
        lane: 0,
        marks: at === 0 ? ['head'] : [],
        skips: 0,
        skipRange: '',
      },
      ...{ replaces: isLast ? '' : `p.v${versions[at + 1]}`, errors: at === 2 ? 1 : 0, warnings: 0 },
      ...(!isLast && { older: at + 1 }),
      ...(at > 0 && { newer: at - 1 }),
    };
  });
  const edges = rows.slice(1).map((_, from) => ({ from, to: from + 1, lane: 0 }));
  return {
    ...{ package: 'p', channel: 'stable', channels: ['stable'], isDefault: true, rows, lanes: 1, edges },
    ...{ brackets: [], bracketColumns: 0, hiddenBrackets: 0, ...more },
  };
}

const texts = ({ rows }: ShownLayout): string[] =>
  rows.map(({ name, group }) => (group === undefined ? name : `${group.minor}: ${group.names.length}`));
const lines = ({ edges }: ShownLayout): string[] => edges.map(({ from, to }) => `${from}-${to}`);
const versions = ['2.0.0', '1.2.1', '1.2.0', '1.1.2', '1.1.1', '1.1.0', '1.0.0'];

describe('view/page: groups of minor versions', () => {
  it('shows a row for neighbors of the same minor version, and others as they are', () => {
    const shown = groupMinors(chain(versions), new Set());
    expect(texts(shown)).toEqual(['p.v2.0.0', '1.2: 2', '1.1: 3', 'p.v1.0.0']);
    expect(lines(shown)).toEqual(['0-1', '1-2', '2-3']);
    expect(shown.rows[1]?.group).toMatchObject({ newest: '1.2.1', oldest: '1.2.0', isExpanded: false });
    expect(shown.rows.map(({ errors }) => errors)).toEqual([0, 1, 0, 0]);
    expect(shown.places.get('p.v1.1.1')).toBe(2);
    expect(shown.rows[0]).toMatchObject({ older: 1 });
    expect(shown.rows[3]).toMatchObject({ newer: 2 });
  });

  it('shows the bundles of an expanded group below its row', () => {
    const layout = chain(versions);
    const key = findGroup(layout, 'p.v1.1.0') ?? '';
    const shown = groupMinors(layout, new Set([key]));
    expect(texts(shown)).toEqual([
      ...['p.v2.0.0', '1.2: 2', '1.1: 3'],
      ...['p.v1.1.2', 'p.v1.1.1', 'p.v1.1.0', 'p.v1.0.0'],
    ]);
    expect(lines(shown)).toEqual(['0-1', '1-3', '3-4', '4-5', '5-6']);
    expect(shown.rows[2]).toMatchObject({ marks: [], group: { isExpanded: true } });
    expect(shown.rows[3]).toMatchObject({ newer: 1, older: 4 });
  });

  it('leads brackets to groups, and drops those within one', () => {
    const brackets = [
      { from: 0, to: [3, 4, 6], column: 0 },
      { from: 3, to: [4, 5], column: 1 },
    ];
    const shown = groupMinors(chain(versions, { brackets }), new Set());
    expect(shown.brackets).toEqual([{ from: 0, to: [2, 3], column: 0 }]);
  });

  it('groups only neighbors, and nothing without a version', () => {
    const shown = groupMinors(chain(['1.1.1', '1.2.0', '1.1.0', '', '']), new Set());
    expect(texts(shown)).toEqual(['p.v1.1.1', 'p.v1.2.0', 'p.v1.1.0', 'p.v', 'p.v']);
    expect(findGroup(chain(['1.1.1', '1.2.0']), 'p.v1.1.1')).toBeUndefined();
  });

  it('shows every bundle without groups', () => {
    const layout = chain(versions);
    expect(showAll(layout).rows).toBe(layout.rows);
    expect([...showAll(layout).places.values()]).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
});
