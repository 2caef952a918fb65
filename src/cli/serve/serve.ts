import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { onAbort } from '../../core/concurrency.js';
import {
  CancelledError,
  OpmateError,
  UsageError,
  messageOf,
  redact,
  systemReason,
} from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import {
  type CatalogAnswers,
  type CatalogAnswersOptions,
  openCatalogAnswers,
} from '../../serve/grpc/catalog-answers.js';
import type { RegistryAnswers } from '../../serve/grpc/registry-answers.js';
import { startRegistryServer } from '../../serve/grpc/server.js';
import { readCertificateFiles, watchCertificateFiles } from '../../serve/server/certificate-files.js';
import { inReference } from '../../source/reference-error.js';
import type { Source } from '../../source/source-types.js';
import { openSource } from '../../source/source.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { portOf, tlsFilesOf } from './listen-options.js';
import { booleanOf } from '../options.js';
import { type CommandSession, useSession } from '../session.js';
import type { ServeHttpOptions } from './http.js';

const defaultTerminationLog = '/dev/termination-log';

/** Options of every server of the registry API, from `addServerOptions`. */
export interface ServerOptions extends GlobalOptions {
  port?: string;
  host?: string;
  terminationLog?: string;
  tlsCert?: string;
  tlsKey?: string;
  maxConnections?: number;
}

interface ServeOptions extends ServerOptions, Omit<ServeHttpOptions, keyof ServerOptions> {
  ui?: string | true;
  cacheDir?: string;
  pprofAddr?: string;
}

/** `opmate serve`: a file-based catalog as gRPC registry API, until it is told to stop. */
export async function serve(
  context: CommandContext,
  reference: string,
  options: ServeOptions,
): Promise<void> {
  const port = portOf(options);
  const { cacheDir } = options;
  const cacheOnly = booleanOf(options, 'cacheOnly');
  const isIntegrityGiven = given(options, 'cacheEnforceIntegrity');
  if (cacheDir === undefined && isIntegrityGiven) {
    throw new UsageError('--cache-dir must be specified with --cache-enforce-integrity');
  }
  if (cacheDir === undefined && cacheOnly) {
    throw new UsageError('--cache-only needs --cache-dir', { hint: 'name the directory of the cache' });
  }
  await reportingFailure(context, options, () =>
    useSession(context, options, async (session) => {
      const { logger } = session;
      if (options.pprofAddr || booleanOf(options, 'pprofCaptureProfiles')) {
        logger.log('warn', 'profiles are not offered: --pprof-addr and --pprof-capture-profiles do nothing');
      }
      const source = await openSource(reference, session, { bundles: false, catalogs: true }).catch(
        (error: unknown) => {
          throw inReference(error, reference);
        },
      );
      try {
        const catalog = catalogIn(source, reference);
        const answers = await openAnswers(catalog, reference, session, {
          temporaryDirectory: session.temporaryDirectory,
          cacheDirectory:
            cacheDir === undefined ? undefined : path.resolve(context.workingDirectory, cacheDir),
          requireCache: booleanOf(options, 'cacheEnforceIntegrity') && !cacheOnly,
          now: context.now,
          logger,
          signal: session.signal,
        });
        try {
          if (!cacheOnly) {
            const http =
              options.http === undefined
                ? undefined
                : await (await import('./http.js')).startHttp(context, catalog, reference, options, session);
            try {
              const ui =
                options.ui === undefined
                  ? undefined
                  : await (
                      await import('../root/view.js')
                    ).startUi(context, catalog, reference, options.ui, session);
              try {
                return await serveAnswers(context, answers, reference, port, options, logger);
              } finally {
                await ui?.close();
              }
            } finally {
              await http?.close();
            }
          }
          // Being interrupted here leaves no cache, and says so.
          const stopWaiting = onAbort(context.signal, () => void answers.close());
          const { isCached, reason } = (await answers.encoded) ?? {
            isCached: false,
            reason: 'it needs none',
          };
          stopWaiting();
          if (context.signal.aborted) throw new CancelledError('interrupted');
          if (!isCached) {
            throw new OpmateError('IO', `${cacheDir}: no cache was made: ${reason}`, {
              hint: 'the directory must be writable, with space for the bundles of the catalog',
            });
          }
        } finally {
          await answers.close();
        }
      } finally {
        await source.close();
      }
    }),
  );
}

/** Serves answers until the process is told to stop; then calls that are under way are finished. */
export async function serveAnswers(
  context: Pick<CommandContext, 'signal'>,
  answers: RegistryAnswers,
  name: string,
  port: number,
  options: ServerOptions,
  logger: Logger,
): Promise<void> {
  const files = tlsFilesOf(options);
  const certificate = files === undefined ? undefined : await readCertificateFiles(files);
  const server = await startRegistryServer({
    answers,
    host: options.host,
    port,
    certificate,
    maxConnections: options.maxConnections,
    logger,
  });
  const watcher =
    files !== undefined && certificate !== undefined
      ? watchCertificateFiles(files, certificate, (next) => server.replaceCertificate(next), logger)
      : undefined;
  try {
    logger.log('info', 'serving registry', { catalog: name, port: server.port, tls: files !== undefined });
    await new Promise<void>((resolve) => void onAbort(context.signal, resolve));
    logger.log('info', 'stopping: calls that are under way are finished');
  } finally {
    watcher?.stop();
    await server.close();
  }
}

function catalogIn(source: Source, reference: string): Catalog {
  if (source.kind === 'catalog') return source.catalog;
  throw new OpmateError('UNSUPPORTED', `${reference}: a bundle, not a catalog`);
}

/** The answers of a file-based catalog, or of the file of a sqlite index, which needs no cache. */
async function openAnswers(
  catalog: Catalog,
  reference: string,
  session: CommandSession,
  options: CatalogAnswersOptions,
): Promise<RegistryAnswers & Partial<Pick<CatalogAnswers, 'encoded'>>> {
  if (catalog.listFiles !== undefined) return openCatalogAnswers(catalog, options);
  const { isDatabaseFile } = await import('../../sqlite/schema/database.js');
  if (!(await isDatabaseFile(reference).catch(() => false))) {
    throw new OpmateError('UNSUPPORTED', `${reference}: an image of a sqlite index`, {
      hint: 'take the database out of the image, and serve the file',
    });
  }
  const { openSqliteAnswers } = await import('../../serve/grpc/sqlite-answers.js');
  return openSqliteAnswers(reference, session, { name: reference });
}

/**
 * Runs `work`; what it fails with is also written to the termination log, which clusters show as the reason.
 * The default one is written only where it is there, as in a cluster.
 */
export async function reportingFailure<T>(
  context: CommandContext,
  { terminationLog }: ServerOptions,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const file = terminationLog ?? defaultTerminationLog;
    const isExpected = terminationLog !== undefined && terminationLog !== '';
    if (file === '' || error instanceof CancelledError || context.signal.aborted) throw error;
    try {
      // A pipe that nobody reads must not be waited for.
      const flags = constants.O_WRONLY | constants.O_NONBLOCK | (isExpected ? constants.O_CREAT : 0);
      const handle = await open(file, flags, 0o644);
      try {
        await handle.writeFile(`${redact(messageOf(error))}\n`);
      } finally {
        await handle.close();
      }
    } catch (failure) {
      if (isExpected) context.stderr.write(`warn: cannot write ${file}: ${systemReason(failure)}\n`);
    }
    throw error;
  }
}

function given(options: object, name: string): boolean {
  return Object.keys(options).some((key) => key === name || key.startsWith(`${name}=`));
}
