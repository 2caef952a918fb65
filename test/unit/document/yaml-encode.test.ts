import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EncodableJson, type JsonValue, RawJson } from '../../../src/document/json.js';
import { encodeYaml, parseYaml } from '../../../src/document/yaml.js';
import { oddText } from './yaml-arbitraries.js';

const vectors = readFileSync('fixtures/vectors/json-to-yaml.jsonl', 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { json: string; yaml: string });

describe('core/yaml: the writer', () => {
  it.each(vectors)('writes $json with the bytes of Go', ({ json, yaml }) => {
    expect(encodeYaml(JSON.parse(json) as JsonValue)).toBe(yaml);
    // Beyond 64 bits Go makes a float of an integer.
    if (!/[0-9]{21}/.test(json)) expect(encodeYaml(new RawJson(json))).toBe(yaml);
  });

  it('keeps every digit of an integer', () => {
    const raw = new RawJson('{"a": 123456789012345678901234567890, "b": 9007199254740993, "c": "\\ue001"}');
    const expected = 'a: 123456789012345678901234567890\nb: 9007199254740993\nc: \ue001\n';
    expect(encodeYaml(raw)).toBe(expected);
    const exact = { a: 123456789012345678901234567890n, b: 9007199254740993n, c: '\ue001' };
    expect(encodeYaml(exact)).toBe(expected);
  });

  it('writes the numbers of raw JSON by their text', () => {
    expect(encodeYaml(new RawJson('[1.0, 1.50, 1e3, 1000000.0, -0, -0.0, 1E-7]'))).toBe(
      '- 1\n- 1.5\n- 1000\n- 1e+06\n- 0\n- -0\n- 1e-07\n',
    );
  });

  it('takes raw JSON anywhere', () => {
    const value: EncodableJson = { b: [new RawJson('{"d": [], "c": {"x": "y"}}')], a: new RawJson('"no"') };
    expect(encodeYaml(value)).toBe('a: "no"\nb:\n- c:\n    x: "y"\n  d: []\n');
  });

  it('quotes a key that would read back as a merge', () => {
    expect(encodeYaml({ '<<': { a: 1 } })).toBe('"<<":\n  a: 1\n');
  });

  it('replaces half a surrogate pair', () => {
    expect(encodeYaml(['a\ud83d', '\ude00b\n'])).toBe('- a\ufffd\n- |\n  \ufffdb\n');
  });

  it('refuses what is nested beyond the stack', () => {
    let value: JsonValue = 1;
    for (let level = 0; level < 100_000; level++) value = [value];
    expect(() => encodeYaml(value)).toThrow('nested too deeply');
  });

  it('writes what reads back as the same', () => {
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, tie('leaf'), fc.array(tie('value')), tie('object')),
      object: fc.dictionary(oddText, tie('value'), { noNullPrototype: true }),
      leaf: fc.oneof(
        oddText,
        fc.boolean(),
        fc.constant(null),
        fc.integer(),
        fc
          .double({ noNaN: true, noDefaultInfinity: true })
          .filter((number) => !Number.isInteger(number) || Number.isSafeInteger(number))
          .map((number) => number + 0),
        fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
      ),
    }));
    fc.assert(
      fc.property(value, (json) => {
        expect(parseYaml(encodeYaml(json as JsonValue))).toEqual(json);
      }),
      { numRuns: 500 },
    );
  });
});
