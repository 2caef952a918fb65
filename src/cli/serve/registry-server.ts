import { constants } from 'node:fs';
import cluster from 'node:cluster';
import { open } from 'node:fs/promises';
import { onAbort } from '../../core/concurrency.js';
import { CancelledError, getMessage, redact, systemReason } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { AnswersSet } from '../../serve/grpc/named-answers.js';
import type { RegistryAnswers } from '../../serve/grpc/registry-answers.js';
import { startRegistryServer } from '../../serve/grpc/server.js';
import { readCertificateFiles, watchCertificateFiles } from '../../serve/server/certificate-files.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { createLogger } from '../logger.js';
import type { CommandContext } from '../context.js';
import { findTlsFiles } from './listen-options.js';
import type { connectionFlags, registryServerFlags } from './server-flags.js';

const defaultTerminationLog = '/dev/termination-log';

/** Options of a server of the gRPC registry API. */
export type RegistryServerOptions = FlagValues<typeof registryServerFlags> &
  Partial<FlagValues<typeof connectionFlags>>;

/** Serves answers until the process is told to stop; then calls that are under way are finished. */
export async function serveAnswers(
  context: Pick<CommandContext, 'signal'>,
  queries: RegistryAnswers,
  name: string,
  port: number,
  options: RegistryServerOptions,
  logger: Logger,
): Promise<void> {
  const server = await startAnswers(queries, name, { host: options.host, port }, options, logger);
  const tls = options.tlsCert === undefined ? '' : ' --tls';
  if (cluster.isPrimary) logger.log('info', `next: opmate probe --addr localhost:${server.port}${tls}`);
  try {
    await new Promise<void>((resolve) => void onAbort(context.signal, resolve));
    logger.log('info', 'stopping: finishing open calls');
  } finally {
    await server.close();
  }
}

/** Serves answers until it is closed, which finishes calls that are under way. Throws OpmateError IO. */
export async function startAnswers(
  queries: RegistryAnswers | AnswersSet,
  name: string,
  address: { host?: string | undefined; port: number },
  options: Pick<RegistryServerOptions, 'tlsCert' | 'tlsKey' | 'maxConnections'>,
  logger: Logger,
): Promise<{ port: number; close(): Promise<void> }> {
  const files = findTlsFiles(options);
  const certificate = files === undefined ? undefined : await readCertificateFiles(files);
  const { maxConnections } = options;
  const server = await startRegistryServer({
    answers: queries,
    ...address,
    certificate,
    maxConnections,
    logger,
  });
  const watcher =
    files !== undefined && certificate !== undefined
      ? watchCertificateFiles(files, certificate, (next) => server.replaceCertificate(next), logger)
      : undefined;
  logger.log('info', 'serving registry', { catalog: name, port: server.port, tls: files !== undefined });
  return {
    port: server.port,
    async close() {
      watcher?.stop();
      await server.close();
    },
  };
}

/**
 * Runs `work`; what it fails with is also written to the termination log, which clusters show as the reason.
 * The default one is written only where it is there, as in a cluster.
 */
export async function reportingFailure<T>(
  context: CommandContext,
  options: Pick<RegistryServerOptions, 'terminationLog'> & GlobalOptions,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { terminationLog } = options;
    const file = terminationLog ?? defaultTerminationLog;
    const isExpected = terminationLog !== undefined && terminationLog !== '';
    if (file === '' || error instanceof CancelledError || context.signal.aborted) throw error;
    try {
      // A pipe that nobody reads must not be waited for.
      const flags = constants.O_WRONLY | constants.O_NONBLOCK | (isExpected ? constants.O_CREAT : 0);
      const handle = await open(file, flags, 0o644);
      try {
        await handle.writeFile(`${redact(getMessage(error))}\n`);
      } finally {
        await handle.close();
      }
    } catch (failure) {
      const problem = `cannot write ${file}: ${systemReason(failure)}`;
      if (isExpected) createLogger(context, options).log('warn', problem);
    }
    throw error;
  }
}
