import { argument, defineCommand } from '../command/declaration.js';
import { flag, parsed, text } from '../command/flags.js';
import { integer } from '../command/values.js';
import { getDatabase, databaseSummary } from './database.js';
import { registryServerFlags } from '../serve/server-flags.js';
import { getGrpcOptions, reportingFailure, waitUntilStopped } from '../serve/registry-server.js';
import { getManifestSource, manifestFlags, reportLoaded, reportingProblems } from './manifest-index.js';
import { onAbort, withOpen } from '../../core/concurrency.js';
import type { CommandContext } from '../context.js';
import { serveIndex } from '../../api/serve/serve-catalog.js';
import { useSession } from '../session.js';

const flags = {
  database: text('file', `${databaseSummary} (default: bundles.db)`, {
    short: 'd',
    mayBeEmpty: true,
    group: 'Input',
    excludes: ['configmap', 'configmapName', 'appregistryNamespace'],
  }),
  ...manifestFlags,
  configmap: { ...manifestFlags.configmap, excludes: ['appregistryNamespace', '<database>'] },
  configmapName: {
    ...manifestFlags.configmapName,
    excludes: ['configmap', 'appregistryNamespace', '<database>'],
  },
  appregistryNamespace: { ...manifestFlags.appregistryNamespace, excludes: ['<database>'] },
  ...registryServerFlags,
  timeoutSeconds: parsed(
    'seconds',
    'exit after this many seconds',
    (value) => (value === 'infinite' ? Infinity : integer(0, 65535)(value)),
    { default: Infinity, defaultText: 'infinite', group: 'Server' },
  ),
  skipMigrate: flag('ignored; the file is never changed', { hidden: true }),
  containerTool: text('tool', 'ignored; accepted for compatibility', { short: 'c', hidden: true }),
};

/** `opmate registry serve`. */
export const command = defineCommand({
  summary: 'serve an index over the gRPC registry API',
  description:
    'With --configmap, --configmap-name or --appregistry-namespace it serves the index that registry init creates, as configmap-server and appregistry-server did.',
  tool: 'opm',
  commonFlags: [
    'database',
    'configmap',
    'configmapName',
    'configmapNamespace',
    'kubeconfig',
    'appregistryNamespace',
    'port',
    'host',
    'timeoutSeconds',
    'permissive',
  ],
  arguments: [argument('[database]', databaseSummary)],
  flags,
  examples: {
    'Serve an index': 'opmate registry serve index.db',
    'Serve it on a free port, for one minute': 'opmate registry serve index.db --port 0 --timeout-seconds 60',
  },
  async run({ context, args: [file], options }) {
    const { configmap, configmapName, appregistryNamespace } = options;
    const source = configmap ?? configmapName ?? appregistryNamespace;
    const database = file === undefined ? options.database : getDatabase(file, options.database);
    const grpc = getGrpcOptions(options);
    const signal = getEnd(context, options.timeoutSeconds);
    await reportingFailure(context, options, () =>
      useSession(context, options, async (session) => {
        const index = source === undefined ? (database ?? 'bundles.db') : getManifestSource(options);
        const served = reportingProblems(session, () =>
          serveIndex(index, session, {
            grpc,
            name: source,
            permissive: options.permissive,
            onLoaded: (report) => void reportLoaded(session, report, source ?? ''),
          }),
        );
        await withOpen(served, ({ grpcPort }) => waitUntilStopped(signal, grpcPort, options, session.logger));
      }),
    );
  },
});

/** Returns a signal of the process or of `--timeout-seconds`. */
function getEnd({ signal }: CommandContext, seconds: number): AbortSignal {
  if (seconds === Infinity) return signal;
  const end = new AbortController();
  setTimeout(() => end.abort(), seconds * 1000).unref();
  onAbort(signal, () => end.abort());
  return end.signal;
}
