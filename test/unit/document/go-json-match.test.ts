import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isEncodedAs } from '../../../src/document/go-json-match.js';
import { encodeGoJson } from '../../../src/document/go-json.js';
import type { JsonValue } from '../../../src/document/json.js';

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<JsonValue>;

/** Values with keys such as `0` are left to the encoder, which sorts them. */
function hasIndexKeys(value: JsonValue): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasIndexKeys);
  return Object.keys(value).some((key) => /^\d/.test(key)) || Object.values(value).some(hasIndexKeys);
}

describe('core/go-json-match', () => {
  it('says yes to exactly what the encoder writes', () => {
    fc.assert(
      fc.property(json, (value) => {
        fc.pre(!hasIndexKeys(value));
        expect(isEncodedAs(encodeGoJson(value, { indent: 4 }), value, 4)).toBe(true);
      }),
    );
  });

  it('never says yes to other text with the same value', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(0, 1, 2, 4), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(isEncodedAs(text, value, 4) && text !== encodeGoJson(value, { indent: 4 })).toBe(false);
      }),
    );
  });

  it.each([
    ['"\u2028"', '\u2028'],
    ['"\\u003c"', '<'],
    ['"a\\/b"', 'a/b'],
    ['"\\u0041"', 'A'],
    ['1.0', 1],
    ['1e3', 1000],
    ['{"a": 1}', { a: 1 }],
  ])('says no to %s', (text, value) => {
    expect(isEncodedAs(text, value, 4)).toBe(false);
  });
});
