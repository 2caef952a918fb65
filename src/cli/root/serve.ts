import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { onAbort } from '../../core/concurrency.js';
import { CancelledError, OpmateError, UsageError } from '../../core/errors.js';
import { inReference } from '../../source/reference-error.js';
import type { Source } from '../../source/source-types.js';
import { openSource } from '../../source/source.js';
import { argument, defineCommand } from '../command/declaration.js';
import { type Flag, type FlagValues, flag, optional, parsed, text } from '../command/flags.js';
import { positiveInteger } from '../command/values.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { defaultMaxConnections } from '../../serve/server/http-server.js';
import { catalogForms } from '../../api/open-catalog.js';
import { openAnswers } from '../../api/serve-catalog.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { createLogger } from '../logger.js';
import { parsePort } from '../serve/listen-options.js';
import { reportingFailure, serveAnswers } from '../serve/registry-server.js';
import { catalogServerFlags, registryServerFlags } from '../serve/server-flags.js';
import { useSession } from '../session.js';

/** Undefined unless given, for opm refuses it without `--cache-dir` whatever its value. */
const cacheEnforceIntegrity: Flag<boolean | undefined> = {
  ...flag('fail if the cache belongs to another catalog', { group: 'Behavior' }),
  default: undefined,
};

const flags = {
  ...registryServerFlags,
  ...catalogServerFlags,
  catalogs: text('directory', 'serve the catalogs described by the manifests in this directory, over HTTP', {
    group: 'Input',
  }),
  secrets: text(
    'directory',
    'with --catalogs: directory with manifests of Secrets for Git and HTTP sources',
    {
      group: 'Input',
    },
  ),
  grpc: optional(
    'address',
    'with --catalogs: also serve gRPC on HOST:PORT, each catalog by host name (default: 127.0.0.1:50051)',
    { group: 'Server' },
  ),
  cacheDir: text('directory', 'cache directory, reused by the next start', {
    mayBeEmpty: true,
    group: 'Behavior',
  }),
  cacheOnly: flag('build the cache and exit', { group: 'Behavior' }),
  cacheEnforceIntegrity,
  ui: optional('address', 'also serve a catalog page on HOST:PORT (default: 127.0.0.1:8081)', {
    group: 'Server',
  }),
  workers: parsed('count', 'number of processes that share the gRPC port (default: 1)', positiveInteger, {
    group: 'Server',
  }),
  pprofAddr: text('address', 'ignored; accepted for compatibility', { hidden: true }),
  pprofCaptureProfiles: flag('ignored; accepted for compatibility', { hidden: true }),
};

/** `opmate serve`: a catalog over gRPC and HTTP, or many over HTTP, until it is told to stop. */
export const command = defineCommand({
  summary: 'serve a catalog over gRPC (and HTTP with --http), or many catalogs over HTTP with --catalogs',
  tool: 'opm',
  arguments: [argument('[catalog]', `catalog: ${catalogForms}`)],
  flags,
  examples: [
    ['Serve a catalog over gRPC', 'opmate serve ./catalog'],
    ['Serve it over HTTP too, as catalogd does', 'opmate serve ./catalog --http 127.0.0.1:8080'],
    ['Build the cache, and exit', 'opmate serve ./catalog --cache-dir ./cache --cache-only'],
  ],
  async run({ context, args: [reference], options }) {
    const { catalogs, ui } = options;
    if (catalogs !== undefined) {
      if (ui !== undefined) throw new UsageError('--ui and --catalogs cannot be used together');
      if (reference !== undefined) throw new UsageError('--catalogs and a catalog cannot be used together');
      return (await import('../serve/catalogs.js')).serveCatalogs(context, catalogs, options);
    }
    if (options.grpc !== undefined) throw new UsageError('--grpc needs --catalogs', { hint: 'use --port' });
    if (reference === undefined) throw new UsageError('missing required argument "catalog"');
    const { workers = 1 } = options;
    if (workers === 1) {
      await serveCatalog(context, reference, options);
      return exitCodes.done;
    }
    return serveByWorkers(context, reference, workers, options);
  },
});

