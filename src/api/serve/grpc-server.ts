import type { Logger } from '../../core/log.js';
import type { RegistryQueriesSet } from '../../serve/grpc/named-queries.js';
import type { RegistryQueries } from '../../serve/grpc/registry-queries.js';
import { startRegistryServer } from '../../serve/grpc/server.js';
import { type CertificateFiles, openCertificateFiles } from '../../serve/server/certificate-files.js';
import type { ListenAddress } from '../../serve/server/listening.js';

/** Options of the gRPC registry API. */
export interface GrpcServerOptions extends ListenAddress {
  /** Certificate and key, read again when they change; default plain text. */
  tls?: CertificateFiles | undefined;
  /** Maximum number of open connections; default 1000. */
  maxConnections?: number | undefined;
}

/** Serves queries until it is closed, which finishes open calls. Throws OpmateError IO. */
export async function startGrpcServer(
  queries: RegistryQueries | RegistryQueriesSet,
  name: string,
  { host, port, tls, maxConnections }: GrpcServerOptions,
  logger: Logger,
): Promise<{ port: number; close(): Promise<void> }> {
  const files = await openCertificateFiles(tls, logger);
  const { certificate } = files;
  const server = await startRegistryServer({ queries, host, port, certificate, maxConnections, logger });
  files.follow((next) => server.replaceCertificate(next));
  logger.log('info', 'serving registry', { catalog: name, port: server.port, tls: tls !== undefined });
  return {
    port: server.port,
    async close() {
      files.close();
      await server.close();
    },
  };
}
