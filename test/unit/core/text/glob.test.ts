import { describe, expect, it } from 'vitest';
import { matchGlob } from '../../../../src/core/text/glob.js';

describe('matchGlob', () => {
  it.each([
    ['*.yaml', 'a.yaml', true],
    ['*.yaml', 'd/a.yaml', false],
    ['d/*.yaml', 'd/a.yaml', true],
    ['d/*', 'd/e/a', false],
    ['*/a*c', 'd/abc', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a/b/c', false],
    ['?', '\u{1f600}', true],
    ['?', '/', false],
    ['[a-c]x', 'bx', true],
    ['[^a-c]x', 'bx', false],
    ['[]a]', ']', false],
    ['[\\]a]', ']', true],
    ['\\*', '*', true],
    ['\\*', 'a', false],
    ['[a', 'a', false],
    ['', '', true],
    ['**', 'abc', true],
  ])('matches %j with %j as Go does: %j', (glob, path, isMatch) => {
    expect(matchGlob(glob, path)).toBe(isMatch);
  });

  it('takes time that grows with the length only', () => {
    expect(matchGlob(`${'*a'.repeat(200)}b`, 'a'.repeat(4000))).toBe(false);
  });
});
