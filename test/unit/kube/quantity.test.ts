import { describe, expect, it } from 'vitest';
import { canonicalQuantity } from '../../../src/kube/quantity.js';

describe('kube/quantity', () => {
  it.each([
    ['1000m', '1'],
    ['0.5', '500m'],
    ['.5', '500m'],
    ['100m', '100m'],
    ['1500m', '1500m'],
    ['2', '2'],
    ['1000', '1k'],
    ['1024Mi', '1Gi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['100Mi', '100Mi'],
    ['1e3', '1e3'],
    ['12E', '9223372036854775807'],
    ['1E', '1E'],
    ['0', '0'],
    ['0.0Mi', '0'],
    ['0.1n', '1n'],
    ['-1500m', '-1500m'],
    ['+3', '3'],
  ])('writes %s as %s', (given, canonical) => {
    expect(canonicalQuantity(given)).toBe(canonical);
  });

  it.each(['', 'Mi', '.', '1Qi', '1 000', '1e', '0x10', `1e${'9'.repeat(200)}`, '1'.repeat(101)])(
    'refuses %s',
    (given) => {
      expect(canonicalQuantity(given)).toBeUndefined();
    },
  );
});
