import { type DeletionReport, executeDelete } from '../../cluster/delete/delete.js';
import type { InventoryPlace } from '../../cluster/inventory.js';
import { type DeletionOptions, type DeletionPlan, planDelete } from '../../cluster/delete/plan-delete.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { findApprovalFault } from './apply-deployment.js';
import type { Cluster } from './cluster.js';
import { readDeploymentHistory } from './deployment-history.js';

/** Options of `deleteDeployment`. */
export interface DeleteDeploymentOptions extends DeletionOptions {
  /** Approves a plan before anything is deleted, as for applying. */
  approve: readonly string[] | ((plan: DeletionPlan) => boolean | Promise<boolean>);
  /** Called with the plan before it is approved. */
  onPlanned?: ((plan: DeletionPlan) => void | Promise<void>) | undefined;
  /** Maximum seconds per phase until deleted objects must be gone; default 120. */
  timeoutSeconds?: number | undefined;
}

/** Outcome of a deletion. Nothing was deleted unless it is `deleted`. */
export type DeletedDeployment =
  | { state: 'deleted'; plan: DeletionPlan; report: DeletionReport }
  | { state: 'declined'; plan: DeletionPlan }
  | { state: 'refused'; plan: DeletionPlan; findings: readonly Diagnostic[] };

/**
 * Deletes a deployment and waits until its objects are gone: in the reverse order of phases, definitions only with
 * `isWithDefinitions`, never objects that existed before it or belong to others. An interrupted deletion is continued by
 * the next call. With `isOrphaning`, only the records of the deployment are deleted. Throws OpmateError NOT_FOUND for a deployment that was never applied, and if objects stay.
 */
export async function deleteDeployment(
  place: InventoryPlace,
  cluster: Cluster,
  { approve, onPlanned, timeoutSeconds, ...options }: DeleteDeploymentOptions,
): Promise<DeletedDeployment> {
  const { kubectl, session } = cluster;
  await readDeploymentHistory(place, cluster);
  const plan = await planDelete(kubectl, place, options);
  if (plan.findings.length > 0) return { state: 'refused', plan, findings: plan.findings };
  await onPlanned?.(plan);
  if (typeof approve === 'function') {
    if (!(await approve(plan))) return { state: 'declined', plan };
  } else {
    const mismatch = findApprovalFault(place.name, plan.approval, approve);
    if (mismatch !== undefined) return { state: 'refused', plan, findings: [mismatch] };
  }
  const { now, logger } = session;
  const report = await executeDelete(kubectl, plan, {
    now,
    logger,
    ...(timeoutSeconds !== undefined && { timeoutSeconds }),
  });
  return { state: 'deleted', plan, report };
}
