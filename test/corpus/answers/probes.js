// Answers what operator-controller and boxcutter say about probes, phases, collision protection and digests.
import {
  computePhaseDigest,
  getCollisionProtection,
  groupByPhase,
} from '../../../dist/bundle/object-set/phases.js';
import { probeObject } from '../../../dist/bundle/object-set/probes.js';

const operations = {
  probe: ({ object, probes }) => {
    try {
      const { status, messages } = probeObject(object, probes);
      return status === 'True' ? { status } : { status, messages };
    } catch (error) {
      return { error: error.message };
    }
  },
  phases: ({ objects }) => {
    const identities = objects.map(({ apiVersion, kind, metadata: { name = '', namespace = '' } }) => ({
      apiVersion,
      kind,
      name,
      namespace,
    }));
    const phases = groupByPhase(identities).map((phase) => [
      phase.name,
      phase.objects.map(({ apiVersion, kind, namespace, name }) => [apiVersion, kind, namespace, name]),
    ]);
    return { phases };
  },
  collision: ({ collisionProtection }) => ({ effective: getCollisionProtection(...collisionProtection) }),
  digest: ({ phase, objects }) => ({ digest: computePhaseDigest(phase, objects) }),
};

export async function answer(given) {
  return { id: given.id, ...operations[given.op](given) };
}
