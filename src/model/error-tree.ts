/** A message with its causes. */
export interface ErrorTree {
  message: string;
  children: ErrorTree[];
}

/**
 * Renders a tree of errors with box-drawing lines, one message per line, as `opm` does: a message with children ends
 * with a colon. No final line break.
 */
export function renderErrorTree(tree: ErrorTree): string {
  return joinErrorLines([...errorLines(tree)]);
}

/** Yields the lines of a tree, for callers that pause between them; see `joinErrorLines`. */
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
