import { describe, expect, it } from 'vitest';
import { type Coding, availableCodings, negotiateCoding } from '../../../../src/serve/http/encoding.js';

const both: Coding[] = ['zstd', 'gzip'];

describe('serve/http/encoding', () => {
  it.each<[string | undefined, Coding | undefined, Coding | undefined]>([
    // header, with zstd, without
    [undefined, undefined, undefined],
    ['', undefined, undefined],
    ['gzip', 'gzip', 'gzip'],
    ['x-gzip', 'gzip', 'gzip'],
    ['GZIP;Q=0.5', 'gzip', 'gzip'],
    ['gzip, zstd', 'zstd', 'gzip'],
    ['gzip;q=0.9, zstd;q=0.8', 'gzip', 'gzip'],
    ['gzip;q=0', undefined, undefined],
    ['gzip;q=0, *', 'zstd', undefined],
    ['*', 'zstd', 'gzip'],
    ['*;q=0', undefined, undefined],
    ['br, deflate', undefined, undefined],
    ['identity', undefined, undefined],
    ['identity, gzip;q=0.5', undefined, undefined],
    ['identity;q=0.5, gzip', 'gzip', 'gzip'],
    ['identity;q=0', undefined, undefined],
    ['identity, gzip', 'gzip', 'gzip'],
    ['gzip;q=high', undefined, undefined],
    ['gzip;q=1.001', undefined, undefined],
    ['gzip ; q=0.001 , deflate', 'gzip', 'gzip'],
    [',,;q=1,gzip', 'gzip', 'gzip'],
  ])('of %j makes %j, or %j without zstd', (header, withZstd, without) => {
    expect(negotiateCoding(header, both)).toBe(withZstd);
    expect(negotiateCoding(header, ['gzip'])).toBe(without);
  });

  it('always has gzip', () => {
    expect(availableCodings).toContain('gzip');
  });
});
