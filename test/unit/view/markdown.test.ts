import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MarkdownNode, parseInline, parseMarkdown, toWebUrl } from '../../../src/view/page/markdown.js';

describe('parseMarkdown', () => {
  it('reads headings, paragraphs, lists, code and rules', () => {
    const text = [
      '# Title #',
      'first line',
      'second line',
      '',
      'Underlined',
      '---',
      '* one',
      '  goes on',
      '* two',
      '1. first',
      '',
      '```yaml',
      'kind: A',
      '  # not a heading',
      '```',
      '***',
    ].join('\r\n');
    expect(parseMarkdown(text)).toEqual([
      { tag: 'h4', content: ['Title'] },
      { tag: 'p', content: ['first line second line'] },
      { tag: 'h5', content: ['Underlined'] },
      {
        tag: 'ul',
        content: [
          { tag: 'li', content: ['one goes on'] },
          { tag: 'li', content: ['two'] },
        ],
      },
      { tag: 'ol', content: [{ tag: 'li', content: ['first'] }] },
      { tag: 'pre', content: [{ tag: 'code', content: ['kind: A\n  # not a heading'] }] },
      { tag: 'hr', content: [] },
    ]);
  });

  it('reads an unclosed fence as code, and an empty text as no blocks', () => {
    expect(parseMarkdown('```\na')).toEqual([{ tag: 'pre', content: [{ tag: 'code', content: ['a'] }] }]);
    expect(parseMarkdown('')).toEqual([]);
  });
});

describe('parseInline', () => {
  it.each<[string, MarkdownNode[]]>([
    ['a **b** _c_', ['a ', { tag: 'strong', content: ['b'] }, ' ', { tag: 'em', content: ['c'] }]],
    ['`<b>` and ``a`b``', [{ tag: 'code', content: ['<b>'] }, ' and ', { tag: 'code', content: ['a`b'] }]],
    ['snake_case_name 2 * 3 * 4', ['snake_case_name 2 * 3 * 4']],
    ['\\*not\\*', ['*not*']],
    ['[a](https://x.test/ "t")', [{ tag: 'a', url: 'https://x.test/', content: ['a'] }]],
    ['[a](javascript:run())', ['a', ')']],
    ['[a](data:text/html,x)', ['a']],
    ['![logo](https://x.test/a.png)', ['logo']],
    [
      'see https://x.test/a.',
      ['see ', { tag: 'a', url: 'https://x.test/a', content: ['https://x.test/a'] }, '.'],
    ],
    ['<https://x.test/>', [{ tag: 'a', url: 'https://x.test/', content: ['https://x.test/'] }]],
    ['<img src=x onerror=run()>', ['<img src=x onerror=run()>']],
    ['[open', ['[open']],
  ])('%s', (text, expected) => {
    expect(parseInline(text)).toEqual(expected);
  });

  it('links to http and https URLs only', () => {
    const urls = (pieces: MarkdownNode[]): string[] =>
      pieces.flatMap((piece) =>
        typeof piece === 'string'
          ? []
          : [...(piece.url === undefined ? [] : [piece.url]), ...urls(piece.content)],
      );
    const words = fc.constantFrom(
      'a',
      '*',
      '**',
      '_',
      '`',
      '[',
      ']',
      '](',
      ')',
      '!',
      'javascript:',
      '<',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(words, fc.constant('https://x.test/'), fc.string())), (parts) => {
        for (const url of urls(parseInline(parts.join('')))) expect(url).toMatch(/^https?:\/\//);
      }),
    );
  });

  it('takes linear time for unclosed elements', () => {
    for (const part of ['[', '*a', '`', '_a ', '![', '<', 'http://', '**a']) {
      expect(parseInline(part.repeat(50_000)).length).toBeGreaterThan(0);
    }
  });
});

describe('toWebUrl', () => {
  it.each(['javascript:alert(1)', ' https://a.test', 'https:', '//a.test', 'java\nscript:x', 'file:///etc'])(
    '%s is none',
    (text) => {
      expect(toWebUrl(text)).toBeUndefined();
    },
  );
});
