import { type ManifestSource, ManifestsError } from '../../api/indexes/load-manifests.js';
import type { LoadReport } from '../../sqlite/legacy/manifest-loader.js';
import { logError } from '../../core/log.js';
import { type FlagValues, grouped, text } from '../command/flags.js';
import { clusterFlags, toClusterOptions } from '../deployment/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { exitCodes } from '../exit-codes.js';
import { count } from '../printable.js';
import type { CommandSession } from '../session.js';
import { permissiveFlag } from './database.js';

/** Flags of the commands that read package manifests of an earlier format. */
export const manifestFlags = {
  ...grouped('Input', {
    configmap: text('file', 'ConfigMap with package manifests', { excludes: ['appregistryNamespace'] }),
    configmapName: text('name', 'ConfigMap of a cluster with package manifests', {
      aliases: ['configMapName'],
      excludes: ['configmap', 'appregistryNamespace'],
      needs: 'configmapNamespace',
    }),
    configmapNamespace: text('namespace', 'namespace of the ConfigMap', {
      aliases: ['configMapNamespace'],
      needs: 'configmapName',
    }),
    appregistryNamespace: text(
      'namespace',
      'directory of app-registry archives, or a namespace of the endpoint',
    ),
    appregistryEndpoint: text('url', 'address of the app registry that has the namespace', {
      needs: 'appregistryNamespace',
    }),
  }),
  authToken: text('token', 'app registry token, sent verbatim', {
    group: 'Registry',
    needs: 'appregistryEndpoint',
  }),
  permissive: permissiveFlag,
  ...clusterFlags,
};

/** Source of manifests; default: `manifests` below the working directory. */
type ManifestOptions = FlagValues<typeof manifestFlags> &
  Pick<GlobalOptions, 'useHttp' | 'skipTls'> & { manifests?: string | undefined };

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

/** Returns the source of the flags. */
export function getManifestSource(options: ManifestOptions): ManifestSource {
  const { manifests = 'manifests', configmap, appregistryNamespace, appregistryEndpoint } = options;
  const { configmapName: configMap, configmapNamespace: namespace = '' } = options;
  if (configMap !== undefined)
    return { kind: 'cluster', configMap, namespace, cluster: toClusterOptions(options) };
  if (configmap !== undefined) return { kind: 'configmap', file: configmap };
  if (appregistryNamespace === undefined) return { kind: 'manifests', directory: manifests };
  if (appregistryEndpoint === undefined) return { kind: 'archives', directory: appregistryNamespace };
  return getAppRegistrySource(appregistryNamespace, options);
}

/** Returns the namespace of an app registry as a source. */
export function getAppRegistrySource(
  namespace: string,
  {
    appregistryEndpoint: endpoint,
    authToken: token,
    useHttp,
    skipTls,
  }: Pick<ManifestOptions, 'appregistryEndpoint' | 'authToken' | 'useHttp' | 'skipTls'>,
): ManifestSource & { kind: 'namespace' } {
  return { kind: 'namespace', namespace, endpoint, useHttp: useHttp === true || skipTls === true, token };
}

/** Logs what was loaded for `output`; returns the exit code. */
export function reportLoaded(
  { logger }: CommandSession,
  { bundles, packages, problems }: LoadReport,
  output: string,
): number {
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
