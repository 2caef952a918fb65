import { onAbort } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import { startRegistry } from '../../serve/registry.js';
import { readCertificateFiles, watchCertificateFiles } from '../../serve/server/certificate-files.js';
import { type ArchiveProofFlags, archiveDirectoryOf, proofOf } from '../archive/options.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { portOf, tlsFilesOf } from '../serve/listen-options.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';

interface OciServeOptions extends GlobalOptions, ArchiveProofFlags {
  port?: string;
  host?: string;
  tlsCert?: string;
  tlsKey?: string;
  archiveBase?: string[];
  htpasswd?: string;
  insecureListen?: boolean;
  readOnly?: boolean;
  /** Bytes. */
  maxSize?: number;
  allowHost?: string[];
  maxConnections?: number;
}

/**
 * `opmate oci serve`: a layout directory or an archive of `opmate mirror` as a registry, until it is interrupted.
 * Prints its address.
 */
export async function ociServe(
  context: CommandContext,
  directory: string,
  options: OciServeOptions,
): Promise<number> {
  const { host = '127.0.0.1', htpasswd, insecureListen, readOnly, maxSize } = options;
  const logger = createLogger(context, options);
  const port = portOf(options, '5000');
  const files = tlsFilesOf(options);
  if (readOnly === true && maxSize !== undefined) {
    throw new UsageError('--read-only and --max-size exclude each other');
  }
  const tls = files === undefined ? undefined : await readCertificateFiles(files);
  const registry = await startRegistry({
    directory,
    archiveBases: (options.archiveBase ?? []).map((text) => archiveDirectoryOf(text, context)),
    archiveProof: await proofOf(options, context),
    host,
    port,
    htpasswd,
    insecureListen,
    readOnly,
    maxSize,
    allowedHosts: options.allowHost,
    maxConnections: options.maxConnections,
    logger,
    ...(tls !== undefined && { tls }),
  });
  const watcher =
    files === undefined || tls === undefined
      ? undefined
      : watchCertificateFiles(files, tls, (next) => registry.replaceCertificate(next), logger);
  try {
    await writeAll(context.stdout, `${registry.url}\n`);
    await new Promise<void>((resolve) => void onAbort(context.signal, resolve));
  } finally {
    watcher?.stop();
    await registry.close();
    logger.close();
  }
  // Being told to stop is how a server ends.
  return 0;
}
