import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../../src/document/json.js';
import { encodeYaml } from '../../../src/document/yaml.js';
import { parseFastYaml } from '../../../src/document/yaml/fast.js';
import { parseFullYaml } from '../../../src/document/yaml/full.js';
import { oddText, plainText } from './yaml-arbitraries.js';

const LIMITS = { maxAliases: 1000, maxDepth: 1000 };

function parseFull(text: string): { value: JsonValue } | undefined {
  try {
    return { value: parseFullYaml(text, LIMITS) };
  } catch {
    return undefined;
  }
}

function expectSame(text: string): boolean {
  const fast = parseFastYaml(text, LIMITS.maxDepth);
  if (fast !== undefined) expect({ text, read: fast }).toEqual({ text, read: parseFull(text) });
  return fast !== undefined;
}

function jsonOf(text: fc.Arbitrary<string>): fc.Arbitrary<JsonValue> {
  const { value } = fc.letrec<{ value: JsonValue; object: JsonValue; leaf: JsonValue }>((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, tie('leaf'), fc.array(tie('value')), tie('object')),
    object: fc.dictionary(text, tie('value'), { noNullPrototype: true }),
    leaf: fc.oneof(text, fc.boolean(), fc.constant(null), fc.integer()),
  }));
  return fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { minKeys: 1, noNullPrototype: true });
}

/** Lines that documents are made of, well or badly. */
const LINES = [
  ...['a: 1', 'b:', '  c: d e', '  f: "g h', '    i"', '- x', '- y: z', '  w: v', '  - u', 'k: |', '  lit'],
  ...['   more', '', '  end', 'm: >-', '  fo', '  ld', 'n: {a: b, c: [1, 2]}', 'o: [x,', '  y]'],
  ...["p: 'q", "  r'"],
  ...['s: &anc', '  t: 1', 'u: *anc', 'v:', '- 1', '-  - 2', '   - 3', 'w: plain text', '  continued'],
  ...['# comment', 'x: # comment', 'y: !!str 1', '? z', ': zz', '---', '...', '"q": 1', "'r' : 2"],
  ...['  # note', 'l: |2-', '   i'],
];
const PIECES = [
  ...['a', ':', ': ', '- ', '-', '? ', '\n', '\n ', '\n  ', '\t', ' ', '  ', '#', ' # c', '"', "'"],
  ...['[', ']', '{', '}', ',', ', ', '&a ', '*a', '!!int ', '|', '>', '|-\n', '>+\n', '%', '@', '---\n'],
  ...['...', '<<: ', 'yes', '12', '~', 'null', '.inf', '\\', '\\n', '\\x41', '\\\n', '\r\n', '\u2028'],
  ...['é', '😀', '=', '08', '1_0', '2001-01-01'],
];

const QUOTED = [
  ...[' ', '\t', '\n', '\\ ', '\\\n', '\\\\', 'x', 'y z', '\\t', '\\\t', '\\"', '\\u0041', '\\/', '\\ud83d'],
  ...['\n  ', '\n---', '\n...', '  \n\n '],
];
const BLOCK_HEADS = ['|', '>', '|-', '>-', '|+', '>+', '|2', '>1-', '|+3', '| ', '> # c'];
const BLOCK_LINES = [
  '',
  ' ',
  '  ',
  '   ',
  '     ',
  '\t',
  'x',
  '# c',
  '  x',
  '   y z',
  '    # c',
  '  - a',
  '  \tx',
  '---',
];

describe('core/yaml: the quick way', () => {
  it('reads what the writer writes as the full reader does', () => {
    fc.assert(
      fc.property(jsonOf(oddText), (json) => {
        const text = encodeYaml(json);
        expectSame(text);
        expect(parseFull(text)).toEqual({ value: json });
      }),
      { numRuns: 300 },
    );
  });

  it('is taken for all ordinary text', () => {
    fc.assert(
      fc.property(jsonOf(plainText), (json) => {
        expect(parseFastYaml(encodeYaml(json), 1000)).toEqual({ value: json });
      }),
      { numRuns: 200 },
    );
  });

  it('reads any text as the full reader does, or not at all', () => {
    const lines = fc.array(fc.constantFrom(...LINES), { maxLength: 8 }).map((taken) => taken.join('\n'));
    const pieces = fc.array(fc.constantFrom(...PIECES), { maxLength: 14 }).map((taken) => taken.join(''));
    const cut = fc.record({ at: fc.nat(200), remove: fc.nat(3), insert: fc.constantFrom('', ...PIECES) });
    const mutated = fc.tuple(lines, fc.array(cut, { maxLength: 2 })).map(([text, cuts]) =>
      cuts.reduce((mutant, { at, remove, insert }) => {
        const place = at % (mutant.length + 1);
        return mutant.slice(0, place) + insert + mutant.slice(place + remove);
      }, text),
    );
    const quoted = fc
      .array(fc.constantFrom(...QUOTED), { maxLength: 10 })
      .map((taken) => `a: "${taken.join('')}"\nb: c\n`);
    const block = fc
      .tuple(fc.constantFrom(...BLOCK_HEADS), fc.array(fc.constantFrom(...BLOCK_LINES), { maxLength: 12 }))
      .map(([head, taken]) => `a:\n- ${head}\n${taken.join('\n')}`);
    fc.assert(
      fc.property(fc.oneof(mutated, mutated, pieces, quoted, block), (text) => {
        expectSame(text);
      }),
      { numRuns: 6000 },
    );
  });

  it('reads the manifests of real bundles as the full reader does', () => {
    let documents = 0;
    let fast = 0;
    for (const entry of readdirSync('fixtures/bundles', { recursive: true, withFileTypes: true })) {
      if (!/\.ya?ml$/.test(entry.name)) continue;
      const text = readFileSync(join(entry.parentPath, entry.name), 'utf8');
      documents++;
      if (expectSame(text)) fast++;
    }
    expect(documents).toBeGreaterThan(0);
    expect(fast / documents).toBeGreaterThan(0.9);
  });

  it.each([
    ['long runs of blanks in quotes', `a: "${' '.repeat(300_000)}x\n y"`],
    ['long runs of blanks behind an escape', `a: "\\n${' '.repeat(300_000)}x\n y"`],
    ['many folded lines', '- x\n  y\n'.repeat(50_000)],
    ['many backslashes', `a: "${'\\'.repeat(400_000)}"`],
    ['many digits', `- ${'1'.repeat(1_000_000)}`],
  ])('stays quick with %s', (_name, text) => {
    expect(expectSame(text)).toBe(true);
  });
});
