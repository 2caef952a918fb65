import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

interface HostRuleOptions {
  /** Names that the server goes by, in addition to `localhost` and addresses. */
  names?: readonly (string | undefined)[];
  /** Also checks connections that come in on an address of the network. */
  everywhere?: boolean;
}

/**
 * Checks the `Host` header of requests, so that no web page reaches a server of this machine under a name of its own
 * (DNS rebinding). An address cannot be rebound, so it always passes. A connection to an address of the network comes
 * to a server that was opened to the network on purpose, under names that only its network knows: it passes too,
 * unless the rule holds everywhere.
 */
export class HostRule {
  readonly #names: ReadonlySet<string>;
  readonly #everywhere: boolean;

  constructor({ names = [], everywhere = false }: HostRuleOptions = {}) {
    const known = names.filter((name): name is string => name !== undefined && name !== '');
    this.#names = new Set(['localhost', ...known.map((name) => name.toLowerCase())]);
    this.#everywhere = everywhere;
  }

  allows({ headers, socket }: IncomingMessage): boolean {
    if (!this.#everywhere && !isLoopbackAddress(socket.localAddress ?? '')) return true;
    const [, bracketed, plain = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::\d+)?$/.exec(headers.host ?? '') ?? [];
    if (bracketed !== undefined) return isIP(bracketed) === 6;
    const name = plain.toLowerCase().replace(/\.$/, '');
    return isIP(name) === 4 || this.#names.has(name);
  }
}

/** Whether an address or name, as one listens to it, can be reached from this machine only. */
export function isLoopbackHost(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopbackAddress(host);
}

function isLoopbackAddress(address: string): boolean {
  const plain = address.toLowerCase().replace(/^::ffff:/, '');
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}

/**
 * Whether a browser sent a request on behalf of another site: by `Sec-Fetch-Site`, and by an `Origin` other than the
 * server itself. Clients that are no browsers send neither. (Source: Fetch Metadata, RFC 6454.)
 */
export function isCrossSite({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const { origin, host } = headers;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase();
}
