import { getGroup } from '../../kube/object.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { compareBytes } from '../../core/order.js';

/** What an object on the cluster is found by. The namespace is empty for objects of the cluster. */
export interface ObjectId {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
}

/** Equal for two ids of the same object, whatever versions of its kind they are written in. */
export function toKey({ apiVersion, kind, namespace, name }: ObjectId): string {
  return JSON.stringify([getGroup(apiVersion), kind, namespace, name]);
}

/** The id of an object as a cluster gives it. */
export function getId(object: JsonObject): ObjectId {
  return {
    apiVersion: getText(object, 'apiVersion'),
    kind: getText(object, 'kind'),
    namespace: getText(object, 'metadata', 'namespace'),
    name: getText(object, 'metadata', 'name'),
  };
}

/** Just enough of an object for `kubectl get` and `delete`. */
export function toStub({ apiVersion, kind, namespace, name }: ObjectId): JsonObject {
  return { apiVersion, kind, metadata: namespace === '' ? { name } : { name, namespace } };
}

/** `Deployment "x" in namespace "y"`. */
export function describeId({ kind, namespace, name }: ObjectId): string {
  return `${kind} ${quoteGo(name)}${namespace === '' ? '' : ` in namespace ${quoteGo(namespace)}`}`;
}

/** Steps of applying, in their order; removing goes the other way. */
export const phases = [
  'namespaces',
  'definitions',
  'access',
  'configuration',
  'workloads',
  'admission',
] as const;
type Phase = (typeof phases)[number];

const rbac = 'rbac.authorization.k8s.io';
/** By group and kind, in the order within their phase; a kind that is not here is configuration. */
const places: readonly (readonly [Phase, string, readonly string[]])[] = [
  ['namespaces', '', ['Namespace']],
  ['definitions', 'apiextensions.k8s.io', ['CustomResourceDefinition']],
  ['access', '', ['ServiceAccount']],
  ['access', rbac, ['ClusterRole', 'Role', 'ClusterRoleBinding', 'RoleBinding']],
  ['workloads', 'apps', ['Deployment', 'DaemonSet', 'StatefulSet', 'ReplicaSet']],
  ['workloads', '', ['Pod', 'ReplicationController']],
  ['workloads', 'batch', ['Job', 'CronJob']],
  ['admission', 'apiregistration.k8s.io', ['APIService']],
];
const ranks = new Map(
  places.flatMap(([phase, group, kinds], index) =>
    kinds.map((kind, position) => [`${group}/${kind}`, { phase, rank: index * 10 + position }] as const),
  ),
);

function findPhase({ apiVersion, kind }: ObjectId): { phase: Phase; rank: number } {
  const group = getGroup(apiVersion);
  if (group === 'admissionregistration.k8s.io') return { phase: 'admission', rank: 1000 };
  return ranks.get(`${group}/${kind}`) ?? { phase: 'configuration', rank: 0 };
}

/** The step in which an object is applied. */
export function getPhase(id: ObjectId): Phase {
  return findPhase(id).phase;
}

/** In the order in which objects are applied: by phase, within it what others build on first, then by name. */
export function inPhaseOrder<T extends ObjectId>(ids: readonly T[]): T[] {
  const order = (id: T): number => phases.indexOf(findPhase(id).phase) * 10_000 + findPhase(id).rank;
  return [...ids].sort(
    (a, b) =>
      order(a) - order(b) ||
      compareBytes(a.kind, b.kind) ||
      compareBytes(a.namespace, b.namespace) ||
      compareBytes(a.name, b.name),
  );
}

/** Whether taking an object away takes away what opmate did not make: all objects of a kind, or of a namespace. */
export function holdsOthers(id: ObjectId): boolean {
  return ['namespaces', 'definitions'].includes(getPhase(id));
}

/** An object without some of its keys. */
export function without(object: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}
