import type { JsonObject } from '../../document/json.js';
import { getObject, getText } from '../../document/json-fields.js';
import { findOlmV1Schema } from '../../kube/definitions/olm-v1.js';
import { type ObjectValidation, validateObject } from '../../kube/schema/validate-object.js';
import { reconcileExtension } from './reconcile-extension.js';
import { reconcileSet } from './reconcile-set.js';
import { type SimulatedId, SimulatedCluster, mergePatch } from './simulated-cluster.js';

/** A step on a simulated cluster. */
type SimulationStep =
  | { do: 'create'; object: JsonObject }
  | { do: 'patch'; id: SimulatedId; patch: JsonObject }
  | { do: 'status'; id: SimulatedId; status: JsonObject }
  | { do: 'delete'; id: SimulatedId }
  /** Time passes, for deadlines. */
  | { do: 'wait'; seconds: number };

/** Result of a step: the objects of the cluster once nothing changes any more. */
export interface SimulatedState {
  objects: JsonObject[];
  /** Why the API server refuses the step. */
  refusal?: Omit<ObjectValidation, 'object'>;
}

/** Maximum rounds of controllers per step. */
const maxRounds = 50;

/**
 * Simulates OLM v1 on a cluster without catalogs and workload controllers; `namespaces` are those from the start, default
 * all. Returns a function that does a step.
 */
export function createObjectSetSimulation(
  namespaces?: readonly string[],
): (step: SimulationStep) => SimulatedState {
  const cluster = new SimulatedCluster(namespaces);
  return (step) => {
    const refusal = doStep(step, cluster);
    settle(cluster);
    return { objects: cluster.list(), ...(refusal !== undefined && { refusal }) };
  };
}

function doStep(step: SimulationStep, cluster: SimulatedCluster): SimulatedState['refusal'] {
  switch (step.do) {
    case 'create':
      return store(step.object, undefined, cluster);
    case 'patch': {
      const before = cluster.find(step.id);
      if (before === undefined) return undefined;
      return store(mergePatch(before, step.patch) as JsonObject, before, cluster);
    }
    case 'status': {
      const before = cluster.find(step.id);
      if (before !== undefined) cluster.replace({ ...before, status: step.status });
      return undefined;
    }
    case 'delete':
      cluster.remove(step.id);
      return undefined;
    case 'wait':
      cluster.now += step.seconds;
      return undefined;
  }
}

function store(
  object: JsonObject,
  before: JsonObject | undefined,
  cluster: SimulatedCluster,
): SimulatedState['refusal'] {
  const schema = findOlmV1Schema(String(object['kind']), 'experimental');
  const { metadata, status } = object;
  let stored: JsonObject | undefined = object;
  if (schema !== undefined) {
    const { object: valid, ...refusal } = validateObject(
      withoutSystem(object),
      schema,
      before && withoutSystem(before),
    );
    if (valid === undefined) return refusal;
    stored = {
      ...valid,
      ...(metadata !== undefined && { metadata }),
      ...(status !== undefined && { status }),
    };
  }
  if (before === undefined) cluster.create(stored);
  else cluster.replace(stored);
  return undefined;
}

/** Metadata that the cluster writes. */
const systemMetadata = ['uid', 'creationSeconds', 'generation', 'finalizers'];

/** Returns an object without what the cluster writes. */
function withoutSystem(object: JsonObject): JsonObject {
  const own = (fields: JsonObject, omitted: readonly string[]): JsonObject =>
    Object.fromEntries(Object.entries(fields).filter(([key]) => !omitted.includes(key)));
  return { ...own(object, ['status']), metadata: own(getObject(object, 'metadata'), systemMetadata) };
}

/** Runs the controllers until nothing changes. */
function settle(cluster: SimulatedCluster): void {
  for (let round = 0; round < maxRounds; round++) {
    const before = JSON.stringify(cluster.list());
    cluster.collectGarbage();
    for (const { kind, namespace, name } of idsOf(cluster, 'ClusterObjectSet')) {
      const set = cluster.find({ kind, namespace, name });
      if (set !== undefined) reconcileSet(set, cluster);
    }
    for (const id of idsOf(cluster, 'ClusterExtension')) {
      const extension = cluster.find(id);
      if (extension !== undefined) reconcileExtension(extension, cluster);
    }
    if (JSON.stringify(cluster.list()) === before) return;
  }
}

function idsOf(cluster: SimulatedCluster, kind: string): SimulatedId[] {
  return cluster.list(kind).map((object) => ({
    kind,
    namespace: '',
    name: getText(object, 'metadata', 'name'),
  }));
}
