import { listSet } from '../../cluster/inventory.js';
import type { InventoryPlace } from '../../cluster/inventory.js';
import { checkSet } from './apply-deployment.js';
import type { Cluster } from './cluster.js';
import {
  type DeleteDeploymentOptions,
  type DeletedDeployment,
  deleteDeployment,
} from './delete-deployment.js';

/**
 * Deletes the deployments of a set that are not among those to keep, one after the other. Only deployments that were
 * applied with this set are considered. Throws OpmateError, USAGE for a set that is no label value.
 */
export async function pruneDeployments(
  set: string,
  kept: readonly InventoryPlace[],
  cluster: Cluster,
  options: DeleteDeploymentOptions,
): Promise<{ place: InventoryPlace; deleted: DeletedDeployment }[]> {
  checkSet(set);
  const keys = new Set(kept.map(({ namespace, name }) => `${namespace}/${name}`));
  const removed = (await listSet(cluster.kubectl, set)).filter(
    ({ namespace, name }) => !keys.has(`${namespace}/${name}`),
  );
  const results: { place: InventoryPlace; deleted: DeletedDeployment }[] = [];
  for (const place of removed)
    results.push({ place, deleted: await deleteDeployment(place, cluster, options) });
  return results;
}
