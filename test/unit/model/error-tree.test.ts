import { expect, it } from 'vitest';
import { type ErrorTree, renderErrorTree } from '../../../src/model/error-tree.js';

function tree(message: string, ...children: ErrorTree[]): ErrorTree {
  return { message, children };
}

it('model/error-tree draws the lines of earlier branches through later ones', () => {
  const text = renderErrorTree(
    tree('root', tree('a', tree('b', tree('c')), tree('d')), tree('e', tree('f'))),
  );
  expect(text).toBe(
    ['root:', '├── a:', '│   ├── b:', '│   │   └── c', '│   └── d', '└── e:', '    └── f'].join('\n'),
  );
});

it('model/error-tree writes a message without children without a colon', () => {
  expect(renderErrorTree(tree('root'))).toBe('root');
});
