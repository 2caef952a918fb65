import { type StructuredPatchHunk, structuredPatch } from 'diff';

/** Hunks of a unified diff, and the number of lines by which the second text is longer. */
interface LineDiff {
  text: string;
  addedLines: number;
}

/** Unchanged lines shown around a change. */
const context = 3;
/** Maximum number of changed lines for the smallest difference. */
const maxEditLength = 2000;

/**
 * Returns the hunks of a unified diff of two texts; none for equal texts. More than 2,000 changed lines are shown as
 * one replaced region between the common first and last lines. The first lines
 * of both texts have the one-based numbers `firstOldLine` and `firstNewLine`.
 */
export function diffLines(
  before: string,
  after: string,
  { firstOldLine = 1, firstNewLine = 1 } = {},
): LineDiff {
  const patch = structuredPatch('', '', before, after, '', '', { context, maxEditLength });
  const hunks = patch?.hunks ?? [replacedRegion(splitLines(before), splitLines(after))];
  let text = '';
  let addedLines = 0;
  for (const { oldStart, oldLines, newStart, newLines, lines } of hunks) {
    // The number of an empty side is that of the line before it.
    const oldLine = oldStart + firstOldLine - 1 - (oldLines === 0 ? 1 : 0);
    const newLine = newStart + firstNewLine - 1 - (newLines === 0 ? 1 : 0);
    text += `@@ -${oldLine},${oldLines} +${newLine},${newLines} @@\n${lines.join('\n')}\n`;
    addedLines += newLines - oldLines;
  }
  return { text, addedLines };
}

/** Returns the lines of a text with their line endings. */
export function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function replacedRegion(before: readonly string[], after: readonly string[]): StructuredPatchHunk {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const from = Math.max(0, start - context);
  const kept = Math.min(end, context);
  const lines = [
    ...prefixed(' ', before.slice(from, start)),
    ...prefixed('-', before.slice(start, before.length - end)),
    ...prefixed('+', after.slice(start, after.length - end)),
    ...prefixed(' ', after.slice(after.length - end, after.length - end + kept)),
  ];
  return {
    oldStart: from + 1,
    oldLines: before.length - end + kept - from,
    newStart: from + 1,
    newLines: after.length - end + kept - from,
    lines,
  };
}

function prefixed(sign: string, lines: readonly string[]): string[] {
  return lines.flatMap((line) =>
    line.endsWith('\n') ? [sign + line.slice(0, -1)] : [sign + line, '\\ No newline at end of file'],
  );
}
