import { flag, list, parsed, repeated, text } from '../command/flags.js';
import { milliseconds } from '../command/values.js';
import { pinFlags } from '../bundle/content-flags.js';
import { certificateFlags } from './certificate-flags.js';

/** Flags for what deployments are rendered from. */
export const deploymentFlags = {
  file: repeated('file', 'file with BundleDeployments, or Bundles and BundleInstances; - for stdin', {
    short: 'f',
    group: 'Input',
  }),
  installNamespace: text('namespace', 'namespace to install operators in; overrides the documents', {
    group: 'Cluster',
  }),
  watchNamespace: repeated('namespace', 'namespace to watch (default: as in the documents)', {
    group: 'Cluster',
  }),
  ...certificateFlags,
  config: text('file', 'configuration or chart values for documents without any', { group: 'Input' }),
  secrets: text('directory', 'directory with manifests of referenced Secrets', { group: 'Input' }),
  configMaps: text('directory', 'directory with manifests of referenced ConfigMaps', { group: 'Input' }),
  ...pinFlags,
  allowLocal: flag('allow documents to use layouts, archives and repositories on this machine', {
    group: 'Input',
  }),
  allowInsecure: flag('allow documents to skip certificate verification', { group: 'Input' }),
};

/** Flags for the cluster that a command works on. */
export const clusterFlags = {
  kubeconfig: text('file', 'kubeconfig file', { group: 'Cluster' }),
  context: text('name', 'kubeconfig context', { group: 'Cluster' }),
  kubectl: text('program', 'kubectl program', { default: 'kubectl', group: 'Cluster' }),
};

/** The flag for the namespace of one deployment. */
export const namespaceFlags = {
  namespace: text('namespace', 'namespace of the deployment', { short: 'n', group: 'Cluster' }),
};

/** Flags for how a command that changes a cluster is approved, and how far it goes. */
export const approvalFlags = {
  ...clusterFlags,
  yes: flag('apply without confirmation', { group: 'Behavior' }),
  approve: list('hash', 'apply renders with these hashes without confirmation, and no others', {
    group: 'Behavior',
  }),
  forceConflicts: flag('take over fields managed by others', { group: 'Behavior' }),
  force: flag('also prune CRDs and namespaces', { group: 'Behavior' }),
};

/** Flags of `bundle deployment apply`. */
export const applyFlags = {
  ...deploymentFlags,
  ...approvalFlags,
  watch: flag('keep rendering and applying until stopped; requires --yes or --approve', {
    group: 'Behavior',
  }),
  interval: parsed('duration', 'with --watch: interval (default: 5m)', milliseconds, { group: 'Behavior' }),
};
