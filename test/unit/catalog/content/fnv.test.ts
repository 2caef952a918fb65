import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { FnvPair, computeFnv } from '../../../../src/catalog/content/fnv.js';

const pad = (digits: string): string => digits.padStart(16, '0');

describe('catalog/content/fnv', () => {
  afterEach(() => vi.unstubAllGlobals());

  it.each([
    ['with WebAssembly', false],
    ['without WebAssembly', true],
  ])('hashes two texts with common parts at once, %s', (_, isMissing) => {
    if (isMissing) vi.stubGlobal('WebAssembly', undefined);
    const [common, own, other] = [randomBytes(200_003), randomBytes(70_000), randomBytes(1)];
    const pair = new FnvPair();
    pair.update(common, 'both');
    pair.update(own, 'before');
    pair.update(other, 'after');
    pair.update(Buffer.alloc(0), 'both');
    pair.update(common, 'both');
    expect(pair.digests()).toEqual({
      before: pad(computeFnv(Buffer.concat([common, own, common]))),
      after: pad(computeFnv(Buffer.concat([common, other, common]))),
    });
  });

  it('begins with equal hashes', () => {
    expect(new FnvPair().digests()).toEqual({ before: 'cbf29ce484222325', after: 'cbf29ce484222325' });
  });
});
