import { isIPv6 } from 'node:net';
import { quoteGo } from '../../document/go-json.js';

/** A URL as Go's `net/url` parses the URI of a request: absolute, or a path that starts with a slash. */
interface RequestUri {
  scheme: string;
  host: string;
  user: string | undefined;
  query: string;
}

/** Parses a URI of a request, or returns the fault in Go's words. */
export function parseRequestUri(text: string): RequestUri | { fault: string } {
  const refuse = (problem: string): { fault: string } => ({ fault: `parse ${quoteGo(text)}: ${problem}` });
  if (/[\x00-\x1f\x7f]/.test(text)) return refuse('net/url: invalid control character in URL');
  if (text === '') return refuse('empty url');
  const uri: RequestUri = { scheme: '', host: '', user: undefined, query: '' };
  if (text === '*') return uri;
  if (text.startsWith(':')) return refuse('missing protocol scheme');
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text)?.[1] ?? '';
  uri.scheme = scheme.toLowerCase();
  let rest = scheme === '' ? text : text.slice(scheme.length + 1);
  const question = rest.indexOf('?');
  if (question >= 0) {
    uri.query = rest.slice(question + 1);
    rest = rest.slice(0, question);
  }
  if (!rest.startsWith('/')) return scheme === '' ? refuse('invalid URI for request') : uri;
  if (scheme !== '' && rest.startsWith('//')) {
    const slash = rest.indexOf('/', 2);
    const authority = slash < 0 ? rest.slice(2) : rest.slice(2, slash);
    rest = slash < 0 ? '' : rest.slice(slash);
    const position = authority.lastIndexOf('@');
    uri.host = authority.slice(position + 1);
    if (position >= 0) uri.user = authority.slice(0, position);
    const fault =
      hostFault(uri.host, uri.scheme) ?? (uri.user === undefined ? undefined : userFault(uri.user));
    if (fault !== undefined) return refuse(fault);
  }
  const fault = escapeFault(rest);
  return fault === undefined ? uri : refuse(fault);
}

function userFault(user: string): string | undefined {
  return /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user) ? escapeFault(user) : 'net/url: invalid userinfo';
}

function escapeFault(text: string): string | undefined {
  const bad = /%(?![0-9A-Fa-f]{2}).{0,2}/su.exec(text);
  return bad === null ? undefined : `invalid URL escape ${quoteGo(bad[0])}`;
}

function hostFault(host: string, scheme: string): string | undefined {
  const bracket = host.lastIndexOf('[');
  if (bracket > 0) return 'invalid IP-literal';
  if (bracket === 0) {
    const end = host.lastIndexOf(']');
    if (end < 0) return "missing ']' in host";
    const port = portFault(host.slice(end + 1));
    if (port !== undefined) return port;
    const [address = ''] = host.slice(1, end).split('%25');
    return isIPv6(address) ? undefined : `invalid host: ParseAddr(${quoteGo(address)}): unable to parse IP`;
  }
  const first = host.indexOf(':');
  const colon = scheme === 'http' || scheme === 'https' ? first : host.lastIndexOf(':');
  const port = colon < 0 ? undefined : portFault(host.slice(colon));
  if (port !== undefined) return port;
  for (const { 0: part } of host.matchAll(/%.{0,2}|[^%]/gsu)) {
    if (part.startsWith('%')) {
      // Only bytes beyond ASCII may be escaped in a host.
      if (!/^%(?:[89A-Fa-f][0-9A-Fa-f]|25)$/.test(part)) return `invalid URL escape ${quoteGo(part)}`;
    } else if (part < '\x80' && !/[A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"]/.test(part)) {
      return `invalid character ${quoteGo(part)} in host name`;
    }
  }
  return undefined;
}

function portFault(text: string): string | undefined {
  return text === '' || /^:\d*$/.test(text) ? undefined : `invalid port ${quoteGo(text)} after host`;
}
