import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EncodableJson, type JsonValue, RawJson } from '../../../src/document/json.js';
import { encodeYaml, parseYaml } from '../../../src/document/yaml.js';
import { encodeYamlDocument } from '../../../src/document/yaml/present.js';

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.stringMatching(/^[-a-z0-9 :#'"\\[\]{}&*!|>%@`,?~=._\n]{0,60}$/),
  fc.constantFrom(
    'yes',
    'y',
    'null',
    '~',
    '012',
    '0x1F',
    '1:23',
    '2020-01-01',
    '1e3',
    '<<',
    '---',
    '...',
    '- ',
    'a\n\n',
  ),
);
const leaf = fc.oneof(
  text,
  fc.boolean(),
  fc.constant(null),
  fc.integer(),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n)),
);
const { tree } = fc.letrec<{ tree: EncodableJson }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf as fc.Arbitrary<EncodableJson>,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(
      text.filter((key) => key !== '__proto__'),
      tie('tree'),
      { maxKeys: 4 },
    ),
  ),
}));

describe('YAML of documents', () => {
  it('reads back as the same value', () => {
    fc.assert(
      fc.property(tree, (value) => {
        expect(parseYaml(encodeYamlDocument(value))).toEqual(value);
      }),
      { numRuns: 1000 },
    );
  });

  it('has the bytes of catalogs where no line is long and no character is beyond the basic plane', () => {
    // js-yaml quotes a lone `=`, the default value of YAML 1.1.
    const word = fc
      .stringMatching(/^[-a-z0-9 :#'"[\]{}&*!|>%@`,?~=.]{0,12}$/)
      .filter((value) => value !== '=');
    const { short } = fc.letrec<{ short: EncodableJson }>((tie) => ({
      short: fc.oneof(
        { maxDepth: 4 },
        fc.oneof(word, fc.boolean(), fc.constant(null), fc.integer()) as fc.Arbitrary<EncodableJson>,
        fc.array(tie('short'), { maxLength: 3 }),
        fc.dictionary(word, tie('short'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(short, (value) => {
        expect(encodeYamlDocument(value)).toBe(encodeYaml(value));
      }),
      { numRuns: 1000 },
    );
  });

  it('folds no line', () => {
    for (const long of [
      'word '.repeat(40).trim(),
      "it's ".repeat(40).trim(),
      `\u0001 ${'word '.repeat(40)}`,
    ]) {
      const value = { long } as JsonValue;
      expect(encodeYaml(value).trimEnd().split('\n').length).toBeGreaterThan(1);
      expect(encodeYamlDocument(value).trimEnd()).not.toContain('\n');
      expect(parseYaml(encodeYamlDocument(value))).toEqual(value);
    }
  });

  it('keeps the digits of numbers in raw JSON', () => {
    const raw = new RawJson('{"large":12345678901234567890,"float":1.0,"text":"1"}');
    expect(encodeYamlDocument({ raw })).toBe(
      'raw:\n  float: 1\n  large: 12345678901234567890\n  text: "1"\n',
    );
  });

  it('refuses values that are nested too deeply', () => {
    let value: JsonValue = 1;
    for (let depth = 0; depth < 100_000; depth++) value = [value];
    expect(() => encodeYamlDocument(value)).toThrow('nested too deeply');
  });
});
