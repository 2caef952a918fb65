import type { GraphRow, RowMark } from '../../answers.js';
import { Badge, ProblemBadges } from '../parts.js';

const words: Record<RowMark, { text: string; title: string }> = {
  head: { text: 'head', title: 'The newest: nothing replaces or skips it' },
  skipped: { text: 'skipped', title: 'A newer bundle skips it: it is not installed anew' },
  stranded: { text: 'stranded', title: 'No way leads from it to the head' },
  deprecated: { text: 'deprecated', title: 'Its authors say that it should not be used' },
  undefined: { text: 'no bundle', title: 'The channel names it, but the catalog has no such bundle' },
  added: { text: 'new', title: 'Not in the catalog that this one is compared with' },
  changed: { text: 'changed', title: 'Different in the catalog that this one is compared with' },
  rewired: { text: 'rewired', title: 'It replaces or skips others than in the other catalog' },
  removed: { text: 'removed', title: 'Only the catalog that this one is compared with has it' },
};

/** What is special about a bundle in a channel, in words. */
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
 * The sign of a bundle in the graph. Its shape tells the same as its color: a ring around the head, a diamond for
 * what is deprecated, a triangle for what is stranded, hollow and crossed where it is skipped, broken where there is
 * no bundle.
 */
export function NodeSign({
  marks,
  x,
  y,
  size = 5,
}: {
  marks: readonly RowMark[];
  x: number;
  y: number;
  size?: number;
}) {
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
