import { getLabels } from '../../kube/label-selector.js';
import { getKey, getName, getNamespace } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';
import type { InstalledSubscription } from './installed.js';

/** A step that removes objects of OLM v0 after the migration. */
export interface CleanupStep {
  description: string;
  succeeded: boolean;
  skipped: boolean;
}

function done(description: string): CleanupStep {
  return { description, succeeded: true, skipped: false };
}

function skipped(description: string): CleanupStep {
  return { description, succeeded: false, skipped: true };
}

/** Returns the steps that remove what OLM v0 leaves, once Subscription and ClusterServiceVersion are deleted. */
export function cleanupSteps(
  cluster: ClusterIndex,
  { subscription, csv, packageName }: InstalledSubscription,
  deletesOperatorGroup: boolean,
): CleanupStep[] {
  const namespace = getNamespace(subscription);
  const copied = cluster
    .list(kinds.csv, { labels: { 'olm.managed': 'true', 'olm.copiedFrom': namespace } })
    .filter((copy) => getName(copy) === getName(csv));
  const remaining = cluster
    .list(kinds.subscription, { namespace })
    .filter((other) => getKey(other) !== getKey(subscription)).length;
  const group = 'Delete OperatorGroup';
  return [
    done(`Delete Operator CR ${packageName}.${namespace}`),
    done(`Delete OperatorCondition ${namespace}/${getName(csv)}`),
    copied.length > 0 ? done(`Delete ${copied.length} copied CSV(s)`) : skipped('Delete copied CSVs'),
    ...(!deletesOperatorGroup
      ? [skipped(`${group} (skipped: --delete-operatorgroup not set)`)]
      : remaining > 0
        ? [skipped(`${group} (skipped: ${remaining} Subscription(s) remain)`)]
        : groupSteps(cluster, namespace)),
  ];
}

const ownerLabels = ['olm.owner', 'olm.owner.namespace', 'olm.owner.kind', 'olm.managed'];

function groupSteps(cluster: ClusterIndex, namespace: string): CleanupStep[] {
  return cluster.list(kinds.operatorGroup, { namespace }).flatMap((group) => {
    const roles = cluster
      .list(kinds.clusterRole)
      .filter((role) => getName(role).startsWith(`olm.og.${getName(group)}.`))
      .filter((role) => ownerLabels.some((label) => getLabels(role).has(label)));
    return [
      ...roles.map((role) => done(`Strip OLM labels from aggregation ClusterRole ${getName(role)}`)),
      done(`Delete OperatorGroup ${getKey(group)}`),
    ];
  });
}
