import type { GraphRow } from '../../responses.js';
import { Badge, formatCount } from '../parts.js';
import { type PackageRoute, getUrl } from '../route.js';
import { RowMarks } from './marks.js';
import type { MinorGroup, ShownLayout } from './minor-groups.js';

/** Minimum height of a row that shows more than the version. */
const minReadable = 14;
/** Maximum columns of versions beside low rows; no versions are shown if they need more. */
const maxColumns = 8;
/** Widths of such a column, and of a character in it, in pixels. */
const minColumnWidth = 58;
const maxColumnWidth = 170;
const labelCharacter = 6.6;

/** Form of rows at their height: whole texts, or versions in several columns, or none. */
export interface RowForm {
  isReadable: boolean;
  /** Whether low rows show their versions. */
  hasLabels: boolean;
  columns: number;
  columnWidth: number;
}

/** Returns the form of rows of a height, in pixels, for the width beside the drawing. */
export function getRowForm(rows: readonly GraphRow[], row: number, available: number): RowForm {
  const isReadable = row >= minReadable;
  const columns = isReadable ? 1 : Math.ceil(minReadable / row);
  return {
    isReadable,
    hasLabels: columns <= maxColumns,
    columns,
    columnWidth: getColumnWidth(rows, available / columns),
  };
}

/** Returns a width for the longest version, if available. */
function getColumnWidth(rows: readonly GraphRow[], available: number): number {
  const longest = rows.reduce((length, { name, version }) => Math.max(length, (version || name).length), 0);
  const ideal = Math.min(longest * labelCharacter + 8, maxColumnWidth);
  return Math.max(minColumnWidth, Math.min(ideal, available));
}

/** Bundles of an upgrade path, and those that concern the selected one, by name. */
export interface Highlights {
  onPath: ReadonlySet<string>;
  /** In the skip range of the selected bundle. */
  covered: ReadonlySet<string>;
  /** Next upgrades of the selected bundle. */
  next: ReadonlySet<string>;
}

interface RowProps {
  row: ShownLayout['rows'][number];
  position: number;
  isFocused: boolean;
  highlights: Highlights;
  form: RowForm;
  /** Width of the drawing beside the row. */
  indent: number;
  onFocus: () => void;
}

/** Link to a bundle. */
export function BundleLink(
  props: RowProps & { route: PackageRoute; channels: string[]; isSelected: boolean },
) {
  const { row, position, isFocused, highlights, form, indent, onFocus, route, channels, isSelected } = props;
  const { onPath, covered, next } = highlights;
  const { isReadable, hasLabels, columns, columnWidth } = form;
  const { name, marks } = row;
  const labelIndent = isReadable || !hasLabels ? 0 : (position % columns) * columnWidth;
  return (
    <a
      href={getUrl({ ...route, bundle: name })}
      draggable={false}
      data-at={position}
      class={[
        marks.includes('skipped') ? 'skipped' : '',
        covered.has(name) ? 'covered' : '',
        next.has(name) ? 'next' : '',
        onPath.has(name) ? 'on-path' : '',
        marks.includes('removed') ? 'gone' : '',
        isReadable ? '' : 'small',
      ].join(' ')}
      style={{ paddingLeft: `${indent + labelIndent}px` }}
      tabIndex={isFocused ? 0 : -1}
      title={isReadable ? undefined : name}
      aria-label={isReadable ? undefined : name}
      onFocus={onFocus}
      {...(isSelected && { 'aria-current': 'true' as const })}
    >
      {isReadable ? (
        <RowText row={row} channels={channels} isCovered={covered.has(name)} isNext={next.has(name)} />
      ) : (
        hasLabels && (
          <span class="label" style={{ maxWidth: `${columnWidth - 2}px` }}>
            {row.version || name}
          </span>
        )
      )}
    </a>
  );
}

/** Button that expands or collapses a minor version. */
export function GroupButton(props: RowProps & { group: MinorGroup; onToggle: () => void }) {
  const { row, position, isFocused, highlights, form, indent, onFocus, group, onToggle } = props;
  return (
    <button
      type="button"
      class={`group${form.isReadable ? '' : ' small'}`}
      data-at={position}
      style={{ paddingLeft: `${indent}px` }}
      tabIndex={isFocused ? 0 : -1}
      aria-expanded={group.isExpanded}
      onFocus={onFocus}
      onClick={onToggle}
    >
      <GroupText row={row} group={group} isNext={group.names.some((name) => highlights.next.has(name))} />
    </button>
  );
}

function GroupText({ row, group, isNext }: { row: GraphRow; group: MinorGroup; isNext: boolean }) {
  const { minor, names, newest, oldest, isExpanded } = group;
  return (
    <>
      <span class="version">{minor}</span>
      <span class="id">
        {formatCount(names.length, 'bundle')}: {newest} to {oldest}
      </span>
      <RowMarks row={row} />
      {isNext && !isExpanded && <Badge kind="next">next upgrade</Badge>}
    </>
  );
}

function RowText(props: { row: GraphRow; channels: string[]; isCovered: boolean; isNext: boolean }) {
  const { row, channels, isCovered, isNext } = props;
  return (
    <>
      <span class="version">{row.version || '?'}</span>
      <span class="id">{row.name}</span>
      <RowMarks row={row} />
      {isNext && <Badge kind="next">next upgrade</Badge>}
      {isCovered && <Badge kind="covered">in skip range</Badge>}
      {row.channels?.map((position) => (
        <span key={position} class="in-channel">
          {channels[position]}
        </span>
      ))}
      <span class="more">
        {row.replaces !== '' && <span class="unseen">replaces {row.replaces}</span>}
        {row.skips > 0 && <span>skips {row.skips}</span>}
        {row.skipRange !== '' && <span class="range">{row.skipRange}</span>}
      </span>
    </>
  );
}
