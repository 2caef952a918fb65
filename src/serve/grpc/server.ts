import { createServer } from 'node:net';
import { type Logger, silentLogger } from '../../core/log.js';
import type { ServerCertificate } from '../server/tls.js';
import { listenOn } from '../server/listening.js';
import { GrpcTransport } from './transport/transport.js';
import type { RegistryQueriesSet } from './named-queries.js';
import type { RegistryQueries } from './registry-queries.js';
import { createRegistryServices } from './registry-services.js';

export interface RegistryServerOptions {
  /** Queries of one catalog, or of several by the `:authority` of calls. */
  queries: RegistryQueries | RegistryQueriesSet;
  /** Address to listen on; default all, including IPv6. */
  host?: string | undefined;
  /** 0 selects a free port. */
  port: number;
  /** Default plain text. */
  certificate?: ServerCertificate | undefined;
  /** Maximum open connections, default 1000; beyond it the longest idle one is closed or the new one refused. */
  maxConnections?: number | undefined;
  /** Logs one line per call: method, code, duration and an id, never request or reply. */
  logger?: Logger | undefined;
}

export interface RegistryServer {
  readonly port: number;
  /** Replaces the certificate for new connections. Throws for an invalid certificate or key. */
  replaceCertificate(certificate: ServerCertificate): void;
  /** Refuses new calls, waits some seconds for open ones, and ends. The queries stay open. */
  close(): Promise<void>;
}

/** Serves `api.Registry`, `api.ExperimentalRegistry` for catalogs with blobs, health and reflection. Throws OpmateError IO. */
export async function startRegistryServer(options: RegistryServerOptions): Promise<RegistryServer> {
  const { queries, certificate, maxConnections, logger = silentLogger } = options;
  const transport = new GrpcTransport({
    services: createRegistryServices(queries),
    certificate,
    maxConnections,
    logger,
  });
  const listener = createServer({ noDelay: true }, (socket) => transport.accept(socket));
  const port = await listenOn(listener, options);
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    listener.close();
    return transport.close();
  };
  return {
    port,
    replaceCertificate: (next) => transport.replaceCertificate(next),
    close: () => (closed ??= close()),
  };
}
