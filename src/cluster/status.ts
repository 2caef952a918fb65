import {
  type DeploymentInventory,
  type InventoryPlace,
  type Revision,
  currentRevision,
  loadRender,
} from './inventory.js';
import type { Kubectl } from './kubectl.js';
import type { ApplyPlan, PlannedChange } from './apply/plan-types.js';
import { describeUnready } from './objects.js';
import type { UnreadyObject } from './readiness.js';

/** A condition, named as in the status of a ClusterExtension. */
interface Condition {
  type: 'Installed' | 'Progressing' | 'Available' | 'Drifted';
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
}

/** Status of a deployment on a cluster. */
export interface DeploymentStatus {
  name: string;
  namespace: string;
  /** Revision that is on the cluster. */
  current: Revision | undefined;
  /** Last attempt, which may have failed. */
  last: Revision | undefined;
  conditions: Condition[];
  /** True if it is installed, available, settled and without drift. */
  isHealthy: boolean;
  unready: UnreadyObject[];
  /** Objects that differ from the current revision, with the managers of the fields. */
  drift: PlannedChange[];
  objects: number;
}

/** Returns the status from what was read: `drift` is undefined if it cannot be determined. */
export function toStatus(
  place: InventoryPlace,
  inventory: DeploymentInventory,
  unready: UnreadyObject[],
  drift: PlannedChange[] | undefined,
): DeploymentStatus {
  const current = currentRevision(inventory);
  const conditions = [
    installedCondition(current),
    progressingCondition(inventory),
    availableCondition(current, unready),
    driftedCondition(drift),
  ];
  return {
    ...place,
    current,
    last: inventory.revisions.at(-1),
    conditions,
    isHealthy: areHealthy(conditions),
    unready,
    drift: drift ?? [],
    objects: inventory.objects.length,
  };
}

/** Reports whether the conditions are those of a deployment that is installed, available, settled and without drift. */
function areHealthy(conditions: readonly Condition[]): boolean {
  const wanted = { Installed: 'True', Progressing: 'True', Available: 'True', Drifted: 'False' };
  return conditions.every(
    ({ type, status, reason }) => status === wanted[type] && reason !== 'RollingOut' && reason !== 'Deleting',
  );
}

function installedCondition(current: Revision | undefined): Condition {
  if (current === undefined)
    return { type: 'Installed', status: 'False', reason: 'Absent', message: 'No bundle installed' };
  const source = current.pins[0]?.ref ?? current.hash;
  return {
    type: 'Installed',
    status: 'True',
    reason: 'Succeeded',
    message: `Installed bundle ${source} successfully`,
  };
}

function progressingCondition({ unfinished, revisions }: DeploymentInventory): Condition {
  const last = revisions.at(-1);
  const type = 'Progressing' as const;
  if (unfinished?.isDeletion === true)
    return { type, status: 'True', reason: 'Deleting', message: `deletion started at ${unfinished.time}` };
  if (unfinished !== undefined)
    return { type, status: 'True', reason: 'RollingOut', message: `run started at ${unfinished.time}` };
  if (last?.result === 'failed') {
    const message = `revision ${last.revision} failed: ${last.reason ?? 'unknown reason'}`;
    return { type, status: 'False', reason: 'Failed', message };
  }
  return { type, status: 'True', reason: 'Succeeded', message: 'desired state reached' };
}

function availableCondition(current: Revision | undefined, unready: readonly UnreadyObject[]): Condition {
  const type = 'Available' as const;
  if (current === undefined)
    return { type, status: 'Unknown', reason: 'Absent', message: 'No bundle installed' };
  const [first] = unready;
  if (first === undefined)
    return { type, status: 'True', reason: 'ProbesSucceeded', message: 'objects are available' };
  const more = unready.length > 1 ? `; and ${unready.length - 1} more` : '';
  return { type, status: 'False', reason: 'ProbeFailure', message: `${describeUnready(first)}${more}` };
}

function driftedCondition(drift: readonly PlannedChange[] | undefined): Condition {
  const type = 'Drifted' as const;
  if (drift === undefined)
    return { type, status: 'Unknown', reason: 'Unknown', message: 'the stored render cannot be compared' };
  return drift.length === 0
    ? { type, status: 'False', reason: 'InSync', message: 'objects are as applied' }
    : {
        type,
        status: 'True',
        reason: 'Changed',
        message: `${drift.length} objects differ from the revision`,
      };
}

/** Returns the changes of a plan that are drift. */
export function getDrift({ changes }: ApplyPlan): PlannedChange[] {
  return changes.filter(({ change }) => ['add', 'heal', 'leave', 'change'].includes(change));
}

/** Returns the objects of the current revision as they were applied; undefined without a stored render. */
export async function loadCurrent(
  kubectl: Kubectl,
  place: InventoryPlace,
  { render }: Revision,
): Promise<Awaited<ReturnType<typeof loadRender>> | undefined> {
  return render === undefined ? undefined : loadRender(kubectl, place, render);
}
