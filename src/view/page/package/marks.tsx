import type { GraphRow, RowMark } from '../../responses.js';
import { Badge, ProblemBadges } from '../parts.js';

const words: Record<RowMark, { text: string; title: string }> = {
  head: { text: 'head', title: 'No bundle replaces or skips it' },
  skipped: { text: 'skipped', title: 'A newer bundle skips it: OLM does not install it' },
  stranded: { text: 'stranded', title: 'No upgrade path to the head' },
  deprecated: { text: 'deprecated', title: 'The package authors advise against it' },
  undefined: { text: 'no bundle', title: 'The channel has an entry, but the catalog lacks the bundle' },
  added: { text: 'new', title: 'Missing in the other catalog' },
  changed: { text: 'changed', title: 'Different in the other catalog' },
  rewired: { text: 'rewired', title: 'Replaces or skips different bundles in the other catalog' },
  removed: { text: 'removed', title: 'In the other catalog only' },
};

/** Labels of the marks and problems of a row. */
export function RowMarks({ row }: { row: GraphRow }) {
  return (
    <>
      {row.marks.map((mark) => (
        <Badge key={mark} kind={mark} title={getTitle(mark, row)}>
          {words[mark].text}
        </Badge>
      ))}
      <ProblemBadges errors={row.errors} warnings={row.warnings} />
    </>
  );
}

function getTitle(mark: RowMark, { deprecation = '', before }: GraphRow): string {
  if (mark === 'deprecated') return deprecation;
  if (mark !== 'rewired' || before === undefined) return words[mark].title;
  const { replaces, skips, skipRange } = before;
  const parts = [
    replaces === '' ? 'replaced nothing' : `replaced ${replaces}`,
    ...(skips > 0 ? [`skipped ${skips}`] : []),
    ...(skipRange === '' ? [] : [`skip range ${skipRange}`]),
  ];
  return `Before: ${parts.join(', ')}`;
}

/**
 * Sign of a bundle in the graph. The shape repeats the meaning of the color: ring for the head, diamond for deprecated,
 * triangle for stranded, hollow and crossed for skipped, broken outline for a missing bundle.
 */
export function NodeSign(props: { marks: readonly RowMark[]; x: number; y: number; size?: number }) {
  const { marks, x, y, size = 5 } = props;
  const has = (mark: RowMark): boolean => marks.includes(mark);
  const kind =
    (['removed', 'undefined', 'stranded', 'deprecated', 'skipped', 'head'] as const).find(has) ?? 'plain';
  const isHollow = has('skipped') || has('undefined') || has('removed');
  const shape = has('deprecated')
    ? `M${x} ${y - size * 1.35}L${x + size * 1.35} ${y}L${x} ${y + size * 1.35}L${x - size * 1.35} ${y}Z`
    : has('stranded')
      ? `M${x} ${y - size * 1.3}L${x + size * 1.25} ${y + size}L${x - size * 1.25} ${y + size}Z`
      : undefined;
  return (
    <g class={`sign ${kind}${isHollow ? ' hollow' : ''}`}>
      {has('head') && <circle class="ring" cx={x} cy={y} r={size + 3.5} />}
      {shape === undefined ? <circle class="dot" cx={x} cy={y} r={size} /> : <path class="dot" d={shape} />}
      {has('skipped') && (
        <path class="cross" d={`M${x - size * 0.6} ${y + size * 0.6}L${x + size * 0.6} ${y - size * 0.6}`} />
      )}
    </g>
  );
}

/** Sign of a group of bundles: one behind the other. */
export function GroupSign({ x, y, size = 5 }: { x: number; y: number; size?: number }) {
  return (
    <g class="sign plain">
      <circle class="dot behind" cx={x + size * 0.7} cy={y - size * 0.5} r={size} />
      <circle class="dot" cx={x - size * 0.2} cy={y + size * 0.2} r={size} />
    </g>
  );
}
