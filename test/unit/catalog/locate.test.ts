import { describe, expect, it } from 'vitest';
import { linesDownTo } from '../../../src/catalog/locate.js';

const json = `{
    "schema": "olm.channel",
    "entries": [
        { "name": "a }", "skips": ["x", "y"] },
        {
            "name": "b",
            "replaces": "a"
        }
    ]
}`;

const yaml = `---
schema: olm.channel
description: |
  entries:
  - name: not this
entries:
- name: a
  skips:
  - x
  - y
- name: b
  replaces: a
`;

describe('catalog/locate', () => {
  it.each<[(string | number)[], number, number]>([
    [[], 0, 0],
    [['entries'], 2, 5],
    [['entries', 0, 'skips', 1], 3, 9],
    [['entries', 1], 4, 10],
    [['entries', 1, 'replaces'], 6, 11],
    [['entries', 1, 'missing'], 4, 10],
    [['missing'], 0, 0],
  ])('finds the line of %j', (path, inJson, inYaml) => {
    expect(linesDownTo(json, 'json', path)).toBe(inJson);
    expect(linesDownTo(yaml, 'yaml', path)).toBe(inYaml);
  });
});
