import { describe, expect, it } from 'vitest';
import { parseJsonPath } from '../../../src/helm/json-path.js';

const root = { items: [{ name: 'a', n: 1 }, { name: 'b', n: 2 }, { name: 'c' }], 'x.y': 'dotted' };

describe('parseJsonPath', () => {
  it.each<[string, string[]]>([
    ['{.items[*].name}', ['a', 'b', 'c']],
    ['{.items[0:2].name}', ['a', 'b']],
    ['{.items[-1].name}', ['c']],
    ['{.items[0,2].name}', ['a', 'c']],
    ['{.items[?(@.n>=2)].name}', ['b']],
    ['{.items[?(@.n)].name}', ['a', 'b']],
    ['{..name}', ['a', 'b', 'c']],
    ["{['x.y']}", ['dotted']],
    ['{.x\\.y}', ['dotted']],
    ['image: {.items[0].name}!', ['image: ', 'a', '!']],
    ['{.missing}', []],
  ])('%s', (text, expected) => {
    expect(parseJsonPath(text).find(root)).toEqual(expected);
  });

  it.each([
    ['{.items', 'unclosed action'],
    ["{['x}", 'unterminated quoted string'],
    ['{.items[a]}', 'invalid array index [a]'],
    ['{.items[?(@.n}', 'unterminated filter'],
    ['{)}', 'unrecognized character ")"'],
  ])('%s: %s', (text, problem) => {
    expect(() => parseJsonPath(text)).toThrow(problem);
  });
});
