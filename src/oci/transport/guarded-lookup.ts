import { lookup as systemLookup } from 'node:dns';
import { type LookupFunction, isIP } from 'node:net';
import { type AddressKind, addressKind, getBareHost, mayLeadTo } from './network-policy.js';

/** Code of the error for a host name without allowed addresses; its message is the first address. */
export const refusedAddressCode = 'OPMATE_REFUSED_ADDRESS';

/** Looks a name up as the system does; loads node:dns when it is called. */
export const defaultLookup: LookupFunction = (name, options, done) => systemLookup(name, options, done);

/**
 * Returns a lookup that remembers its results, and a function that returns the address of a server once it is connected:
 * a public one if its name has any, since the rules for redirects from public servers are the strictest.
 */
export function rememberLookup(lookup: LookupFunction = defaultLookup): {
  lookup: LookupFunction;
  getAddress: (url: URL) => string | undefined;
} {
  const known = new Map<string, readonly string[]>();
  return {
    lookup: (name, options, done) => {
      lookup(name, options, (error, result, family) => {
        if (!error)
          known.set(
            name.replace(/\.$/, '').toLowerCase(),
            Array.isArray(result) ? result.map(({ address }) => address) : [result],
          );
        done(error, result as string, family);
      });
    },
    getAddress: (url) => {
      const host = getBareHost(url);
      if (isIP(host) !== 0) return host;
      const addresses = known.get(host) ?? [];
      return addresses.find((address) => addressKind(address) === 'public') ?? addresses[0];
    },
  };
}

/**
 * Returns a lookup that filters the addresses of redirects and token servers. The connection uses the checked addresses,
 * so a name cannot resolve differently between check and use.
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