/** Serves with several processes: more calls at once, for the memory of each. Returns the exit code. */
async function serveByWorkers(
  context: CommandContext,
  reference: string,
  workers: number,
  options: FlagValues<typeof flags> & GlobalOptions,
): Promise<number> {
  if (options.http !== undefined || options.ui !== undefined || options.cacheOnly) {
    throw new UsageError('--workers: serves gRPC only', { hint: 'remove --http, --ui and --cache-only' });
  }
  const { isWorker, runAsWorker, runWorkers } = await import('../serve/workers.js');
  if (!isWorker()) return runWorkers(workers, context, createLogger(context, options));
  const maxConnections = Math.ceil((options.maxConnections ?? defaultMaxConnections) / workers);
  await runAsWorker(context, (worker) => serveCatalog(worker, reference, { ...options, maxConnections }));
  return exitCodes.done;
}

async function serveCatalog(
  context: CommandContext,
  reference: string,
  options: FlagValues<typeof flags> & GlobalOptions,
): Promise<void> {
  const port = parsePort(options);
  const { cacheDir, cacheOnly, cacheEnforceIntegrity, pprofAddr, pprofCaptureProfiles } = options;
  if (cacheDir === undefined && cacheEnforceIntegrity !== undefined) {
    throw new UsageError('--cache-dir must be specified with --cache-enforce-integrity');
  }
  if (cacheDir === undefined && cacheOnly) {
    throw new UsageError('--cache-only needs --cache-dir', { hint: 'specify the cache directory' });
  }
  await reportingFailure(context, options, () =>
    useSession(context, options, async (session) => {
      const { logger } = session;
      if (pprofAddr || pprofCaptureProfiles) {
        logger.log('warn', 'no effect: --pprof-addr, --pprof-capture-profiles');
      }
      const source = await openSource(reference, session, { bundles: false, catalogs: true }).catch(
        (error: unknown) => {
          throw inReference(error, reference);
        },
      );
      try {
        const catalog = catalogIn(source, reference);
        const queries = await openAnswers(catalog, reference, session, {
          cacheDirectory:
            cacheDir === undefined ? undefined : path.resolve(context.workingDirectory, cacheDir),
          requireCache: cacheEnforceIntegrity === true && !cacheOnly,
        });
        try {
          if (!cacheOnly) {
            const http =
              options.http === undefined
                ? undefined
                : await (
                    await import('../serve/http.js')
                  ).startHttp(context, catalog, reference, options, session);
            try {
              const ui =
                options.ui === undefined
                  ? undefined
                  : await (
                      await import('../serve/page.js')
                    ).startUi(context, catalog, reference, options.ui, session);
              try {
                return await serveAnswers(context, queries, reference, port, options, logger);
              } finally {
                await ui?.close();
              }
            } finally {
              await http?.close();
            }
          }
          // Being interrupted here leaves no cache, and says so.
          const stopWaiting = onAbort(context.signal, () => void queries.close());
          const { isCached, reason } = (await queries.encoded) ?? {
            isCached: false,
            reason: 'it needs none',
          };
          stopWaiting();
          if (context.signal.aborted) throw new CancelledError('interrupted');
          if (!isCached) {
            throw new OpmateError('IO', `${cacheDir}: cannot write the cache: ${reason}`, {
              hint: 'specify a writable directory with space for the bundles of the catalog',
            });
          }
        } finally {
          await queries.close();
        }
      } finally {
        await source.close();
      }
    }),
  );
}

function catalogIn(source: Source, reference: string): Catalog {
  if (source.kind === 'catalog') return source.catalog;
  throw new OpmateError('UNSUPPORTED', `${reference}: a bundle, not a catalog`);
}
