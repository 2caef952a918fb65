import { onAbort } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import { startRegistry } from '../../serve/registry.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { createLogger } from '../logger.js';
import { readInputFile } from '../input.js';
import { writeAll } from '../output.js';

interface OciServeOptions extends GlobalOptions {
  port?: string;
  host?: string;
  tlsCert?: string;
  tlsKey?: string;
  archiveBase?: string[];
}

/** `opmate oci serve`: a layout directory or an archive of `opmate mirror` as a registry, until it is interrupted. Prints its address. */
export async function ociServe(
  context: CommandContext,
  directory: string,
  options: OciServeOptions,
): Promise<number> {
  const logger = createLogger(context, options);
  const port = options.port === '' ? Number.NaN : Number(options.port ?? '5000');
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new UsageError(`--port ${options.port}: not a port`, { hint: 'give a number from 0 to 65535' });
  }
  const { tlsCert, tlsKey } = options;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new UsageError('--tls-cert and --tls-key belong together', { hint: 'give both or neither' });
  }
  const tls =
    tlsCert === undefined || tlsKey === undefined
      ? undefined
      : { cert: await readInputFile(tlsCert), key: await readInputFile(tlsKey) };
  const registry = await startRegistry({
    directory,
    archiveBases: options.archiveBase ?? [],
    host: options.host ?? '127.0.0.1',
    port,
    logger,
    ...(tls !== undefined && { tls }),
  });
  try {
    await writeAll(context.stdout, `${registry.url}\n`);
    await stopped(context.signal);
  } finally {
    await registry.close();
    logger.close();
  }
  // Being told to stop is how a server ends.
  return 0;
}

function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}
