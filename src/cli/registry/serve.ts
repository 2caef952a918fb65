import { argument, defineCommand } from '../command/declaration.js';
import { flag, text } from '../command/flags.js';
import { getDatabase, databaseSummary } from './database.js';
import { registryServerFlags } from '../serve/server-flags.js';
import { getGrpcOptions, reportingFailure, waitUntilStopped } from '../serve/registry-server.js';
import { loadFromFlags, manifestFlags } from './manifest-index.js';
import path from 'node:path';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { onAbort, withOpen } from '../../core/concurrency.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import { serveIndex } from '../../api/serve/serve-catalog.js';
import { type CommandSession, useSession } from '../session.js';

const flags = {
  database: text('file', `${databaseSummary} (default: bundles.db)`, {
    short: 'd',
    mayBeEmpty: true,
    group: 'Input',
  }),
  ...manifestFlags,
  ...registryServerFlags,
  timeoutSeconds: text('seconds', 'exit after this many seconds', { default: 'infinite', group: 'Server' }),
  skipMigrate: flag('ignored; the file is never changed', { hidden: true }),
  containerTool: text('tool', 'ignored; accepted for compatibility', { short: 'c', hidden: true }),
};

/** `opmate registry serve`. */
export const command = defineCommand({
  summary: 'serve an index over the gRPC registry API',
  description:
    'With --configmap or --appregistry-namespace it serves the index that registry init creates, as configmap-server and appregistry-server did.',
  tool: 'opm',
  arguments: [argument('[database]', databaseSummary)],
  flags,
  examples: [
    ['Serve an index', 'opmate registry serve index.db'],
    [
      'Serve it on a free port, for one minute',
      'opmate registry serve index.db --port 0 --timeout-seconds 60',
    ],
  ],
  async run({ context, args: [file], options }) {
    const { configmap, appregistryNamespace } = options;
    const database = file === undefined ? options.database : getDatabase(file, options.database);
    const sources = [database, configmap, appregistryNamespace].filter((value) => value !== undefined);
    if (sources.length > 1) {
      throw new UsageError('expected one of --database, --configmap and --appregistry-namespace');
    }
    const grpc = getGrpcOptions(options);
    const signal = getEnd(context, options.timeoutSeconds);
    const serve = (index: string, name: string, session: CommandSession): Promise<void> =>
      withOpen(serveIndex(index, session, { grpc, name }), ({ grpcPort }) =>
        waitUntilStopped(signal, grpcPort, options, session.logger),
      );
    await reportingFailure(context, options, () =>
      useSession(context, options, async (session) => {
        if (configmap === undefined && appregistryNamespace === undefined) {
          const name = database ?? 'bundles.db';
          return serve(name, name, session);
        }
        return withTemporaryDirectory(session, async (directory) => {
          const name = configmap ?? (appregistryNamespace as string);
          const made = path.join(directory, 'index.db');
          await loadFromFlags(session, options, made, name);
          return serve(made, name, session);
        });
      }),
    );
  },
});

/** Returns a signal of the process or of `--timeout-seconds`. Throws UsageError. */
function getEnd({ signal }: CommandContext, timeoutSeconds: string): AbortSignal {
  if (timeoutSeconds === 'infinite') return signal;
  const seconds = /^[0-9]+$/.test(timeoutSeconds) ? Number(timeoutSeconds) : Infinity;
  if (seconds > 65535) {
    throw invalidValue('--timeout-seconds', timeoutSeconds, 'not a number of seconds', {
      hint: 'use a number from 0 to 65535, or "infinite"',
    });
  }
  const end = new AbortController();
  setTimeout(() => end.abort(), seconds * 1000).unref();
  onAbort(signal, () => end.abort());
  return end.signal;
}
