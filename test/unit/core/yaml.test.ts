import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../../src/core/json.js';
import { YamlError, parseYaml } from '../../../src/core/yaml.js';

interface Vector {
  yaml: string;
  json?: string;
  err?: string;
}

const vectors = readFileSync('fixtures/vectors/yaml-to-json.jsonl', 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Vector);

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
  const escape = (char: string): string => `\\u00${char.charCodeAt(0).toString(16)}`;
  return JSON.stringify(text).replace(/[<>&]/g, escape);
}

describe('core/yaml: the reader', () => {
  it.each(vectors.filter((vector) => vector.err === undefined))('reads $yaml', ({ yaml, json }) => {
    expect(goJson(parseYaml(yaml))).toBe(json);
  });

  it.each(vectors.filter((vector) => vector.err !== undefined))('refuses $yaml', ({ yaml, err }) => {
    // Where Go prints its own types, only the meaning is kept.
    const wanted = err?.replace(/^unsupported map key.*/, 'yaml: unsupported map key: null');
    const read = (): JsonValue => parseYaml(yaml);
    expect(read).toThrow(YamlError);
    expect(read).toThrow(wanted as string);
  });
});
