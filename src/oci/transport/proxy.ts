import { BlockList, isIP } from 'node:net';
import { OpmateError } from '../../core/errors.js';
import type { Environment } from '../../files/run-program.js';
import { getBareHost } from './network-policy.js';

/** Returns the proxy for a URL; undefined for a direct connection. */
type ProxyChoice = (url: URL) => URL | undefined;

/**
 * Reads HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY; upper case takes precedence. Local hosts are always connected to
 * directly. The choice throws OpmateError UNSUPPORTED or INVALID for an unusable proxy. (Source:
 * golang.org/x/net/http/httpproxy; ALL_PROXY: curl.)
 */
export function readProxies(environment: Environment): ProxyChoice {
  function variable(name: string): string {
    return environment[name] || environment[name.toLowerCase()] || '';
  }
  const bypass = readNoProxy(variable('NO_PROXY'));
  return (url) => {
    const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
    const used = variable(name) ? name : 'ALL_PROXY';
    const value = variable(used);
    if (!value || isLocal(url) || bypass(url)) return undefined;
    return parseProxy(used, value);
  };
}

function parseProxy(variable: string, value: string): URL {
  const text = value.includes('://') ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The value may have a password, so it is not in messages.
  if (!url?.hostname || url.port === '0' || !isDecodable(url)) {
    throw new OpmateError('INVALID', 'not a valid proxy URL', {
      subject: variable,
      hint: 'use http://user:password@host:port, with special characters percent-encoded',
    });
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new OpmateError('UNSUPPORTED', `proxies of type ${url.protocol} are not supported`, {
      subject: variable,
      hint: 'use an http:// or https:// proxy',
    });
  }
  return url;
}

/** Reports whether user name and password are percent-encoded. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

function isLocal(url: URL): boolean {
  const host = getBareHost(url);
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/**
 * Entries: `*`, an address, a CIDR range, a domain with its subdomains, or `.domain` or `*.domain` for subdomains only;
 * all but a range with an optional port.
 */
function readNoProxy(value: string): (url: URL) => boolean {
  const entries = value
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((entry) => entry.toLowerCase());
  const tests = entries.map(noProxyTest);
  return (url) => {
    const host = getBareHost(url);
    const port = url.port || (url.protocol === 'https:' ? '443' : '80');
    return tests.some((test) => test(host, port));
  };
}

function noProxyTest(entry: string): (host: string, port: string) => boolean {
  if (entry === '*') return () => true;
  const range = /^([0-9a-f.:]+)\/(\d{1,3})$/.exec(entry);
  if (range) return inRange(range[1] as string, Number(range[2]));
  const [, bracketed, plain, wantedPort] = /^(?:\[([0-9a-f:.]+)\]|(.*?))(?::(\d+))?$/.exec(entry) ?? [];
  const whole = isIP(entry) === 6;
  const name = whole ? entry : (bracketed ?? plain ?? entry);
  const port = whole ? undefined : wantedPort;
  const domain = name.replace(/^\*?\./, '');
  const onlyBelow = domain !== name;
  return (host, actual) => {
    if (port !== undefined && port !== actual) return false;
    if (isIP(host) !== 0) return isIP(name) !== 0 && canonicalAddress(host) === canonicalAddress(name);
    return (!onlyBelow && host === domain) || host.endsWith(`.${domain}`);
  };
}

function canonicalAddress(address: string): string {
  return isIP(address) === 6 ? new URL(`http://[${address.replace(/%.*$/, '')}]/`).hostname : address;
}

function inRange(network: string, prefix: number): (host: string) => boolean {
  const family = isIP(network);
  if (family === 0 || prefix > (family === 4 ? 32 : 128)) return () => false;
  const list = new BlockList();
  list.addSubnet(network, prefix, family === 4 ? 'ipv4' : 'ipv6');
  return (host) => isIP(host) !== 0 && list.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
}
