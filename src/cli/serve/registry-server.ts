import { constants } from 'node:fs';
import cluster from 'node:cluster';
import { writeFile } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import type { GrpcServerOptions } from '../../api/serve/grpc-server.js';
import { onAbort } from '../../core/concurrency.js';
import { CancelledError, getMessage, redactUrls, systemReason } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { createLogger } from '../logger.js';
import type { CommandContext } from '../context.js';
import { findTlsFiles } from './listen-options.js';
import type { connectionFlags, registryServerFlags } from './server-flags.js';

const defaultTerminationLog = '/dev/termination-log';

/** Options of a server of the gRPC registry API. */
type RegistryServerOptions = FlagValues<typeof registryServerFlags> &
  Partial<FlagValues<typeof connectionFlags>>;

/** Waits until `signal` fires; the caller then closes the gRPC server. */
export async function waitUntilStopped(
  signal: AbortSignal,
  grpcPort: number,
  { tlsCert }: RegistryServerOptions,
  logger: Logger,
): Promise<void> {
  const tls = tlsCert === undefined ? '' : ' --tls';
  if (cluster.isPrimary) logger.log('info', `next: opmate probe --addr localhost:${grpcPort}${tls}`);
  const release = limitYoungGeneration();
  await new Promise<void>((resolve) => void onAbort(signal, resolve));
  release();
  logger.log('info', 'shutting down: waiting for open calls');
}

/** Age at which `bin/opmate.cjs` has written its cache of compiled code, which V8 refuses under other flags. */
const startedMs = 5_000;

/**
 * Keeps the young generation of V8 from growing: calls leave garbage only, of which a larger one holds more. Returns a
 * function that ends this.
 */
function limitYoungGeneration(): () => void {
  let isLimited = false;
  const timer = setTimeout(() => {
    isLimited = true;
    setFlagsFromString('--semi-space-growth-factor=1');
  }, startedMs).unref();
  return () => {
    clearTimeout(timer);
    // The default.
    if (isLimited) setFlagsFromString('--semi-space-growth-factor=2');
  };
}

/** Returns the options of the gRPC registry API. Throws UsageError. */
export function getGrpcOptions(options: RegistryServerOptions): GrpcServerOptions {
  const { host, port, maxConnections } = options;
  return { host, port, tls: findTlsFiles(options), maxConnections };
}

/**
 * Runs `work` and writes its failure to the termination log too, which clusters show as the reason. The default log is
 * written only if it exists, as in a cluster.
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
      // Does not wait for a pipe without a reader.
      const flags = constants.O_WRONLY | constants.O_NONBLOCK | (isExpected ? constants.O_CREAT : 0);
      await writeFile(file, `${redactUrls(getMessage(error))}\n`, { flag: flags, mode: 0o644 });
    } catch (failure) {
      const problem = `cannot write ${file}: ${systemReason(failure)}`;
      if (isExpected) createLogger(context, options).log('warn', problem);
    }
    throw error;
  }
}
