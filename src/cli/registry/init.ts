import { loadManifests } from '../../api/indexes/load-manifests.js';
import { defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { reportEnding } from '../ending.js';
import { shellWord } from '../printable.js';
import { databaseSummary } from './database.js';
import { getManifestSource, manifestFlags, reportLoaded, reportingProblems } from './manifest-index.js';

/** `opmate registry init`; exit code 4 if `--permissive` skipped something. */
export const command = defineCommand({
  summary: 'create an index from package manifests, like initializer',
  commonFlags: [
    'manifests',
    'configmap',
    'configmapName',
    'configmapNamespace',
    'kubeconfig',
    'permissive',
    'to',
  ],
  flags: {
    manifests: text('directory', 'directory of package manifests (default: manifests)', {
      short: 'm',
      excludes: ['configmap', 'configmapName', 'appregistryNamespace'],
      group: 'Input',
    }),
    ...manifestFlags,
    to: text('file', databaseSummary, { default: 'bundles.db', aliases: ['output', 'o'], group: 'Output' }),
  },
  examples: {
    'Create an index from ./manifests': 'opmate registry init --to new.db',
    'Read a ConfigMap of a cluster, as configmap-server did':
      'opmate registry init --configmap-name operators --configmap-namespace olm --to new.db',
    'Skip invalid packages': 'opmate registry init -m ./manifests --to new.db --permissive',
  },
  async runInSession({ options, session }) {
    const { to, permissive } = options;
    const report = await reportingProblems(session, () =>
      loadManifests(to, getManifestSource(options), session, { permissive }),
    );
    const code = reportLoaded(session, report, to);
    reportEnding(session.logger, [], `opmate registry serve ${shellWord(to)}`);
    return code;
  },
});
