import { invalidValue, UsageError } from '../../core/errors.js';
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

/** Reads `--port`. Throws UsageError. */
export function parsePort({ port }: { port: string }): number {
  if (/^\d{1,5}$/.test(port) && Number(port) <= 65535) return Number(port);
  throw invalidValue('--port', port, 'not a port', { hint: 'use a number from 0 to 65535' });
}

/** Returns the files of `--tls-cert` and `--tls-key`. Throws UsageError for only one of them. */
export function findTlsFiles(options: {
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
}): CertificateFiles | undefined {
  const { tlsCert, tlsKey } = options;
  if (tlsCert !== undefined && tlsKey !== undefined) return { cert: tlsCert, key: tlsKey };
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  throw new UsageError('--tls-cert and --tls-key must be used together', { hint: 'add the other flag' });
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
