import { catalogForms } from '../../api/open-catalog.js';
import { buildServeCache, serveCatalog } from '../../api/serve/serve-catalog.js';
import { withOpen } from '../../core/concurrency.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import {
  defaultMaxConnections,
  findCatalogNameFault,
  getDefaultCatalogName,
} from '../../api/serve/server-defaults.js';
import { argument, defineCommand } from '../command/declaration.js';
import {
  type Flag,
  type FlagValues,
  flag,
  grouped,
  optionalValue,
  parsed,
  repeated,
  text,
} from '../command/flags.js';
import { integer } from '../command/values.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';
import { withFlags } from '../reports/option-words.js';
import { getAddress, getHttpOptions } from '../serve/listen-options.js';
import { getGrpcOptions, reportingFailure, waitUntilStopped } from '../serve/registry-server.js';
import { catalogServerFlags, registryServerFlags } from '../serve/server-flags.js';
import { useSession } from '../session.js';

/** Undefined by default: opm refuses any value of it without `--cache-dir`. */
const cacheEnforceIntegrity: Flag<boolean | undefined> = {
  ...flag('fail if the cache belongs to another catalog', { group: 'Behavior' }),
  default: undefined,
};

const flags = {
  ...registryServerFlags,
  port: { ...registryServerFlags.port, excludes: ['catalogs'] },
  host: { ...registryServerFlags.host, excludes: ['catalogs'] },
  ...catalogServerFlags,
  ...grouped('Input', {
    catalogs: text('directory', 'serve the catalogs described by manifests in this directory, over HTTP', {
      excludes: ['<catalog>'],
    }),
    secrets: text('directory', 'with --catalogs: directory with manifests of referenced Secrets', {
      needs: 'catalogs',
    }),
    secret: repeated('name=host', 'with --secrets: host of a Secret without tekton.dev/git-0 annotation', {
      needs: 'secrets',
    }),
  }),
  grpc: optionalValue(
    'address',
    'with --catalogs: serve gRPC on HOST:PORT too, catalogs by host name (default: 127.0.0.1:50051)',
    { group: 'Server', needs: 'catalogs' },
  ),
  ...grouped('Behavior', {
    cacheDir: text('directory', 'cache directory, reused by the next start', {
      mayBeEmpty: true,
      excludes: ['catalogs'],
    }),
    cacheOnly: flag('build the cache and exit', { needs: 'cacheDir' }),
  }),
  cacheEnforceIntegrity,
  ...grouped('Server', {
    ui: optionalValue('address', 'also serve a catalog page on HOST:PORT (default: 127.0.0.1:8081)', {
      excludes: ['catalogs'],
    }),
    workers: parsed('count', 'number of processes that share the gRPC port', integer(1, 1000), {
      default: 1,
      excludes: ['http', 'ui', 'cacheOnly', 'catalogs'],
    }),
  }),
  pprofAddr: text('address', 'ignored; accepted for compatibility', { hidden: true }),
  pprofCaptureProfiles: flag('ignored; accepted for compatibility', { hidden: true }),
};

/** `opmate serve`. */
export const command = defineCommand({
  summary: 'serve a catalog over gRPC (and HTTP with --http), or many catalogs over HTTP with --catalogs',
  tool: 'opm',
  arguments: [argument('[catalog]', `catalog: ${catalogForms}`)],
  flags,
  commonFlags: [
    'port',
    'host',
    'cacheDir',
    'cacheOnly',
    'http',
    'ui',
    'catalogs',
    'tlsCert',
    'tlsKey',
    'storage',
  ],
  examples: {
    'Serve a catalog over gRPC': 'opmate serve ./catalog',
    'Serve it over HTTP too, as catalogd does': 'opmate serve ./catalog --http 127.0.0.1:8080',
    'Build the cache, and exit': 'opmate serve ./catalog --cache-dir ./cache --cache-only',
  },
  async run({ context, args: [reference], options }) {
    const { catalogs } = options;
    if (catalogs !== undefined) {
      const { serveManifests } = await import('../serve/catalogs.js');
      return serveManifests(context, catalogs, options);
    }
    if (reference === undefined)
      throw new UsageError('missing required argument "catalog"', { hint: 'see opmate serve --help' });
    const { workers } = options;
    if (workers === 1) {
      await serveReference(context, reference, options);
      return exitCodes.done;
    }
    return serveByWorkers(context, reference, workers, options);
  },
});

async function serveByWorkers(
  context: CommandContext,
  reference: string,
  workers: number,
  options: FlagValues<typeof flags> & GlobalOptions,
): Promise<number> {
  const { isWorker, runAsWorker, runWorkers } = await import('../serve/workers.js');
  if (!isWorker()) return runWorkers(workers, context, createLogger(context, options));
  const maxConnections = Math.ceil((options.maxConnections ?? defaultMaxConnections) / workers);
  await runAsWorker(context, (worker) => serveReference(worker, reference, { ...options, maxConnections }));
  return exitCodes.done;
}

async function serveReference(
  context: CommandContext,
  reference: string,
  options: FlagValues<typeof flags> & GlobalOptions,
): Promise<void> {
  const { cacheDir, cacheOnly, cacheEnforceIntegrity, http, ui, pprofAddr, pprofCaptureProfiles } = options;
  const grpc = getGrpcOptions(options);
  if (cacheDir === undefined && cacheEnforceIntegrity !== undefined) {
    throw new UsageError('--cache-dir must be specified with --cache-enforce-integrity');
  }
  await reportingFailure(context, options, () =>
    useSession(context, options, async (session) => {
      const { logger } = session;
      if (pprofAddr || pprofCaptureProfiles) {
        logger.log('warn', 'no effect: --pprof-addr, --pprof-capture-profiles');
      }
      if (cacheDir !== undefined && cacheOnly) return buildServeCache(reference, cacheDir, session);
      const served = serveCatalog(reference, session, {
        grpc,
        http: http === undefined ? undefined : getHttpOptions(options),
        name: http === undefined ? undefined : getName(options.name, reference),
        storage: options.storage,
        cacheDirectory: cacheDir,
        requireCache: cacheEnforceIntegrity,
        page:
          ui === undefined ? undefined : { ...getAddress(ui, '--ui', '127.0.0.1:8081'), reword: withFlags },
      });
      await withOpen(served, async ({ url, pageUrl, grpcPort = 0 }) => {
        for (const item of [url, pageUrl])
          if (item !== undefined) await writeAll(context.stdout, `${item}\n`);
        await waitUntilStopped(context.signal, grpcPort, options, logger);
      });
    }),
  );
}

function getName(name: string | undefined, reference: string): string {
  if (name === undefined) return getDefaultCatalogName(reference);
  const fault = findCatalogNameFault(name);
  if (fault === undefined) return name;
  throw invalidValue('--name', name, fault);
}
