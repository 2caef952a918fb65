import { type ManifestSource, loadManifests } from '../../api/indexes/load-manifests.js';
import { logError } from '../../core/log.js';
import { ManifestsError } from '../../api/indexes/load-manifests.js';
import { type FlagValues, grouped, text } from '../command/flags.js';
import { exitCodes } from '../exit-codes.js';
import { count } from '../printable.js';
import type { CommandSession } from '../session.js';
import { permissiveFlag } from './database.js';

/** Flags of the commands that read package manifests of an earlier format. */
export const manifestFlags = {
  ...grouped('Input', {
    configmap: text('file', 'ConfigMap with package manifests', { excludes: ['appregistryNamespace'] }),
    appregistryNamespace: text('directory', 'directory of downloaded app-registry archives'),
  }),
  permissive: permissiveFlag,
};

/** Source of manifests; default: `manifests` below the working directory. */
type ManifestOptions = FlagValues<typeof manifestFlags> & { manifests?: string | undefined };

/** Runs `work` and logs each problem of manifests that fail to load. Throws the errors of `work`. */
export async function reportingProblems<T>(session: CommandSession, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ManifestsError && error.problems.length > 1) {
      for (const problem of error.problems) logError(session.logger, problem);
    }
    throw error;
  }
}

/**
 * Loads manifests into a database file and logs the result for `output`; returns the exit code. Throws what
 * `loadManifests` throws.
 */
export async function loadFromFlags(
  session: CommandSession,
  options: ManifestOptions,
  file: string,
  output: string,
): Promise<number> {
  const { manifests = 'manifests', configmap, appregistryNamespace, permissive } = options;
  const source: ManifestSource =
    configmap !== undefined
      ? { kind: 'configmap', file: configmap }
      : appregistryNamespace !== undefined
        ? { kind: 'archives', directory: appregistryNamespace }
        : { kind: 'manifests', directory: manifests };
  const { bundles, packages, problems } = await reportingProblems(session, () =>
    loadManifests(file, source, session, { permissive }),
  );
  const { logger } = session;
  for (const problem of problems) logError(logger, problem);
  if (bundles.length === 0 && packages.length === 0 && problems.length === 0)
    logger.log('warn', 'no bundles or packages in the input');
  const left = problems.length === 0 ? '' : `, ${count(problems.length, 'problem')}`;
  logger.log(
    'info',
    `${output}: ${count(bundles.length, 'bundle')}, ${count(packages.length, 'package')}${left}`,
  );
  return problems.length === 0 ? exitCodes.done : exitCodes.partly;
}
