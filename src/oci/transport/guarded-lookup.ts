import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type AddressKind, addressKind, mayLeadTo } from './network-policy.js';

/** `code` of the error for a name whose addresses may not be led to; its message is the first of them. */
export const refusedAddressCode = 'OPMATE_REFUSED_ADDRESS';

export const defaultLookup: LookupFunction = systemLookup as LookupFunction;

/**
 * Looks names up for connections that an answer led to. The check sits where the connection takes its address
 * from, so that a name cannot mean one address when it is checked and another when it is used.
 */
export function guardLookup(from: AddressKind, lookup: LookupFunction = defaultLookup): LookupFunction {
  return (name, options, done) => {
    lookup(name, { ...options, all: true }, (error, result, family) => {
      if (error) return done(error, '', 0);
      const addresses = Array.isArray(result) ? result : [{ address: result, family: family ?? 4 }];
      const allowed = addresses.filter(({ address }) => mayLeadTo(addressKind(address), from));
      const [first] = allowed;
      if (first === undefined) {
        const refused = new Error(addresses[0]?.address ?? name);
        return done(Object.assign(refused, { code: refusedAddressCode }), '', 0);
      }
      if (options.all === true) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
}
