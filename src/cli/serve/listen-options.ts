import { invalidValue } from '../../core/errors.js';
import type { HttpServerOptions } from '../../api/serve/http-server.js';
import type { CertificateFiles } from '../../serve/server/certificate-files.js';
import type { FlagValues } from '../command/flags.js';
import type { catalogServerFlags } from './server-flags.js';

/** Default address of HTTP APIs. */
const defaultAddress = '127.0.0.1:8080';

/** Reads `HOST:PORT`, `:PORT` for all addresses, or a port of the loopback address. Throws UsageError. */
export function getAddress(
  value: string | boolean | undefined,
  flag = '--http',
  usual: string = defaultAddress,
): { host: string; port: number } {
  const text = typeof value === 'string' ? value : usual;
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]:|([^:[\]]*):)?(\d{1,5})$/.exec(text) ?? [];
  const number = Number(port ?? Number.NaN);
  if (!(number >= 0 && number <= 65535)) {
    throw invalidValue(flag, text, 'not an address', { hint: 'use HOST:PORT, :PORT or PORT' });
  }
  if (plain === '') return { host: '::', port: number };
  return { host: bracketed ?? plain ?? '127.0.0.1', port: number };
}

/** Returns the files of `--tls-cert` and `--tls-key`, if set. */
export function findTlsFiles(options: {
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
}): CertificateFiles | undefined {
  const { tlsCert: cert, tlsKey: key } = options;
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

/** Returns the options of the HTTP catalog API. Throws UsageError. */
export function getHttpOptions(flags: FlagValues<typeof catalogServerFlags>): HttpServerOptions {
  const { externalUrl, metricsListen, allowHost, maxConnections, tlsSelfSigned } = flags;
  const files = findTlsFiles(flags);
  return {
    ...getAddress(flags.http),
    tls: tlsSelfSigned ? 'self-signed' : files,
    metrics: metricsListen === undefined ? undefined : getAddress(metricsListen, '--metrics-listen'),
    externalUrl,
    allowedHosts: allowHost,
    maxConnections,
  };
}
