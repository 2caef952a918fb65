import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endOfValue, rawElements, rawFields } from '../../../src/document/raw-json.js';

const space = fc.constantFrom('', ' ', '\n\t', ' \r\n ');

describe('document/raw-json', () => {
  it('cuts any list into the texts of its elements', () => {
    fc.assert(
      fc.property(fc.array(fc.json()), space, (elements, gap) => {
        const text = `${gap}[${gap}${elements.join(`${gap},${gap}`)}${gap}]`;
        expect(rawElements(text)).toEqual(elements);
      }),
    );
  });

  it('cuts any object into names and texts', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), fc.json())), space, (fields, gap) => {
        const texts = fields.map(([key, value]) => `${JSON.stringify(key)}${gap}:${gap}${value}`);
        const text = `{${gap}${texts.join(`${gap},${gap}`)}${gap}}`;
        expect(rawFields(text)).toEqual(fields);
      }),
    );
  });

  it('finds the end of a value before anything that follows', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(' x', ',', ']', '\n{'), (json, after) => {
        expect(endOfValue(json + after, 0)).toBe(json.length);
      }),
    );
    expect(endOfValue('{"a', 0)).toBe(3);
    expect(endOfValue('', 0)).toBe(0);
  });
});
