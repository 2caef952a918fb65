import { OpmateError } from '../../core/errors.js';
import { type Inventory, readInventory } from '../../deployment/cluster/inventory.js';
import type { Kubectl } from '../../deployment/cluster/kubectl.js';
import { quoteGo } from '../../document/go-json.js';
import { labelFault, subdomainFault } from '../../kube/names.js';
import { requireName } from './approval.js';

/** Where the inventory of a deployment is. Throws UsageError. */
export function checkInventoryName(
  name: string,
  namespace: string | undefined,
): { name: string; namespace: string } {
  return {
    name: requireName('the name of the deployment', name, subdomainFault),
    namespace: requireName('--namespace', namespace, labelFault),
  };
}

/** The inventory of a deployment. Throws OpmateError NOT_FOUND if missing. */
export async function requireInventory(
  kubectl: Kubectl,
  place: { name: string; namespace: string },
): Promise<Inventory> {
  const { inventory, resourceVersion } = await readInventory(kubectl, place);
  if (resourceVersion !== undefined) return inventory;
  throw new OpmateError(
    'NOT_FOUND',
    `${place.name}: no deployment of this name was applied in namespace ${quoteGo(place.namespace)}`,
    { hint: 'name the namespace that it is installed in with --namespace' },
  );
}
