import { checkAuthorities } from '../../client/client-options.js';
import { GrpcChannel } from '../../client/grpc-connection.js';
import { type HealthStatus, checkHealth } from '../../client/health.js';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import { invalidValue, throwFileError } from '../../core/errors.js';
import { readNamedFile } from '../../files/read-file.js';
import { checkCertificate, maxPemBytes } from '../../oci/transport/certificates.js';

/** Options of checking the health of a server. */
export interface CheckServerOptions extends CancelOptions {
  /** Service to check; default the whole server. */
  service?: string | undefined;
  /** Use TLS; default false. */
  tls?: boolean | undefined;
  /** Trust only these certificate authorities, in PEM. */
  ca?: Buffer | undefined;
  /** Milliseconds for the connection; default 1000. */
  connectTimeoutMs?: number | undefined;
  /** Milliseconds for the response; default 1000. */
  responseTimeoutMs?: number | undefined;
  /** Called before the server is connected to, and once it is. */
  onState?: ((state: 'connecting' | 'connected') => void) | undefined;
}

/**
 * Checks the health of a gRPC server at `HOST:PORT`, or `:PORT` on this machine. Throws OpmateError: USAGE for an address
 * that is invalid, NOT_FOUND for a service that the server does not have.
 */
export async function checkServer(address: string, options: CheckServerOptions = {}): Promise<HealthStatus> {
  const { service = '', tls = false, ca, connectTimeoutMs = 1000, responseTimeoutMs = 1000 } = options;
  const [, host = '', port] = /^(\[[\da-fA-F:.]+\]|[\w.-]*):(\d{1,5})$/.exec(address) ?? [];
  if (port === undefined || Number(port) > 65_535) {
    throw invalidValue('options.address', address, 'not the address of a server', {
      hint: 'use HOST:PORT or :PORT, e.g. localhost:50051',
    });
  }
  checkAuthorities(ca);
  const connection = new GrpcChannel(`${host || 'localhost'}:${port}`, {
    tls,
    ca,
    idleTimeoutMs: responseTimeoutMs,
    maxAttempts: 1,
    maxMessageBytes: 64 * 1024,
  });
  return withOpen(connection, async () => {
    options.onState?.('connecting');
    await connection.ready(connectTimeoutMs, options.signal);
    options.onState?.('connected');
    return checkHealth(connection, service, options);
  });
}

/** Reads the certificate authorities of a PEM file, for `ca`. Throws OpmateError. */
export async function readAuthorities(file: string): Promise<Buffer> {
  const pem = await readNamedFile(file, maxPemBytes).catch(throwFileError(file, { file }));
  checkCertificate(pem, file);
  return pem;
}
