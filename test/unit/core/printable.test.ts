import { describe, expect, it } from 'vitest';
import { printable, printableLine } from '../../../src/core/printable.js';

describe('core/printable', () => {
  it.each([
    ['escape sequences', 'a\u001b]0;title\u0007b', 'a\\x1b]0;title\\x07b'],
    ['C1 controls', 'a\u009b31mb', 'a\\x9b31mb'],
    ['overwriting a line', 'bad\rgood', 'bad\\x0dgood'],
    [
      'bidirectional overrides and isolates',
      'a\u202eb\u2066c\u2069\u200f',
      'a\\u202eb\\u2066c\\u2069\\u200f',
    ],
    ['what is not seen', 'a\u200bb\ufeffc\u2028d', 'a\\u200bb\\ufeffc\\u2028d'],
    ['tags', 'a\u{e0041}', 'a\\U000e0041'],
  ])('escapes %s', (_what, text, shown) => {
    expect(printable(text)).toBe(shown);
    expect(printableLine(text)).toBe(shown);
  });

  it('keeps letters of any script, emoji and their joiners', () => {
    const text = 'Größe 名前 שלום कक्\u200dष 👩\u200d💻';
    expect(printableLine(text)).toBe(text);
  });

  it('keeps tabs and line feeds in text of several lines only', () => {
    expect(printable('a\tb\nc')).toBe('a\tb\nc');
    expect(printableLine('a\tb\nc')).toBe('a\\x09b\\x0ac');
  });
});
