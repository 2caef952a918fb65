import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

interface HostRuleOptions {
  /** Host names in addition to `localhost` and addresses. */
  names?: readonly (string | undefined)[];
  /** Also check connections to a network address. */
  everywhere?: boolean;
}

/** Reports whether the host of a request is allowed. */
export type HostRule = (request: IncomingMessage) => boolean;

/**
 * Returns a check of the `Host` header of requests against DNS rebinding by web pages. Addresses always pass, as they
 * cannot be rebound. So do connections to a network address, whose names only the network knows, unless `everywhere`.
 */
export function createHostRule({ names = [], everywhere = false }: HostRuleOptions): HostRule {
  const known = names.filter((name): name is string => name !== undefined && name !== '');
  const allowed: ReadonlySet<string> = new Set(['localhost', ...known.map((name) => name.toLowerCase())]);
  return ({ headers, rawHeaders, socket }) => {
    // Node.js takes the first of several, a proxy possibly the last.
    if (rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1) return false;
    if (!everywhere && !isLoopbackAddress(socket.localAddress ?? '')) return true;
    const [, bracketed, plain = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::\d+)?$/.exec(headers.host ?? '') ?? [];
    if (bracketed !== undefined) return isIP(bracketed) === 6;
    const name = plain.toLowerCase().replace(/\.$/, '');
    return isIP(name) === 4 || allowed.has(name);
  };
}

/** Reports whether a listening address is reachable from this machine only. */
export function isLoopbackHost(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopbackAddress(host);
}

function isLoopbackAddress(address: string): boolean {
  const plain = address.toLowerCase().replace(/^::ffff:/, '');
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}

/**
 * Reports whether a browser sent a request for another site, by `Sec-Fetch-Site` or a foreign `Origin`; other clients send
 * neither. (Source: Fetch Metadata, RFC 6454.)
 */
export function isCrossSite({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const { origin, host } = headers;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase();
}
