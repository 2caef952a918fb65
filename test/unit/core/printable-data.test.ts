import { expect, it } from 'vitest';
import { printableData } from '../../../src/core/printable.js';

it('escapes what terminals obey in data, and the data stays the same', () => {
  const value = { name: 'a\u009b31m\u202eb\u200b\u{e0041}', other: 'ö 日本 👩‍👩‍👧' };
  const shown = printableData(JSON.stringify(value));
  expect(shown).not.toMatch(/[\u0080-\u009f\u202e\u200b]|\u{e0041}/u);
  expect(shown).toContain('ö 日本 👩‍👩‍👧');
  expect(JSON.parse(shown)).toEqual(value);
  expect(printableData('\u001b[31mred\u001b[0m\n\t')).toBe('\u001b[31mred\u001b[0m\n\t');
});
