import { getPhase, groupByPhase } from '../bundle/object-set/phases.js';
import { getGroup } from '../kube/object.js';
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

/** Returns an object that is not ready as text: `Deployment "x" in namespace "y": 0 of 1 replicas ready`. */
export function describeUnready(object: ObjectId & { reasons: readonly string[] }): string {
  return `${describeId(object)}: ${object.reasons.join('; ')}`;
}

/** Returns objects in order of applying: by phase, then as operator-controller sorts them. */
export function inPhaseOrder<T extends ObjectId>(ids: readonly T[]): T[] {
  return groupByPhase(ids).flatMap(({ objects }) => objects);
}

/** Reports whether deleting an object deletes foreign objects: all of a kind, or of a namespace. */
export function canContainOthers(id: ObjectId): boolean {
  return ['namespaces', 'crds'].includes(getPhase(id));
}

/** Returns the identity alone of a value that has one. */
export function toObjectId({ apiVersion, kind, namespace, name }: ObjectId): ObjectId {
  return { apiVersion, kind, namespace, name };
}

/** Returns an object without some keys. */
export function without(object: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}
