import { isIP, type LookupFunction } from 'node:net';
import { connect } from 'node:tls';
import { type ErrorDetails, getMessage, OpmateError, redactForeign, systemCode } from '../../core/errors.js';
import { printableLine } from '../../core/printable.js';
import { isRetryStatus } from './retry-policy.js';

/** A request without usable response: DNS, connection, TLS, proxy, stall. */
export class NetworkError extends OpmateError {
  override readonly name: string = 'NetworkError';
  /** The same request may succeed later. */
  readonly temporary: boolean;
  constructor(message: string, details: ErrorDetails & { temporary: boolean }) {
    super('NETWORK', message, details);
    this.temporary = details.temporary;
  }
}

/** Hints for faults that the caller of a transport can end, in the words of its own options; none by default. */
export interface ConnectionHints {
  /** The certificate comes from an unknown authority. */
  untrusted?: string;
  /** The server speaks plain HTTP. */
  plainHttp?: string;
  /** The server speaks HTTPS. */
  https?: string;
  /** The server requires a certificate of the client. */
  clientCertificate?: string;
  /** A response leads to a private address of this host. */
  privateAddress?: (host: string) => string;
}

/** Route of a connection, as far as messages need it. */
export interface Route {
  /** Files of certificate authorities, in order. */
  trustPaths: readonly string[];
  /** `host:port` of the proxy. */
  proxy?: string | undefined;
  lookup?: LookupFunction | undefined;
  hints?: ConnectionHints | undefined;
}

const untrusted = 'the certificate comes from an authority that is not trusted';
const certificateFaults: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  CERT_UNTRUSTED: untrusted,
  CERT_SIGNATURE_FAILURE: 'the signature of the certificate is wrong',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  CERT_REVOKED: 'the certificate has been revoked',
  INVALID_CA: 'the certificate comes from an authority that may not issue it',
  INVALID_PURPOSE: 'the certificate is not meant for servers',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
};

/** Hints for certificates that another authority would not fix. */
const otherCertificateHints: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'replace the certificate of the server, or check the clock of this machine',
  CERT_NOT_YET_VALID: 'check the clock of this machine',
  CERT_REVOKED: 'replace the certificate of the server',
  ERR_TLS_CERT_ALTNAME_INVALID: 'use a host name that the certificate of the server is valid for',
};

/** Meanings of system errors of connections. */
export const connectionFaults: Readonly<Record<string, { text: string; temporary: boolean }>> = {
  ENOTFOUND: { text: 'host not found', temporary: false },
  EAI_AGAIN: { text: 'host name could not be looked up for now', temporary: true },
  ECONNREFUSED: { text: 'connection refused', temporary: true },
  ECONNRESET: { text: 'connection reset', temporary: true },
  ECONNABORTED: { text: 'connection aborted', temporary: true },
  EPIPE: { text: 'connection closed while sending', temporary: true },
  ETIMEDOUT: { text: 'connection timed out', temporary: true },
  EHOSTUNREACH: { text: 'host unreachable', temporary: true },
  ENETUNREACH: { text: 'network unreachable', temporary: true },
  ERR_STREAM_PREMATURE_CLOSE: { text: 'connection closed before the end of the response', temporary: true },
};

/** Faults of the HTTP parser in the status line; later ones are damage on the way. */
const notHttp = /^HPE_INVALID_(?:CONSTANT|VERSION|STATUS)$/;

/**
 * Returns a NetworkError with the problem and a hint for an error of the HTTP library. May connect to the host with a TLS
 * greeting only, to name the issuer of a refused certificate or to detect the protocol of the port.
 */
export async function describeFault(error: unknown, url: URL, route: Route): Promise<NetworkError> {
  const code = systemCode(error) ?? '';
  const reason = describeReason(error);
  // The original error is not kept: its message and stack have the URL.
  const cause = Object.assign(new Error(`${reason}${describeTrust(code, route)}`), { code });
  const host = url.host;
  const proxyStatus = /^OPMATE_PROXY_(\d+)$/.exec(code)?.[1];
  if (proxyStatus !== undefined) return proxyFault(host, route.proxy ?? 'proxy', Number(proxyStatus));
  if (code === 'OPMATE_PROXY_INVALID') {
    const problem = `proxy ${route.proxy ?? ''} returned no HTTP response`;
    const hint = 'check the address in HTTPS_PROXY, or set NO_PROXY to connect to this host directly';
    return new NetworkError(problem, { subject: host, temporary: false, cause, hint });
  }
  const certificate = certificateFaults[code];
  if (certificate !== undefined) {
    const peer = route.proxy === undefined ? await greet(url, route) : undefined;
    const issuer = peer ? ` (issued by ${peer.issuer} for ${peer.names})` : '';
    return new NetworkError(`TLS: ${certificate}${issuer}`, {
      subject: host,
      temporary: false,
      cause,
      hint: otherCertificateHints[code] ?? route.hints?.untrusted,
    });
  }
  if (url.protocol === 'https:' && isTlsCode(code)) return tlsFault(host, code, reason, cause, route);
  const isReset = url.protocol === 'http:' && code === 'ECONNRESET' && route.proxy === undefined;
  if (isReset && (await greet(url, route))) return speaksTls(host, route, cause);
  if (notHttp.test(code)) {
    const problem = `invalid HTTP response: ${reason}`;
    return new NetworkError(problem, { subject: host, temporary: false, cause });
  }
  const known = connectionFaults[code];
  const via = route.proxy === undefined || !code.startsWith('E') ? '' : ` (through proxy ${route.proxy})`;
  const problem = known ? `${known.text}${via}` : `request failed${via}: ${reason}`;
  return new NetworkError(problem, { subject: host, temporary: known?.temporary ?? true, cause });
}

