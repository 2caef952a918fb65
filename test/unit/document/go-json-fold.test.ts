import { describe, expect, it } from 'vitest';
import { foldFieldName } from '../../../src/document/go-json-fold.js';

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
