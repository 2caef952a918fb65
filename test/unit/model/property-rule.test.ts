import { describe, expect, it } from 'vitest';
import { compilePropertyRule, findRuleFault } from '../../../src/model/property-rule.js';

const properties = [
  { type: 'olm.package', value: { packageName: 'anvil', version: '1.2.0-rc.1' } },
  { type: 'tier', value: 2 },
  { type: 'features', value: ['tls', 'ha'] },
  { type: 'nothing', value: null },
];

describe('findRuleFault', () => {
  it.each([
    "properties.exists(p, p.type == 'olm.test' && (semver_compare(p.value, '1.0.0') == 0))",
    'properties.all(p, p["type"] in ["a", "b"]) ? true : !false',
    'size(properties) > 0 // all of them',
    '"a\\"b" == r"a\\d" || {"a": 1}.a == -1',
    'has(properties[0].value)',
    'properties.exists(p, dyn(p.value).exists(f, f == "tls"))',
  ])('accepts %s', (text) => {
    expect(findRuleFault(text)).toBeUndefined();
  });

  it.each([
    ['1 +', 'Unexpected token: EOF at character 4'],
    ['x == 1', 'Unknown variable: x at character 1'],
    ['foo(1)', "undeclared reference to 'foo' (in container '') at character 1"],
    ['properties.all(p, true) && p', 'Unknown variable: p at character 28'],
    ['a # b', 'Unexpected character: # at character 3'],
    ['1', 'cel expressions must have type Bool'],
    ['1 < 1.5', 'no such overload: int < double at character 1'],
    ['99999999999999999999 > 0', 'invalid int literal at character 1'],
    [
      'properties.exists(p, p.value.exists(f, true))',
      "expression of type 'any' cannot be range of a comprehension at character 22",
    ],
    ['"a,b".split(",").size() == 2', "undeclared reference to 'split' (in container '') at character 1"],
    [`${' '.repeat(200_000)}true`, 'longer than 131072 characters'],
  ])('refuses %.40s', (text, fault) => {
    expect(findRuleFault(text)).toBe(fault);
  });

  it.each([
    '('.repeat(5000),
    `${'!'.repeat(50_000)}true`,
    `true${' && true'.repeat(15_000)}`,
    `true${' && true'.repeat(9000)}`,
  ])('limits depth and size of %.20s…', (text) => {
    expect(findRuleFault(text)).toMatch(/^(Exceeded max|nested too deeply$)/);
  });
});

describe('compilePropertyRule', () => {
  const evaluate = (rule: string): { holds: boolean; error?: string } =>
    compilePropertyRule(rule).evaluate(properties);

  it.each([
    'properties.exists(p, p.type == "tier" && p.value > 1 && p.value == 2)',
    'properties.exists(p, p.value == ["tls", "ha"])',
    'properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "v1.2") == -1)',
    'properties.exists(p, has(p.value.packageName)) == false || properties[3].value == null',
    'properties.exists(p, true) && 1 < 1.5',
    '"anvil".matches("(?i)^AN") && "x-y".matches("^[[:alpha:]]-")',
    'semver_compare("01.2", "1.2.0") == 0',
  ])('%s holds', (rule) => {
    expect(evaluate(rule)).toEqual({ holds: true });
  });

  it.each([
    ['properties[9].type == "x"', /^No such key/],
    ['properties.exists(p, p.type == "tier" && p.value + 1 == 3)', /^no such overload/],
    ['semver_compare("x", "1") == 0', /^unable to parse 'x' to semver format/],
    ['matches("a", "[")', /^error parsing regexp/],
  ])('%s does not hold: it fails', (rule, error) => {
    expect(evaluate(rule)).toEqual({ holds: false, error: expect.stringMatching(error) as string });
  });

  it('stops a rule whose evaluation has no end', () => {
    const values = Array.from({ length: 200 }, (_, index) => ({ type: 'a', value: index }));
    const nested = (depth: number): string =>
      depth === 0 ? 'true' : `properties.all(p${depth}, ${nested(depth - 1)})`;
    expect(compilePropertyRule(nested(8)).evaluate(values)).toEqual({
      holds: false,
      error: 'timed out after 1000 ms',
    });
    expect(evaluate(`"${'a'.repeat(40)}b".matches("^(a+)+$")`)).toEqual({
      holds: false,
      error: 'timed out after 1000 ms',
    });
  });
});

describe('text that the engine reads otherwise', () => {
  // Results of cel-go 0.26 with an empty list.
  it.each<[string, boolean | 'refused']>([
    [String.raw`r"\" == "\\"`, true],
    [String.raw`r'''\''' == "\\"`, true],
    [String.raw`br"\" == b"\\"`, true],
    [String.raw`rb"\" == b"\\"`, 'refused'],
    [String.raw`r"a\"b" == "x"`, 'refused'],
    [String.raw`"a\"b" == r'a"b'`, true],
    ['.properties.size() == 0', true],
    ['.  properties.size() == 0', true],
    ['.size(properties) == 0', true],
    ['[.properties].size() == 1', true],
    ['1 + .properties.size() == 1', true],
    ['properties.exists(p, .properties.size() == 0)', false],
    ['[1].exists(properties, .properties.size() == 0)', 'refused'],
    ['"a .b" == "a" + " .b" // .c', true],
  ])('%s', (rule, expected) => {
    const evaluate = (): boolean | 'refused' => {
      try {
        return compilePropertyRule(rule).evaluate([]).holds;
      } catch {
        return 'refused';
      }
    };
    expect(evaluate()).toBe(expected);
  });
});
