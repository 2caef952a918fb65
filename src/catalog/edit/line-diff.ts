/** A line of two texts: in both, only in the first, or only in the second; with its line break, if it has one. */
export interface DiffLine {
  kind: ' ' | '-' | '+';
  text: string;
}

/** Pairs of lines that are compared to find which of them stay; beyond that all are told as changed. */
const maxPairs = 4_000_000;

/** What makes one text of the other, line by line; the smallest set of lines unless there are very many. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let begin = 0;
  while (begin < old.length && begin < now.length && old[begin] === now[begin]) begin++;
  let end = 0;
  const most = Math.min(old.length, now.length) - begin;
  while (end < most && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const line =
    (kind: DiffLine['kind']) =>
    (text: string): DiffLine => ({ kind, text });
  return [
    ...old.slice(0, begin).map(line(' ')),
    ...diffMiddle(old.slice(begin, old.length - end), now.slice(begin, now.length - end)),
    ...old.slice(old.length - end).map(line(' ')),
  ];
}

/** By the longest common subsequence. */
function diffMiddle(old: readonly string[], now: readonly string[]): DiffLine[] {
  const width = now.length + 1;
  const isLarge = old.length * now.length > maxPairs;
  const lengths = new Uint32Array(isLarge ? 0 : (old.length + 1) * width);
  if (!isLarge) {
    for (let i = old.length - 1; i >= 0; i--) {
      for (let j = now.length - 1; j >= 0; j--) {
        const below = lengths[(i + 1) * width + j] as number;
        const beside = lengths[i * width + j + 1] as number;
        const both = (lengths[(i + 1) * width + j + 1] as number) + 1;
        lengths[i * width + j] = old[i] === now[j] ? both : Math.max(below, beside);
      }
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (!isLarge && i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ kind: ' ', text: old[i++] as string });
      j++;
    } else if (
      i < old.length &&
      (isLarge ||
        j >= now.length ||
        (lengths[(i + 1) * width + j] as number) >= (lengths[i * width + j + 1] as number))
    ) {
      lines.push({ kind: '-', text: old[i++] as string });
    } else lines.push({ kind: '+', text: now[j++] as string });
  }
  return lines;
}

/** The hunks of a unified diff, where the texts begin on these lines, counted from 1. */
export function hunksOf(
  lines: readonly DiffLine[],
  firstOld: number,
  firstNew: number,
  context: number,
): string {
  const changed = lines.flatMap(({ kind }, at) => (kind === ' ' ? [] : [at]));
  let text = '';
  let [oldLine, newLine] = [firstOld, firstNew];
  let done = 0;
  const pass = (to: number): void => {
    for (; done < to; done++) {
      const { kind } = lines[done] as DiffLine;
      if (kind !== '+') oldLine++;
      if (kind !== '-') newLine++;
    }
  };
  for (let at = 0; at < changed.length;) {
    let last = at;
    while ((changed[last + 1] ?? Infinity) - (changed[last] as number) <= 2 * context + 1) last++;
    const from = Math.max(0, (changed[at] as number) - context);
    const hunk = lines.slice(from, Math.min(lines.length, (changed[last] as number) + context + 1));
    pass(from);
    const olds = hunk.filter(({ kind }) => kind !== '+').length;
    const news = hunk.filter(({ kind }) => kind !== '-').length;
    // An empty side is told as the line before it.
    text += `@@ -${olds === 0 ? oldLine - 1 : oldLine},${olds} +${news === 0 ? newLine - 1 : newLine},${news} @@\n`;
    for (const line of hunk) {
      text += `${line.kind}${line.text}`;
      if (!line.text.endsWith('\n')) text += '\n\\ No newline at end of file\n';
    }
    at = last + 1;
  }
  return text;
}

/** Lines with their ends. */
export function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
