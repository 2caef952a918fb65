import { execFileSync } from 'node:child_process';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diffLines } from '../../../../src/core/text/line-diff.js';
import { directoryWith } from '../../../support/temporary.js';

describe('core/text/line-diff', () => {
  it('shows the lines that differ, with three around them', () => {
    const before = Array.from({ length: 20 }, (_, at) => `${at}\n`).join('');
    const after = before.replace('\n5\n', '\n5a\n5b\n').replace('19\n', '19');
    expect(diffLines(before, after)).toEqual({
      text:
        '@@ -3,7 +3,8 @@\n 2\n 3\n 4\n-5\n+5a\n+5b\n 6\n 7\n 8\n' +
        '@@ -17,4 +18,4 @@\n 16\n 17\n 18\n-19\n+19\n\\ No newline at end of file\n',
      addedLines: 1,
    });
  });

  it('numbers lines from where the texts begin', () => {
    const numbers = { firstOldLine: 11, firstNewLine: 14 };
    expect(diffLines('', 'a\n', numbers).text).toBe('@@ -10,0 +14,1 @@\n+a\n');
    expect(diffLines('a\n', '', numbers).text).toBe('@@ -11,1 +13,0 @@\n-a\n');
  });

  const patched = async (older: string, newer: string): Promise<string> => {
    const diff = diffLines(older, newer).text;
    if (diff === '') return older;
    const directory = await directoryWith({ old: older, patch: `--- old\n+++ old\n${diff}` });
    execFileSync('patch', ['-s', '-F0', path.join(directory, 'old'), path.join(directory, 'patch')]);
    return execFileSync('cat', [path.join(directory, 'old')], { encoding: 'utf8' });
  };

  it('gives patches that make the one text of the other', async () => {
    const line = fc.constantFrom('a', 'b', 'c', '- d', '');
    const text = fc.array(line, { maxLength: 40 }).map((lines) => lines.map((one) => `${one}\n`).join(''));
    await fc.assert(
      fc.asyncProperty(text, text, async (older, newer) => {
        const diff = diffLines(older, newer).text;
        const kept = (sign: string): string =>
          diff
            .split('\n')
            .filter((one) => one.startsWith(sign))
            .join('\n');
        expect(diff === '').toBe(older === newer);
        expect(kept('@@').length > 0).toBe(older !== newer);
        if (older !== '' && newer !== '') expect(await patched(older, newer)).toBe(newer);
      }),
      { numRuns: 60 },
    );
  });

  it('shows what is too different as replaced, and stays quick', async () => {
    const many = (prefix: string): string =>
      Array.from({ length: 20_000 }, (_, index) => `${prefix}${index}\n`).join('');
    const { text: diff } = diffLines(`same\n${many('a')}end\n`, `same\n${many('b')}end\n`);
    expect(diff.startsWith('@@ -1,20002 +1,20002 @@\n same\n-a0\n-a1\n')).toBe(true);
    expect(await patched(`same\n${many('a')}end\n`, `same\n${many('b')}end\n`)).toBe(
      `same\n${many('b')}end\n`,
    );
  });
});
