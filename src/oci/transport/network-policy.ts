/** Rules for the destination and trust of requests, without I/O. */
import type { ConnectionHints } from './transport-faults.js';
import { BlockList, isIP } from 'node:net';
import { OpmateError } from '../../core/errors.js';

/** Kind of network of an address. */
export type AddressKind = 'public' | 'loopback' | 'link-local' | 'private' | 'reserved';

/** Origin of a URL that the user did not name: of a redirect or token server. */
export interface RedirectSource {
  /** Origin that the user named, by its registry. */
  origin: string;
  /** Kind of the addresses of the responses so far; `public` if they differ. */
  kind: AddressKind;
  by: 'redirect' | 'token server';
}

/** Special addresses. (Source: IANA special-purpose address registries, RFC 6890.) */
const networks: Readonly<Record<Exclude<AddressKind, 'public'>, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128'],
  'link-local': ['169.254.0.0/16', 'fe80::/10'],
  private: [
    '10.0.0.0/8',
    '172.16.0.0/12',
    '192.168.0.0/16',
    '100.64.0.0/10',
    'fc00::/7',
    'fec0::/10',
    '64:ff9b:1::/48',
  ],
  reserved: ['192.0.0.0/24', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4', 'ff00::/8', '100::/64'],
};

let lists: { kind: AddressKind; list: BlockList }[] | undefined;

function createLists(): { kind: AddressKind; list: BlockList }[] {
  return Object.entries(networks).map(([kind, ranges]) => {
    const list = new BlockList();
    for (const range of ranges) {
      const [network = '', prefix] = range.split('/');
      list.addSubnet(network, Number(prefix), isIP(network) === 4 ? 'ipv4' : 'ipv6');
    }
    return { kind: kind as AddressKind, list };
  });
}

/**
 * IPv4 addresses within IPv6 ones, by the offset of their 32 bits: mapped and compatible addresses, NAT64
 * (RFC 6052), 6to4 (RFC 3056).
 */
const embedded = [
  { prefix: /^(?:0:){5}(?:0|ffff):/, group: 6 },
  { prefix: /^(?:0:){4}ffff:0:/, group: 6 },
  { prefix: /^64:ff9b:(?:0:){4}/, group: 6 },
  { prefix: /^2002:/, group: 1 },
];

/** Returns the kind of an IP address, with or without zone; `reserved` for invalid ones. */
export function addressKind(address: string): AddressKind {
  const plain = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const family = isIP(plain);
  if (family === 0) return 'reserved';
  // Created when an address is checked: most commands need no network, and node:net takes long to load.
  lists ??= createLists();
  const match = lists.find(({ list }) => list.check(plain, family === 4 ? 'ipv4' : 'ipv6'));
  if (match || family === 4) return match?.kind ?? 'public';
  const groups = getGroups(plain);
  const form = embedded.find(({ prefix }) =>
    prefix.test(groups.map((group) => `${group.toString(16)}:`).join('')),
  );
  if (form === undefined) return 'public';
  const [high = 0, low = 0] = groups.slice(form.group, form.group + 2);
  return addressKind([high >> 8, high & 255, low >> 8, low & 255].join('.'));
}

/** Returns the eight groups of an IPv6 address. */
function getGroups(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  if (tail === undefined) return read(head);
  const [before, after] = [read(head), read(tail)];
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

/** Returns the host of a URL without the brackets of an IPv6 address and the dot of a root domain. */
export function getBareHost({ hostname }: URL): string {
  return hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
}

/** Returns the kind of a literal address in a URL; undefined for a host name other than localhost. */
export function literalKind(url: URL): AddressKind | undefined {
  const host = getBareHost(url);
  if (host === 'localhost' || host.endsWith('.localhost')) return 'loopback';
  return isIP(host) === 0 ? undefined : addressKind(host);
}

/** Returns the lead of a response; each response on the way can only narrow it. Behind a proxy, its URL has the address. */
export function leadFrom(
  request: { url: string; lead?: RedirectSource | undefined },
  response: { url: string; address?: string | undefined },
  by: RedirectSource['by'],
): RedirectSource {
  const { lead } = request;
  const { address } = response;
  const kind =
    address === undefined ? (literalKind(new URL(response.url)) ?? 'public') : addressKind(address);
  const isSame = lead === undefined || lead.kind === kind;
  return { origin: lead?.origin ?? new URL(request.url).origin, kind: isSame ? kind : 'public', by };
}

/**
 * Reports whether a response may lead to an address: to public ones, and to others only from the same kind, so a hostile
 * registry cannot reach internal services.
 */
export function mayLeadTo(kind: AddressKind, from: AddressKind): boolean {
  return kind === 'public' || kind === from;
}

/** Reports whether the user allowed a host (`host` or `host:port`) at any address. */
export function isAllowedHost(url: URL, hosts: readonly string[]): boolean {
  return hosts.some((host) => [url.host, url.hostname].includes(host.toLowerCase()));
}

/** Returns the error for an address to which a response must not lead. */
export function refusedAddress(
  url: URL,
  address: string,
  lead: RedirectSource,
  hints: ConnectionHints | undefined,
): OpmateError {
  const what = lead.by === 'redirect' ? `redirect to ${url.host}` : `token server ${url.host}`;
  const shown = address === url.hostname ? 'it' : address;
  return new OpmateError(
    'UNSAFE',
    `${what} refused: ${shown} is a ${getAddressKind(address)} address and the registry's is not`,
    {
      subject: new URL(lead.origin).host,
      hint: hints?.privateAddress?.(url.hostname),
    },
  );
}

function getAddressKind(address: string): AddressKind {
  return isIP(address.replace(/^\[|\]$/g, '')) === 0 ? 'loopback' : addressKind(address);
}

/** Throws OpmateError UNSAFE for a URL with a literal address that its lead does not allow. */
export function checkLiteralAddress(
  url: URL,
  lead: RedirectSource,
  hints: ConnectionHints | undefined,
): void {
  const kind = literalKind(url);
  if (kind !== undefined && !mayLeadTo(kind, lead.kind)) throw refusedAddress(url, url.hostname, lead, hints);
}
