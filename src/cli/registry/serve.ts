import path from 'node:path';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { onAbort } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import { openSqliteAnswers } from '../../serve/grpc/sqlite-answers.js';
import type { CommandContext } from '../context.js';
import { portOf } from '../serve/listen-options.js';
import { databaseOf } from '../options.js';
import { type CommandSession, useSession } from '../session.js';
import { type ManifestOptions, makeIndex, tell } from './init.js';
import { type ServerOptions, reportingFailure, serveAnswers } from '../serve/serve.js';

interface RegistryServeOptions extends ServerOptions, Omit<ManifestOptions, 'manifests'> {
  database?: string;
  timeoutSeconds?: string;
}

/**
 * `opmate registry serve`: an index as gRPC registry API, until it is told to stop or its time is over. What is in a
 * ConfigMap or in app-registry archives is served as the index that `registry init` makes of it.
 */
export async function registryServe(
  context: CommandContext,
  argument: string | undefined,
  options: RegistryServeOptions,
): Promise<void> {
  const { configmap, appregistryNamespace } = options;
  const database = argument === undefined ? options.database : databaseOf(argument, options.database);
  const given = [database, configmap, appregistryNamespace].filter((value) => value !== undefined);
  if (given.length > 1) {
    throw new UsageError('give one of --database, --configmap and --appregistry-namespace');
  }
  portOf(options);
  const signal = endOf(context, options);
  await reportingFailure(context, options, () =>
    useSession(context, options, async (session) => {
      if (configmap === undefined && appregistryNamespace === undefined) {
        const file = database ?? 'bundles.db';
        return serveIndex(file, file, session, options, signal);
      }
      return withTemporaryDirectory(session, async (directory) => {
        const name = configmap ?? (appregistryNamespace as string);
        const file = path.join(directory, 'index.db');
        tell(session, await makeIndex(file, session, options), name);
        return serveIndex(file, name, session, options, signal);
      });
    }),
  );
}

async function serveIndex(
  file: string,
  name: string,
  session: CommandSession,
  options: RegistryServeOptions,
  signal: AbortSignal,
): Promise<void> {
  const answers = await openSqliteAnswers(file, session, { name });
  try {
    await serveAnswers({ signal }, answers, name, portOf(options), options, session.logger);
  } finally {
    await answers.close();
  }
}

/** What ends serving: the process being told to, or `--timeout-seconds`. */
function endOf(
  { signal }: CommandContext,
  { timeoutSeconds = 'infinite' }: RegistryServeOptions,
): AbortSignal {
  if (timeoutSeconds === 'infinite') return signal;
  const seconds = /^[0-9]+$/.test(timeoutSeconds) ? Number(timeoutSeconds) : Infinity;
  if (seconds > 65535) {
    throw new UsageError(`--timeout-seconds ${timeoutSeconds}: not a number of seconds`, {
      hint: 'give a number from 0 to 65535, or "infinite"',
    });
  }
  const end = new AbortController();
  setTimeout(() => end.abort(), seconds * 1000).unref();
  onAbort(signal, () => end.abort());
  return end.signal;
}
