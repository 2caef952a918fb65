import fc from 'fast-check';
import { dump, load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../../src/document/json.js';
import { encodeYaml, parseYaml } from '../../../src/document/yaml.js';

/** Values that YAML 1.1 and 1.2 readers agree on: no numbers that either prints or rounds in its own way. */
const word = fc
  .stringMatching(/^[a-z][a-z ,.:#'"\\[\]{}&*!|>%@-]{0,40}$/)
  .filter((text) => !/^(y|n|on|off|yes|no)$/.test(text));
const leaf = fc.oneof(word, fc.integer({ min: -1_000_000, max: 1_000_000 }), fc.boolean(), fc.constant(null));
const tree = fc.letrec<{ node: JsonValue }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    leaf as fc.Arbitrary<JsonValue>,
    fc.array(tie('node'), { maxLength: 4 }),
    fc.dictionary(fc.stringMatching(/^[a-z]{1,8}[a-zA-Z]*$/), tie('node'), { maxKeys: 4 }),
  ),
})).node;

describe('core/yaml beside another implementation', () => {
  it('reads what js-yaml writes', () => {
    fc.assert(
      fc.property(tree, fc.integer({ min: -1, max: 5 }), fc.boolean(), (value, level, seqNoIndent) => {
        const text = dump(value, { flowLevel: level, seqNoIndent, noRefs: true });
        expect(parseYaml(text)).toEqual(value);
      }),
    );
  });

  it('writes what js-yaml reads', () => {
    fc.assert(
      fc.property(tree, (value) => {
        expect(load(encodeYaml(value))).toEqual(value);
      }),
    );
  });
});
