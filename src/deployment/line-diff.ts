/** A piece of a comparison of lines. */
interface Edit {
  sign: ' ' | '-' | '+';
  line: string;
}

/** Lines around a change that are shown. */
const context = 3;
/** Changed lines up to which the shortest way is looked for; beyond, a block is shown as replaced. */
const maxEdits = 1000;

/** How one text becomes another, as hunks of a unified diff; empty where they are equal. */
export function unifiedDiff(older: string, newer: string): string {
  const edits = diffLines(linesOf(older), linesOf(newer));
  let text = '';
  let [oldLine, newLine] = [1, 1];
  for (let at = 0; at < edits.length;) {
    if (edits[at]?.sign === ' ') {
      at++;
      oldLine++;
      newLine++;
      continue;
    }
    const start = Math.max(0, at - context);
    const end = endOfHunk(edits, at);
    const hunk = edits.slice(start, end);
    const lead = at - start;
    const [olds, news] = ['-', '+'].map(
      (sign) => hunk.filter((edit) => edit.sign !== other(sign)).length,
    ) as [number, number];
    text += `@@ -${range(oldLine - lead, olds)} +${range(newLine - lead, news)} @@\n`;
    text += hunk.map(({ sign, line }) => `${sign}${line}\n`).join('');
    oldLine += olds - lead;
    newLine += news - lead;
    at = end;
  }
  return text;
}

function other(sign: string): string {
  return sign === '-' ? '+' : '-';
}

function range(start: number, length: number): string {
  return `${length === 0 ? start - 1 : start},${length}`;
}

/** Where the lines after a change end that are neither changed nor near to another change. */
function endOfHunk(edits: readonly Edit[], at: number): number {
  let last = at;
  for (let next = at; next < edits.length && next - last <= 2 * context; next++) {
    if (edits[next]?.sign !== ' ') last = next;
  }
  return Math.min(edits.length, last + 1 + context);
}

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function diffLines(older: readonly string[], newer: readonly string[]): Edit[] {
  let start = 0;
  while (start < older.length && start < newer.length && older[start] === newer[start]) start++;
  let [oldEnd, newEnd] = [older.length, newer.length];
  while (oldEnd > start && newEnd > start && older[oldEnd - 1] === newer[newEnd - 1]) {
    oldEnd--;
    newEnd--;
  }
  const kept = (line: string): Edit => ({ sign: ' ', line });
  return [
    ...older.slice(0, start).map(kept),
    ...shortestEdits(older.slice(start, oldEnd), newer.slice(start, newEnd)),
    ...older.slice(oldEnd).map(kept),
  ];
}

/** The algorithm of Myers: as few lines as can be are changed. */
function shortestEdits(older: readonly string[], newer: readonly string[]): Edit[] {
  const most = Math.min(maxEdits, older.length + newer.length);
  const offset = most + 1;
  const furthest = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits++) {
    trace.push(furthest.slice(offset - edits - 1, offset + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const isDown =
        k === -edits || (k !== edits && at(furthest, offset + k - 1) < at(furthest, offset + k + 1));
      let x = isDown ? at(furthest, offset + k + 1) : at(furthest, offset + k - 1) + 1;
      while (x < older.length && x - k < newer.length && older[x] === newer[x - k]) x++;
      furthest[offset + k] = x;
      if (x >= older.length && x - k >= newer.length) return walkBack(older, newer, trace);
    }
  }
  return [
    ...older.map((line): Edit => ({ sign: '-', line })),
    ...newer.map((line): Edit => ({ sign: '+', line })),
  ];
}

function walkBack(older: readonly string[], newer: readonly string[], trace: readonly Int32Array[]): Edit[] {
  const edits: Edit[] = [];
  let [x, y] = [older.length, newer.length];
  for (let step = trace.length - 1; step >= 0; step--) {
    const before = trace[step] as Int32Array;
    const value = (k: number): number => at(before, k + step + 1);
    const k = x - y;
    const isDown = k === -step || (k !== step && value(k - 1) < value(k + 1));
    const previous = isDown ? k + 1 : k - 1;
    const [startX, startY] = step === 0 ? [0, 0] : [value(previous), value(previous) - previous];
    while (x > startX && y > startY) {
      edits.push({ sign: ' ', line: older[--x] as string });
      y--;
    }
    if (step === 0) break;
    if (isDown) edits.push({ sign: '+', line: newer[--y] as string });
    else edits.push({ sign: '-', line: older[--x] as string });
  }
  return edits.reverse();
}

function at(array: Int32Array, index: number): number {
  return array[index] ?? 0;
}
