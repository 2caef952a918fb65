import { compareObjects, getGroup } from '../kube/object.js';
import { quoteGo } from '../document/go-json.js';
import type { JsonObject } from '../document/json.js';
import { getText } from '../document/json-fields.js';

/** Identity of an object on the cluster. The namespace is empty for cluster-scoped objects. */
export interface ObjectId {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
}

/** Returns a key that is equal for all versions of an object's kind. */
export function toKey({ apiVersion, kind, namespace, name }: ObjectId): string {
  return JSON.stringify([getGroup(apiVersion), kind, namespace, name]);
}

/** Returns the ID of an object of the cluster. */
export function getId(object: JsonObject): ObjectId {
  return {
    apiVersion: getText(object, 'apiVersion'),
    kind: getText(object, 'kind'),
    namespace: getText(object, 'metadata', 'namespace'),
    name: getText(object, 'metadata', 'name'),
  };
}

/** Returns a minimal object for `kubectl get` and `delete`. */
export function toStub({ apiVersion, kind, namespace, name }: ObjectId): JsonObject {
  return { apiVersion, kind, metadata: namespace === '' ? { name } : { name, namespace } };
}

/** `Deployment "x" in namespace "y"`. */
export function describeId({ kind, namespace, name }: ObjectId): string {
  return `${kind} ${quoteGo(name)}${namespace === '' ? '' : ` in namespace ${quoteGo(namespace)}`}`;
}

/** Phases of applying, in order; removal reverses them. */
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
/** Phases by group and kind, in order within a phase; other kinds are configuration. */
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

/** Returns the phase in which an object is applied. */
export function getPhase(id: ObjectId): Phase {
  return findPhase(id).phase;
}

/** Sorts objects in order of applying: by phase, then dependency, then name. */
export function inPhaseOrder<T extends ObjectId>(ids: readonly T[]): T[] {
  const order = (id: T): number => phases.indexOf(findPhase(id).phase) * 10_000 + findPhase(id).rank;
  return [...ids].sort((a, b) => order(a) - order(b) || compareObjects(a, b));
}

/** Reports whether deleting an object deletes foreign objects: all of a kind, or of a namespace. */
export function canContainOthers(id: ObjectId): boolean {
  return ['namespaces', 'definitions'].includes(getPhase(id));
}

/** Returns an object without some keys. */
export function without(object: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}
