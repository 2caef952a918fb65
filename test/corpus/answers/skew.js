import { checkUpgradeable } from '../../../dist/solve/openshift-gate.js';

/** Returns the condition by which OLM stops updates of a cluster. */
export async function answer({ id, release, objects }) {
  const { status, reason, message, blocking } = checkUpgradeable(objects, release ?? undefined);
  return {
    id,
    upgradeable: status,
    reason,
    message,
    blocking: blocking.map(({ namespace, name }) => `${namespace}/${name}`),
  };
}
