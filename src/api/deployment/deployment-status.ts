import { OpmateError } from '../../core/errors.js';
import { planApply } from '../../cluster/apply/plan-apply.js';
import type { InventoryPlace, Revision } from '../../cluster/inventory.js';
import type { PlannedChange } from '../../cluster/apply/plan-types.js';
import {
  type UnreadyObject,
  explainUnready,
  findUnready,
  waitUntilGone,
  waitUntilReady,
} from '../../cluster/readiness.js';
import { type DeploymentStatus, getDrift, loadCurrent, toStatus } from '../../cluster/status.js';
import type { ObjectId } from '../../cluster/objects.js';
import { getApplyOptions, getWaitOptions } from './apply-deployment.js';
import type { Cluster } from './cluster.js';
import { readDeploymentHistory } from './deployment-history.js';

/**
 * Reads the status of a deployment: revision, conditions as a ClusterExtension has them, objects that are not ready, and
 * fields that others have changed. Changes nothing. Throws OpmateError NOT_FOUND for one that was never applied.
 */
export async function readDeploymentStatus(
  place: InventoryPlace,
  cluster: Cluster,
): Promise<DeploymentStatus> {
  const { kubectl } = cluster;
  const { current, ...inventory } = await readDeploymentHistory(place, cluster);
  const unready =
    current === undefined
      ? []
      : await explainUnready(kubectl, await findUnready(kubectl, inventory.objects, current.healthChecks));
  const drift = current === undefined ? [] : await findDrift(place, current, cluster);
  return toStatus(place, inventory, unready, drift);
}

/** Compares the cluster with the stored render by a dry run; undefined if it is missing, changed, or refused. */
async function findDrift(
  place: InventoryPlace,
  current: Revision,
  cluster: Cluster,
): Promise<PlannedChange[] | undefined> {
  try {
    const objects = await loadCurrent(cluster.kubectl, place, current);
    if (objects === undefined) return undefined;
    const deployment = { ...current, name: place.name, installNamespace: place.namespace, objects };
    const options = getApplyOptions(cluster, {
      takeOver: true,
      isCrdUpgradeChecked: false,
      optionalKinds: 'all',
    });
    const plan = await planApply(cluster.kubectl, deployment, options);
    return plan.findings.length > 0 ? undefined : getDrift(plan);
  } catch (error) {
    if (error instanceof OpmateError && ['DIGEST', 'NOT_FOUND'].includes(error.code)) return undefined;
    throw error;
  }
}

/** Options of `waitForDeployment`. */
export interface WaitForDeploymentOptions {
  /** Maximum time in milliseconds; default 5 minutes. */
  timeoutMs?: number | undefined;
  /** State to wait for; default `available`. */
  until?: 'available' | 'deleted' | undefined;
  /** Called with the objects that are not ready. */
  onProgress?: ((unready: readonly UnreadyObject[]) => void) | undefined;
}

const defaultTimeoutMs = 5 * 60_000;

/**
 * Waits until the objects of a deployment are ready, or deleted. Returns those that are not after the time-out, with
 * reasons. Throws OpmateError NOT_FOUND for a deployment that was never applied, unless its deletion is awaited.
 */
export async function waitForDeployment(
  place: InventoryPlace,
  cluster: Cluster,
  { timeoutMs = defaultTimeoutMs, until = 'available', onProgress }: WaitForDeploymentOptions = {},
): Promise<UnreadyObject[]> {
  const { kubectl } = cluster;
  const options = getWaitOptions(cluster, timeoutMs, onProgress);
  if (until === 'available') {
    const { objects, unfinished, current } = await readDeploymentHistory(place, cluster);
    const ids: ObjectId[] = objects.length > 0 ? objects : (unfinished?.objects ?? []);
    return waitUntilReady(kubectl, ids, current?.healthChecks ?? [], options);
  }
  const history = await readDeploymentHistory(place, cluster).catch((error: unknown) => {
    if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
  if (history === undefined) return [];
  const held = history.objects.filter(
    ({ kind }) => kind !== 'CustomResourceDefinition' && kind !== 'Namespace',
  );
  const left = await waitUntilGone(kubectl, held, options);
  return left.map((id) => ({ ...id, reasons: ['still exists'] }));
}
