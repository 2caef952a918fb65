import { describe, expect, it } from 'vitest';
import { YamlError, parseYaml, parseYamlWithPlaces } from '../../../src/document/yaml.js';

describe('core/yaml: places', () => {
  const text = ['kind: Set', 'mirror:', '  list:', '  - name: a', '    "odd": [x, {z: 1}]', '  - *one'];

  it('says where keys and items stand', () => {
    const document = ['one: &one {deep: 2}', ...text].join('\n');
    const placed = parseYamlWithPlaces(document);
    expect(placed.value).toEqual(parseYaml(document));
    const at = (...path: (string | number)[]): string => {
      const place = placed.findPlace(path);
      return `${place?.line}:${place?.column}`;
    };
    expect(at('kind')).toBe('2:1');
    expect(at('mirror', 'list')).toBe('4:3');
    expect(at('mirror', 'list', 0, 'name')).toBe('5:5');
    expect(at('mirror', 'list', 0, 'odd')).toBe('6:5');
    expect(at('mirror', 'list', 0, 'odd', 0)).toBe('6:13');
    expect(at('mirror', 'list', 0, 'odd', 1, 'z')).toBe('6:17');
    expect(at('mirror', 'list', 1)).toBe('7:5');
    expect(at('mirror', 'list', 1, 'deep')).toBe('1:12');
    expect(placed.findPlace(['absent'])).toBeUndefined();
    expect(placed.furtherDocument).toBeUndefined();
  });

  it('finds keys that are there twice, in JSON too', () => {
    expect(parseYamlWithPlaces('a: 1\nb:\n  c: 1\n  "c": 2\n').duplicates).toEqual([
      { path: ['b', 'c'], place: { line: 4, column: 3 }, first: { line: 3, column: 3 } },
    ]);
    expect(parseYamlWithPlaces('{"a": 1, "a": 2}').duplicates).toHaveLength(1);
    // A merge gives defaults, which may be replaced.
    expect(parseYamlWithPlaces('x: &x {a: 1}\ny: {<<: *x, a: 2}\n').duplicates).toEqual([]);
    // What an anchor holds is one place, however often it is used.
    expect(parseYamlWithPlaces('x: &x {a: 1, a: 2}\ny: *x\nz: *x\n').duplicates).toHaveLength(1);
  });

  it('notices a second document', () => {
    expect(parseYamlWithPlaces('a: 1\n---\nb: 2\n').furtherDocument).toEqual({ line: 2, column: 1 });
    expect(parseYamlWithPlaces('---\na: 1\n...\n').furtherDocument).toBeUndefined();
  });

  it('refuses what is not YAML with its line', () => {
    expect(() => parseYamlWithPlaces('a: 1\n  b: [')).toThrow(YamlError);
  });
});
