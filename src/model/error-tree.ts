/** A message with the messages that explain it. */
export interface ErrorTree {
  message: string;
  children: ErrorTree[];
}

/**
 * Writes a tree of errors with box-drawing lines, one message a line, as `opm` does: a message that has
 * others below it ends in a colon. No final newline.
 */
export function renderErrorTree(tree: ErrorTree): string {
  return joinErrorLines([...errorLines(tree)]);
}

/** Yields the lines of a tree, for work that stops between them; `joinErrorLines` makes the text. */
export function* errorLines({ message, children }: ErrorTree, own = '', below = ''): Generator<string> {
  yield `${own}${message}${children.length > 0 ? ':' : ''}`;
  for (const [index, child] of children.entries()) {
    const last = index === children.length - 1;
    yield* errorLines(child, below + (last ? '└── ' : '├── '), below + (last ? '    ' : '│   '));
  }
}

/** Joins the lines of a tree. */
export function joinErrorLines(lines: readonly string[]): string {
  return lines.join('\n').trim();
}
