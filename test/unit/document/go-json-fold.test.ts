import { describe, expect, it } from 'vitest';
import { findField, findFieldKeys, foldFieldName } from '../../../src/document/go-json-fold.js';

describe('core/go-json-fold', () => {
  it.each([
    ['defaultChannel', 'DEFAULTchannel'],
    ['skips', 'ſKIPſ'],
    ['kind', '\u212aind'],
    ['x-descriptors', 'X-Descriptors'],
  ])('takes %s and %s for the same field', (name, key) => {
    expect(foldFieldName(key)).toBe(foldFieldName(name));
  });

  it.each([
    ['class', 'claß'],
    ['kind', 'kınd'],
    ['kind', 'KİND'],
    ['specified', 'speciﬁed'],
    ['skip_range', 'skipRange'],
  ])('tells %s and %s apart', (name, key) => {
    expect(foldFieldName(key)).not.toBe(foldFieldName(name));
  });
});

describe('findField', () => {
  it('takes the key that is last in byte order, whatever the order of the object', () => {
    expect(findField({ image: 'a', IMAGE: 'b', Image: 'c' }, 'image')).toBe('a');
    expect(findField({ relatedimages: [1], relatedImages: [2] }, 'relatedImages')).toEqual([1]);
    expect(findField({ ſpec: 1, spec: 2 }, 'spec')).toBe(1);
  });

  it('finds a null and no key of another name', () => {
    expect(findField({ Data: null }, 'data')).toBeNull();
    expect(findField({ datas: 1, __proto__: 1 }, 'data')).toBeUndefined();
    expect(findFieldKeys({ b: 1, KIND: 1, ['\u212aind']: 1, kind: 1 }, 'kind')).toEqual([
      'KIND',
      'kind',
      '\u212aind',
    ]);
  });
});
