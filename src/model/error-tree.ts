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
  const lines: string[] = [];
  const add = (node: ErrorTree, own: string, below: string): void => {
    lines.push(`${own}${node.message}${node.children.length > 0 ? ':' : ''}`);
    node.children.forEach((child, index) => {
      const last = index === node.children.length - 1;
      add(child, below + (last ? '└── ' : '├── '), below + (last ? '    ' : '│   '));
    });
  };
  add(tree, '', '');
  return lines.join('\n').trim();
}