/** Returns the files of authorities; nothing for a certificate that is wrong in itself. */
function describeTrust(code: string, { trustPaths }: Route): string {
  if (certificateFaults[code] === undefined || otherCertificateHints[code] !== undefined) return '';
  return `; authorities taken from ${[...new Set(trustPaths)].join(', ')}`;
}

/** Returns the reason of a failed request without the URL that node-fetch adds, which may be signed. */
export function describeReason(error: unknown): string {
  return redactForeign(getMessage(error).replace(/^request to .* failed, reason:\s*/s, ''));
}

/** Returns the error for plain HTTP to a port with TLS. */
export function speaksTls(host: string, { hints }: Pick<Route, 'hints'>, cause?: unknown): NetworkError {
  return new NetworkError('speaks HTTPS, not plain HTTP', {
    subject: host,
    temporary: false,
    hint: hints?.https,
    cause,
  });
}

/** Returns the error for a request that a proxy refused. */
export function proxyFault(host: string, proxy: string, status: number): NetworkError {
  if (status === 407) {
    return new NetworkError(`proxy ${proxy} requires authentication (407)`, {
      subject: host,
      temporary: false,
      hint: 'add the user name and password to HTTPS_PROXY or HTTP_PROXY: http://user:password@host:port',
    });
  }
  return new NetworkError(`proxy ${proxy} refused the connection (${status})`, {
    subject: host,
    temporary: isRetryStatus(status),
    hint: 'set NO_PROXY to connect to this host directly',
  });
}

function isTlsCode(code: string): boolean {
  return code === 'EPROTO' || code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_');
}

function tlsFault(
  subject: string,
  code: string,
  reason: string,
  cause: unknown,
  { hints }: Route,
): NetworkError {
  const whole = `${code} ${reason}`;
  if (/wrong.version.number|packet.length.too.long|http.request/i.test(whole)) {
    const hint = hints?.plainHttp;
    return new NetworkError('speaks plain HTTP, not HTTPS', { subject, temporary: false, hint, cause });
  }
  const text = /:SSL routines:[^:]*:([^:]+):/.exec(reason)?.[1] ?? reason;
  const isOld = /unsupported.protocol|protocol.version|no.protocols/i.test(whole);
  const needsCertificate = !isOld && /certificate|unknown.ca/i.test(whole);
  const hint = isOld
    ? 'enable TLS 1.2 or later on the server'
    : needsCertificate
      ? hints?.clientCertificate
      : undefined;
  // Overloaded or restarting front ends send internal errors and broken records.
  const temporary = !isOld && !needsCertificate && /internal|record|decrypt/i.test(text);
  return new NetworkError(`TLS: ${text}`, { subject, temporary, hint, cause });
}

/** Returns issuer and names of the certificate of a host; undefined without TLS. */
function greet(url: URL, { lookup }: Route): Promise<{ issuer: string; names: string } | undefined> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      rejectUnauthorized: false,
      timeout: 3_000,
      ...(lookup && { lookup }),
      ...(isIP(host) ? {} : { servername: host }),
    });
    function finish(response: { issuer: string; names: string } | undefined): void {
      socket.destroy();
      resolve(response);
    }
    socket.on('secureConnect', () => {
      const { issuer, subject, subjectaltname } = socket.getPeerCertificate();
      const name = (who: typeof issuer | undefined): string => shownName(who?.CN ?? who?.O ?? '(no name)');
      finish({ issuer: name(issuer), names: subjectaltname ? shownName(subjectaltname) : name(subject) });
    });
    for (const event of ['error', 'timeout', 'close']) socket.on(event, () => finish(undefined));
  });
}

/** Returns a name of a certificate for one line of a message. */
function shownName(text: string | string[]): string {
  return printableLine(String(text)).slice(0, 200);
}
