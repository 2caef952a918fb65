import {
  type Flag,
  type FlagValues,
  choice,
  flag,
  grouped,
  list,
  optionalList,
  parsed,
  repeated,
  required,
  requiredUnless,
  text,
} from '../command/flags.js';
import { argument } from '../command/declaration.js';
import { duration } from '../command/values.js';
import { certificateFlags, pinFlags } from '../bundle/content-flags.js';
import { outputFormat } from '../command/shared-flags.js';
import type { ClusterOptions } from '../../api/deployment/cluster.js';

/** Argument of commands that also install a package without a document. */
export const packageArgument = argument('[package]', 'package of a catalog, in place of documents');

/** Flags for the sources of deployments. */
export const deploymentFlags = {
  file: requiredUnless(
    ['<package>'],
    repeated('file', 'file with documents of deployments; - for stdin', {
      short: 'f',
      group: 'Input',
      excludes: ['<package>'],
    }),
  ),
  ...grouped('Input', {
    catalog: repeated('catalog', 'catalog: REF or NAME=REF[,priority=N][,labels=KEY=VALUE,…]'),
  }),
  ...grouped('Selection', {
    version: text('range', 'version range of the package; see "opmate help versions"', {
      needs: '<package>',
    }),
    channel: list('name', 'use only these channels of the package (default: all)', { needs: '<package>' }),
    name: text('name', 'name of the deployment (default: the package)', { needs: '<package>' }),
  }),
  ...grouped('Cluster', {
    installNamespace: text('namespace', 'namespace to install operators in; overrides the documents', {
      short: 'n',
      aliases: ['namespace'],
    }),
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
  as: text('user', 'user to act as, e.g. system:serviceaccount:NAMESPACE:NAME'),
  asGroup: repeated('group', 'with --as: group to act as', { needs: 'as' }),
});

/** Returns the cluster that the flags name. */
export function toClusterOptions({
  kubectl,
  kubeconfig,
  context,
  as,
  asGroup: asGroups,
}: FlagValues<typeof clusterFlags>): ClusterOptions {
  return { kubectl, kubeconfig, context, as, asGroups };
}

/** Flag for the namespace of a deployment. */
export const namespaceFlags = {
  namespace: required(text('namespace', 'namespace of the deployment', { short: 'n', group: 'Cluster' })),
};

/** `-o` of commands that print text, or data. */
export const dataOutput = outputFormat(['text', 'json', 'yaml'], { default: 'text' });

/** Flags for the changes that a plan may contain. */
export const planFlags = {
  ...clusterFlags,
  ...grouped('Behavior', {
    heal: choice(
      'policy',
      ['report', 'own', 'all'],
      'restore fields changed by others: none, applied ones, or all',
      {
        default: 'report',
      },
    ),
    forceConflicts: flag('take over fields managed by others; same as --heal all', { excludes: ['heal'] }),
    takeOver: flag('take over existing objects of no deployment, which are never deleted'),
    force: flag('also prune CRDs and namespaces'),
    crdUpgradeSafety: choice('enforcement', ['Strict', 'None'], 'check of CRD upgrades', {
      default: 'Strict',
    }),
  }),
  optionalKinds: optionalList(
    'kind',
    'omit objects of these kinds if the cluster lacks them (default: any)',
    {
      group: 'Cluster',
    },
  ),
};

/** Flags for approving a plan. */
export const approvalFlags = grouped('Behavior', {
  yes: flag('apply without confirmation', { excludes: ['approve'] }),
  approve: list('hash', 'approve only plans with these hashes, without confirmation'),
});

/** Returns a switch that is undefined unless it is set. */
function untold(item: Flag<boolean>): Flag<boolean | undefined> {
  return { ...item, default: undefined };
}

/** Flags for waiting. */
export const waitFlags = grouped('Behavior', {
  wait: untold(flag('wait until all objects are ready (default: on a terminal, and with --timeout)')),
  timeout: parsed('duration', 'maximum time to wait (default: 5m)', duration('0s')),
});

/** Flags of `deployment apply`. */
export const applyFlags = {
  ...deploymentFlags,
  ...planFlags,
  ...approvalFlags,
  ...waitFlags,
  ...grouped('Behavior', {
    prune: text('set', 'mark deployments with this set, and delete those missing in the files'),
    watch: flag('with --yes or --approve: keep rendering and applying until stopped', {
      needs: ['yes', 'approve'],
    }),
    interval: parsed('duration', 'with --watch: interval (default: 5m)', duration('1s'), { needs: 'watch' }),
  }),
  output: dataOutput,
};
