import { flag, grouped, list, parsed, repeated, required, text } from '../command/flags.js';
import { duration } from '../command/values.js';
import { certificateFlags, pinFlags } from '../bundle/content-flags.js';

/** Flags for the sources of deployments. */
export const deploymentFlags = {
  file: required(
    repeated('file', 'file with BundleDeployments, or Bundles and BundleInstances; - for stdin', {
      short: 'f',
      group: 'Input',
    }),
  ),
  ...grouped('Cluster', {
    installNamespace: text('namespace', 'namespace to install operators in; overrides the documents'),
    watchNamespace: repeated('namespace', 'namespace to watch (default: as in the documents)'),
  }),
  ...certificateFlags,
  ...grouped('Input', {
    config: text('file', 'configuration or chart values for documents without any'),
    secrets: text('directory', 'directory with manifests of referenced Secrets'),
    secret: repeated('name=host', 'with --secrets: host of a Secret without tekton.dev/git-0 annotation', {
      needs: 'secrets',
    }),
    configMaps: text('directory', 'directory with manifests of referenced ConfigMaps'),
  }),
  ...pinFlags,
  ...grouped('Input', {
    allowLocal: flag('allow layouts, archives and repositories of this machine in documents'),
    allowForeignSecrets: flag("allow documents to use Secrets of other namespaces than the operator's"),
    allowInsecure: flag('allow documents to skip certificate verification'),
  }),
};

/** Flags for the cluster. */
export const clusterFlags = grouped('Cluster', {
  kubeconfig: text('file', 'kubeconfig file'),
  context: text('name', 'kubeconfig context'),
  kubectl: text('program', 'kubectl program', { default: 'kubectl' }),
});

/** Flag for the namespace of a deployment. */
export const namespaceFlags = {
  namespace: required(text('namespace', 'namespace of the deployment', { short: 'n', group: 'Cluster' })),
};

/** Flags for changes of a cluster and their approval. */
export const approvalFlags = {
  ...clusterFlags,
  ...grouped('Behavior', {
    yes: flag('apply without confirmation', { excludes: ['approve'] }),
    approve: list('hash', 'apply renders with these hashes without confirmation, and no others'),
    forceConflicts: flag('take over fields managed by others'),
    force: flag('also prune CRDs and namespaces'),
  }),
};

/** Flags of `bundle deployment apply`. */
export const applyFlags = {
  ...deploymentFlags,
  ...approvalFlags,
  ...grouped('Behavior', {
    watch: flag('with --yes or --approve: keep rendering and applying until stopped', {
      needs: ['yes', 'approve'],
    }),
    interval: parsed('duration', 'with --watch: interval (default: 5m)', duration('1s'), { needs: 'watch' }),
  }),
};
