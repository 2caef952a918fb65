import { invalidValue, OpmateError, UsageError } from '../../core/errors.js';
import type { Applicable } from '../../cluster/apply/plan-types.js';
import {
  type DeploymentInventory,
  type InventoryPlace,
  type Revision,
  currentRevision,
  isSameSource,
  loadRender,
  readInventory,
} from '../../cluster/inventory.js';
import { hashOfObjects } from '../../cluster/documents/render-deployments.js';
import { quoteGo } from '../../document/go-json.js';
import { labelFault, subdomainFault } from '../../kube/names.js';
import { type AppliedDeployment, type ApplyDeploymentOptions, applyRender } from './apply-deployment.js';
import type { Cluster } from './cluster.js';
import type { DeployedBundle } from './resolve-documents.js';

/** Revisions of a deployment on a cluster. */
export interface DeploymentHistory extends DeploymentInventory {
  /** The revision that is on the cluster. */
  current: Revision | undefined;
}

/**
 * Reads the revisions of a deployment, oldest first, and the objects that belong to it. Throws OpmateError NOT_FOUND for
 * one that was never applied, and USAGE for names that no deployment can have.
 */
export async function readDeploymentHistory(
  place: InventoryPlace,
  { kubectl }: Cluster,
): Promise<DeploymentHistory> {
  requireName('the name of the deployment', place.name, subdomainFault);
  requireName('place.namespace', place.namespace, labelFault);
  const { inventory, resourceVersion } = await readInventory(kubectl, place);
  if (resourceVersion === undefined) {
    throw new OpmateError(
      'NOT_FOUND',
      `${place.name}: no deployment of this name was applied in namespace ${quoteGo(place.namespace)}`,
      { hint: 'specify its install namespace with place.namespace' },
    );
  }
  return { ...inventory, current: currentRevision(inventory) };
}

/** Throws UsageError for a text that is not a valid name. */
function requireName(subject: string, text: string, findFault: (text: string) => string | undefined): void {
  if (text === '') throw new UsageError('missing', { subject });
  const fault = findFault(text);
  if (fault !== undefined) throw invalidValue(subject, text, fault);
}

/** Returns the bundle of a deployment that is on the cluster; undefined for none, and for other formats. */
export async function findInstalledBundle(
  place: InventoryPlace,
  { kubectl }: Cluster,
): Promise<DeployedBundle | undefined> {
  const { inventory } = await readInventory(kubectl, place);
  const { bundleName: name, version = '' } = currentRevision(inventory) ?? {};
  return name === undefined ? undefined : { name, version };
}

/** Options of `rollBackDeployment`. */
export interface RollBackDeploymentOptions extends ApplyDeploymentOptions {
  /** Default the last one whose render differs from the current one. */
  toRevision?: number | undefined;
}

/**
 * Applies the render of an earlier revision again, as a new revision; no source is read. Throws OpmateError NOT_FOUND
 * for a revision that is not kept, and DIGEST where the stored objects are not those that were applied.
 */
export async function rollBackDeployment(
  place: InventoryPlace,
  cluster: Cluster,
  { toRevision, ...options }: RollBackDeploymentOptions,
): Promise<AppliedDeployment> {
  const { name, namespace } = place;
  const history = await readDeploymentHistory(place, cluster);
  const { revision, packageName, bundleName, version, healthChecks, hash, pins, render } = getTarget(
    name,
    history,
    toRevision,
  );
  const objects = await loadRender(cluster.kubectl, place, render);
  if ((await hashOfObjects(objects, cluster.session)) !== hash) {
    throw new OpmateError('DIGEST', `${name}: stored objects differ from those of revision ${revision}`, {
      hint: 'apply the deployment from its document: the inventory was edited',
    });
  }
  const deployment: Applicable = {
    name,
    installNamespace: namespace,
    objects,
    pins,
    hash,
    ...(packageName !== undefined && { packageName }),
    ...(bundleName !== undefined && { bundleName }),
    ...(version !== undefined && { version }),
    ...(healthChecks !== undefined && { healthChecks }),
  };
  return applyRender(deployment, cluster, { ...options, rollbackTo: revision });
}

function getTarget(
  name: string,
  { current, revisions }: DeploymentHistory,
  wanted: number | undefined,
): Revision & Required<Pick<Revision, 'render'>> {
  const target = revisions.findLast((item) =>
    wanted === undefined
      ? item !== current &&
        item.render !== undefined &&
        (current === undefined || !isSameSource(current, item))
      : item.revision === wanted,
  );
  const hint = 'list the revisions in the history of the deployment';
  if (target === undefined) {
    const what = wanted === undefined ? 'nothing to go back to' : `revision ${wanted} not found`;
    throw new OpmateError('NOT_FOUND', `${name}: ${what}`, { hint });
  }
  const { render } = target;
  if (render !== undefined) return { ...target, render };
  const why = target.result === 'failed' ? 'was not applied' : 'is kept no longer';
  throw new OpmateError('NOT_FOUND', `${name}: revision ${target.revision} ${why}`, { hint });
}
