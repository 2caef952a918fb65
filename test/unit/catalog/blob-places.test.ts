import { describe, expect, it, vi } from 'vitest';
import { findBlobLines } from '../../../src/catalog/blob-places.js';

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

describe('catalog/blob-places', () => {
  it.each<[(string | number)[], number, number]>([
    [[], 0, 0],
    [['entries'], 2, 5],
    [['entries', 0, 'skips', 1], 3, 9],
    [['entries', 1], 4, 10],
    [['entries', 1, 'replaces'], 6, 11],
    [['entries', 1, 'missing'], 4, 10],
    [['missing'], 0, 0],
  ])('finds the line of %j', (path, inJson, inYaml) => {
    expect(findBlobLines(json, 'json')(path)).toBe(inJson);
    expect(findBlobLines(yaml, 'yaml')(path)).toBe(inYaml);
  });
});

describe('catalog/blob-places: any number of places', () => {
  const count = 2000;
  const entries = Array.from({ length: count }, (_, index) => ({ name: `n${index}`, skips: ['a'] }));
  const pretty = JSON.stringify({ schema: 'olm.channel', entries }, null, 1);
  const block = `schema: olm.channel\nentries:\n${entries.map(({ name }) => `- name: ${name}\n  skips:\n  - a\n`).join('')}`;

  it('finds the line of every entry, from the last to the first', () => {
    const json = findBlobLines(pretty, 'json');
    const yaml = findBlobLines(block, 'yaml');
    for (let index = count - 1; index >= 0; index--) {
      const path = ['entries', index, 'skips', 0];
      expect([json(path), yaml(path)]).toEqual([6 + index * 6, 4 + index * 3]);
    }
  });

  it('reads the keys of a blob once, however many places are asked for', () => {
    const places = findBlobLines(pretty, 'json');
    const parse = vi.spyOn(JSON, 'parse');
    try {
      for (let index = 0; index < count; index++) places(['entries', index, 'name']);
      expect(parse.mock.calls.length).toBeLessThanOrEqual(count + 2);
    } finally {
      parse.mockRestore();
    }
  });
});
