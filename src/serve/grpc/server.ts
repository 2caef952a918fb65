import { createServer } from 'node:net';
import { type Logger, silentLogger } from '../../core/log.js';
import type { ServerKeyPair } from '../server/certificate-files.js';
import { defaultMaxConnections } from '../server/http-server.js';
import { listenOn } from '../server/listening.js';
import { GrpcTransport } from './transport/transport.js';
import type { AnswersSet } from './named-answers.js';
import type { RegistryAnswers } from './registry-answers.js';
import { registryServices } from './registry-services.js';

export interface RegistryServerOptions {
  /** Of one catalog, or of several by the `:authority` of calls. */
  answers: RegistryAnswers | AnswersSet;
  /** Address to listen on; all of them, IPv6 included where there is any, when left out. */
  host?: string | undefined;
  /** 0 takes a free port. */
  port: number;
  /** Plain text when left out. */
  certificate?: ServerKeyPair | undefined;
  /** Beyond it the longest idle connection makes room, or the new one is refused; 1000 when left out. */
  maxConnections?: number | undefined;
  /** Gets one line a call: method, code, duration and an id, never what was asked or answered. */
  logger?: Logger | undefined;
}

export interface RegistryServer {
  readonly port: number;
  /** What new connections are shown from now on. Throws for what is no certificate with its key. */
  replaceCertificate(certificate: ServerKeyPair): void;
  /** Takes no more calls, finishes those under way for some seconds, and ends. The answers stay open. */
  close(): Promise<void>;
}

/**
 * Serves `api.Registry`, `api.ExperimentalRegistry` where the answers have blobs, health and reflection.
 * Throws OpmateError IO where the port cannot be listened on.
 */
export async function startRegistryServer(options: RegistryServerOptions): Promise<RegistryServer> {
  const {
    answers: queries,
    certificate,
    maxConnections = defaultMaxConnections,
    logger = silentLogger,
  } = options;
  const transport = new GrpcTransport({
    services: registryServices(queries),
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
