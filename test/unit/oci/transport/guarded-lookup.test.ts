import type { LookupFunction } from 'node:net';
import { describe, expect, it } from 'vitest';
import { rememberLookup } from '../../../../src/oci/transport/guarded-lookup.js';

const lookUp = (lookup: LookupFunction, name: string, all: boolean) =>
  new Promise((resolve) => lookup(name, { all }, (_, addresses) => resolve(addresses)));

describe('oci/transport/guarded-lookup', () => {
  it.each([true, false])(
    'remembers the address of a name, a public one of several (all: %s)',
    async (all) => {
      const addresses = [
        { address: '10.0.0.1', family: 4 },
        { address: '8.8.8.8', family: 4 },
      ];
      const { lookup, getAddress } = rememberLookup((_, options, done) =>
        options.all ? done(null, addresses) : done(null, '10.0.0.1', 4),
      );
      const url = new URL('http://Registry.Example.:5000/v2/');
      expect(getAddress(url)).toBeUndefined();
      expect(await lookUp(lookup, 'registry.example.', all)).toEqual(all ? addresses : '10.0.0.1');
      expect(getAddress(url)).toBe(all ? '8.8.8.8' : '10.0.0.1');
      expect(getAddress(new URL('http://other.example/'))).toBeUndefined();
    },
  );

  it('returns a literal address as it is, and remembers no failed lookup', async () => {
    const { lookup, getAddress } = rememberLookup((_, __, done) => done(new Error('ENOTFOUND'), '', 0));
    await lookUp(lookup, 'registry.example', true);
    expect(getAddress(new URL('http://registry.example/'))).toBeUndefined();
    expect(getAddress(new URL('http://[::1]:5000/'))).toBe('::1');
    expect(getAddress(new URL('https://192.0.2.1/'))).toBe('192.0.2.1');
  });
});
