import { describe, expect, it } from 'vitest';
import {
  getList,
  getObject,
  getObjects,
  getText,
  getTexts,
  getValue,
} from '../../../src/document/json-fields.js';

const object = JSON.parse(
  '{"metadata":{"name":"demo","labels":{"a":"1"},"count":2,"none":null},"items":["x",1,{"k":"v"},null,[]],"__proto__":{"own":"yes"}}',
) as unknown;

describe('fields of JSON of unknown shape', () => {
  it('reads a value at a path and undefined where the path ends early', () => {
    expect(getValue(object, 'metadata', 'count')).toBe(2);
    expect(getValue(object, 'metadata', 'none')).toBeNull();
    expect(getValue(object, 'metadata', 'name', 'deeper')).toBeUndefined();
    expect(getValue(object, 'items', '0')).toBeUndefined();
    expect(getValue(undefined, 'metadata')).toBeUndefined();
  });

  it('reads own keys only', () => {
    expect(getValue(object, 'constructor')).toBeUndefined();
    expect(getText(object, '__proto__', 'own')).toBe('yes');
    expect(getObject({}, '__proto__')).toEqual({});
  });

  it('reads what is of another type as absent', () => {
    expect(getText(object, 'metadata', 'count')).toBe('');
    expect(getObject(object, 'items')).toEqual({});
    expect(getList(object, 'metadata')).toEqual([]);
  });

  it('leaves out items of another type', () => {
    expect(getTexts(object, 'items')).toEqual(['x']);
    expect(getObjects(object, 'items')).toEqual([{ k: 'v' }]);
  });
});
