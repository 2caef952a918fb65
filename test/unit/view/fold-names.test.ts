import { describe, expect, it } from 'vitest';
import { foldNames } from '../../../src/view/page/fold-names.js';
import { listNames } from '../../../src/core/suggest.js';

describe('foldNames', () => {
  const names = (amount: number) => Array.from({ length: amount }, (_, index) => `n${100 + index}`);

  it('keeps three names of a list and counts the others', () => {
    const message = listNames('its skipRange ">=0.12.0, <1" covers higher versions:', names(9));
    const shown = 'its skipRange ">=0.12.0, <1" covers higher versions: "n100", "n101", "n102"';
    expect(foldNames(message)).toEqual({ shown, hidden: 6 });
    expect(foldNames(listNames('it has', names(4)))?.hidden).toBe(1);
  });

  it('counts names that the message omits', () => {
    expect(foldNames(listNames('it has', names(25)))).toEqual({
      shown: 'it has "n100", "n101", "n102"',
      hidden: 22,
    });
  });

  it('accepts quotes and commas in names', () => {
    const shown = String.raw`it has "a\", \"b", "c", "d"`;
    expect(foldNames(`${shown}, "e"`)).toEqual({ shown, hidden: 1 });
  });

  it('ignores other messages', () => {
    expect(foldNames(listNames('it has', names(3)))).toBeUndefined();
    expect(foldNames('"a", "b", "c", "d" are missing')).toBeUndefined();
    expect(foldNames('an error')).toBeUndefined();
    expect(foldNames('"\\"'.repeat(100_000))).toBeUndefined();
  });
});
