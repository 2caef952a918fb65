import type { ChannelLayout, GraphRow, RowMark } from '../../responses.js';

/** Maximum rows of a channel that are all shown at first. */
export const maxUngroupedRows = 100;

/** Minor version of neighboring rows. */
export interface MinorGroup {
  /** `4.12`, unique in a channel: with the name of its first bundle. */
  key: string;
  minor: string;
  isExpanded: boolean;
  /** Bundles of the group, newest first. */
  names: string[];
  /** Versions of its newest and oldest bundle. */
  newest: string;
  oldest: string;
}

/** Row that is shown: a bundle, or a group of bundles. */
type ShownRow = GraphRow & { group?: MinorGroup };

/** Layout of shown rows; `places` has the row of every bundle, of hidden ones that of their group. */
export type ShownLayout = Omit<ChannelLayout, 'rows'> & { rows: ShownRow[]; places: Map<string, number> };

/** Returns all rows of a channel. */
export function showAll(channel: ChannelLayout): ShownLayout {
  return { ...channel, places: new Map(channel.rows.map(({ name }, index) => [name, index])) };
}

/** Returns the key of the group of a bundle; undefined for one that is always shown. */
export function findGroup({ rows }: ChannelLayout, name: string): string | undefined {
  return splitRows(rows).find(
    ({ key, members }) => key !== undefined && members.some((row) => row.name === name),
  )?.key;
}

/**
 * Groups neighboring rows of the same minor version below a row for the group; bundles of groups that are not expanded are
 * hidden, and lines lead to the row of their group.
 */
export function groupMinors(channel: ChannelLayout, expanded: ReadonlySet<string>): ShownLayout {
  const places = new Map<string, number>();
  const rows: ShownRow[] = [];
  for (const { key, minor, members } of splitRows(channel.rows)) {
    const group = key === undefined ? undefined : describeGroup(key, minor, members, expanded.has(key));
    if (group !== undefined) rows.push(toGroupRow(group, members));
    for (const row of members) {
      if (group?.isExpanded !== false) rows.push(row);
      places.set(row.name, rows.length - 1);
    }
  }
  const shown = channel.rows.map(({ name }) => places.get(name) ?? 0);
  const edges = new Map<string, ChannelLayout['edges'][number]>();
  for (const edge of channel.edges) {
    const [from, to] = [shown[edge.from] ?? 0, shown[edge.to] ?? 0];
    if (from !== to && !edges.has(`${from} ${to}`)) edges.set(`${from} ${to}`, { ...edge, from, to });
  }
  const brackets = channel.brackets.flatMap((bracket) => {
    const from = shown[bracket.from] ?? 0;
    const to = [...new Set(bracket.to.map((place) => shown[place] ?? 0))].filter((place) => place !== from);
    return to.length === 0 ? [] : [{ ...bracket, from, to }];
  });
  const toPlace = (place: number | undefined) => (place === undefined ? undefined : shown[place]);
  const linked = rows.map((row) => {
    if (row.group !== undefined) return row;
    const { older, newer, skippedBy, ...rest } = row;
    const links = { older: toPlace(older), newer: toPlace(newer), skippedBy: toPlace(skippedBy) };
    return { ...rest, ...definedOnly(links) };
  });
  return { ...channel, rows: linked, edges: [...edges.values()], brackets, places };
}

function definedOnly(links: Record<'older' | 'newer' | 'skippedBy', number | undefined>): Partial<GraphRow> {
  return Object.fromEntries(Object.entries(links).filter(([, place]) => place !== undefined));
}

interface Run {
  key: string | undefined;
  minor: string;
  members: GraphRow[];
}

/** Splits rows into runs of the same minor version; a run of one row has no key. */
function splitRows(rows: readonly GraphRow[]): Run[] {
  const runs: Run[] = [];
  for (const row of rows) {
    const minor = /^\d+\.\d+(?=\.)/.exec(row.version)?.[0] ?? '';
    const last = runs.at(-1);
    if (last !== undefined && minor !== '' && last.minor === minor) last.members.push(row);
    else runs.push({ key: undefined, minor, members: [row] });
  }
  return runs.map((run) =>
    run.members.length < 2 ? run : { ...run, key: `${run.minor} ${run.members[0]?.name ?? ''}` },
  );
}

function describeGroup(
  key: string,
  minor: string,
  members: readonly GraphRow[],
  isExpanded: boolean,
): MinorGroup {
  const [newest, oldest] = [members[0]?.version ?? '', members.at(-1)?.version ?? ''];
  return { key, minor, isExpanded, names: members.map(({ name }) => name), newest, oldest };
}

/** Marks of bundles that the row of their group shows while they are hidden. */
const groupMarks: readonly RowMark[] = ['head', 'deprecated', 'stranded', 'undefined', 'added', 'removed'];

function toGroupRow(group: MinorGroup, members: readonly GraphRow[]): ShownRow {
  const { isExpanded, key, minor } = group;
  const hidden = isExpanded ? [] : members;
  return {
    name: `group ${key}`,
    version: minor,
    lane: members[0]?.lane ?? 0,
    marks: groupMarks.filter((mark) => hidden.some(({ marks }) => marks.includes(mark))),
    replaces: '',
    skips: 0,
    skipRange: '',
    errors: hidden.reduce((sum, { errors }) => sum + errors, 0),
    warnings: hidden.reduce((sum, { warnings }) => sum + warnings, 0),
    group,
  };
}
