import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../../src/document/json.js';
import { YamlError, parseYaml } from '../../../src/document/yaml.js';

interface Vector {
  yaml: string;
  json?: string;
  err?: string;
}

const vectors = ['yaml-to-json', 'yaml-to-json-syntax'].flatMap((name) =>
  readFileSync(`fixtures/vectors/${name}.jsonl`, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Vector),
);

/** What is taken although Go refuses it. */
const LENIENT = new Map([['a: "\\/"', '{"a":"/"}']]);

/** Go's message, with its types spelled in its own way where Go prints them. */
function ourMessage(err: string): string {
  return err
    .replace(/^unsupported map key.*: <nil>, value.*/, 'yaml: unsupported map key: null')
    .replace(/^unsupported map key.*/, 'yaml: unsupported map key: 18446744073709551615')
    .replace(/invalid map key: map.*/, 'invalid map key: a mapping')
    .replace(/invalid map key: \[.*/, 'invalid map key: a sequence');
}

/** JSON text as Go writes it: keys sorted, integers whole. */
function goJson(value: JsonValue): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const member = (key: string): string => `${goText(key)}:${goJson(value[key] as JsonValue)}`;
    return `{${Object.keys(value).sort().map(member).join(',')}}`;
  }
  return typeof value === 'string' ? goText(value) : JSON.stringify(value);
}

function goText(text: string): string {
  const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(text).replace(/[<>&\u2028\u2029]/g, escape);
}

describe('core/yaml: the reader', () => {
  it.each(vectors.filter(({ json }) => json !== undefined))('reads $yaml as Go does', ({ yaml, json }) => {
    expect(goJson(parseYaml(yaml))).toBe(json);
  });

  it.each(vectors.filter(({ err }) => err !== undefined))('refuses $yaml as Go does', ({ yaml, err }) => {
    const lenient = LENIENT.get(yaml);
    if (lenient !== undefined) {
      expect(goJson(parseYaml(yaml))).toBe(lenient);
      return;
    }
    const read = (): JsonValue => parseYaml(yaml);
    expect(read).toThrow(YamlError);
    expect(read).toThrow(ourMessage(err as string));
  });

  it('takes a surrogate pair, as JSON writes it', () => {
    expect(parseYaml('a: "\\ud83d\\ude00"')).toEqual({ a: '😀' });
    expect(() => parseYaml('a: "\\ude00"')).toThrow('found invalid Unicode character escape code');
  });

  it('reports the true line next to the line in the message', () => {
    const lineOf = (text: string): number | undefined => {
      try {
        parseYaml(text);
      } catch (error) {
        return (error as YamlError).line;
      }
      return undefined;
    };
    expect(lineOf('a: b\nc: d: e\n')).toBe(2);
    expect(lineOf('a: @b\n')).toBe(1);
    expect(lineOf('a:\n  b: *c\n')).toBe(2);
    expect(lineOf('a:\n  ~: c\n')).toBe(2);
    expect(lineOf('a: b\nc: \u0007\n')).toBe(2);
  });

  it('keeps a key __proto__ as an own property', () => {
    for (const text of ['__proto__: {a: 1}', '__proto__:\n  a: 1\n', '? __proto__\n: a: 1\n']) {
      const value = parseYaml(text) as Record<string, JsonValue>;
      expect(Object.keys(value)).toEqual(['__proto__']);
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    }
  });

  it('reads a thousand levels and refuses more', () => {
    const block = (levels: number): string => {
      return Array.from({ length: levels }, (_, level) => `${' '.repeat(level)}a:\n`).join('');
    };
    const flow = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
    for (const text of [
      block(1000),
      flow(1000),
      '- '.repeat(1000),
      `${block(999)}${' '.repeat(999)}&x b: c`,
    ]) {
      expect(() => parseYaml(text)).not.toThrow();
    }
    for (const text of [block(1001), flow(1001), flow(200_000), '- '.repeat(1001)]) {
      expect(() => parseYaml(text)).toThrow('exceeded max depth of 1000');
    }
    expect(() => parseYaml(flow(9000), { maxDepth: 10_000 })).toThrow('nested too deeply');
  });

  it('refuses aliases that multiply', () => {
    const lists = Array.from('bcdefghij', (name, i) => {
      return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${'abcdefghi'.charAt(i)}`).join(', ')}]`;
    });
    const laughs = ['a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]', ...lists].join('\n');
    expect(() => parseYaml(laughs)).toThrow('document contains excessive aliasing');
    const text = `a: &a ${'x'.repeat(1_000_000)}\nb: [${'*a, '.repeat(100)}]`;
    expect(() => parseYaml(text)).toThrow('document contains excessive aliasing');
    const many = `a: &a b\nc: [${'*a, '.repeat(50)}]`;
    expect(() => parseYaml(many, { maxAliases: 49 })).toThrow('more than 49 aliases');
    const fifty = Array.from({ length: 50 }, () => 'b');
    expect(parseYaml(many, { maxAliases: 50 })).toEqual({ a: 'b', c: fifty });
  });
});
