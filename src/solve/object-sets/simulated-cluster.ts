import { isDeepStrictEqual } from 'node:util';
import type { JsonObject, JsonValue } from '../../document/json.js';
import { isJsonObject } from '../../document/json.js';
import { getObject, getObjects, getText, getValue } from '../../document/json-fields.js';

/** Identity of an object on a simulated cluster; the namespace of cluster-scoped ones is empty. */
export interface SimulatedId {
  kind: string;
  namespace: string;
  name: string;
}

/** Objects of a cluster with the API server's own behavior: identities, generations, garbage collection. */
export class SimulatedCluster {
  readonly #objects = new Map<string, JsonObject>();
  /** Content that the controller has applied, by object: fields that it no longer sets are removed. */
  readonly #applied = new Map<string, JsonObject>();
  /** Seconds since the start. */
  now = 0;
  /** Namespaces from the start; undefined if every one exists. */
  readonly #namespaces: readonly string[] | undefined;

  constructor(namespaces?: readonly string[]) {
    this.#namespaces = namespaces;
  }

  hasNamespace(name: string): boolean {
    const isThere = this.find({ kind: 'Namespace', namespace: '', name }) !== undefined;
    return this.#namespaces === undefined || this.#namespaces.includes(name) || isThere;
  }

  list(kind?: string): JsonObject[] {
    const all = [...this.#objects.values()];
    return kind === undefined ? all : all.filter((object) => object['kind'] === kind);
  }

  find(id: SimulatedId): JsonObject | undefined {
    return this.#objects.get(toKey(id));
  }

  /** Creates an object. The UID is `UID:KIND:NAME`. */
  create(object: JsonObject): void {
    const { kind, namespace, name } = getSimulatedId(object);
    const metadata: JsonObject = {
      ...getObject(object, 'metadata'),
      uid: `UID:${kind}:${name}`,
      creationSeconds: this.now,
      ...(object['spec'] !== undefined && { generation: 1 }),
    };
    if (kind === 'Namespace')
      metadata['labels'] = { 'kubernetes.io/metadata.name': name, ...getObject(metadata, 'labels') };
    this.#objects.set(toKey({ kind, namespace, name }), {
      ...object,
      metadata,
      ...(initialStatus[kind] !== undefined && { status: initialStatus[kind] }),
    });
  }

  /** Replaces an object; a changed spec is a new generation. */
  replace(object: JsonObject): void {
    const id = getSimulatedId(object);
    const before = this.find(id);
    const generation = getValue(before, 'metadata', 'generation');
    const isSame = isDeepStrictEqual(before?.['spec'], object['spec']);
    const next =
      typeof generation === 'number' && !isSame
        ? { ...object, metadata: { ...getObject(object, 'metadata'), generation: generation + 1 } }
        : object;
    this.#objects.set(toKey(id), next);
  }

  /** Applies fields as the controller does: its own former fields are removed, those of others stay. */
  apply(desired: JsonObject): void {
    const id = getSimulatedId(desired);
    const live = this.find(id);
    const former = this.#applied.get(toKey(id)) ?? {};
    this.#applied.set(toKey(id), desired);
    if (live === undefined) this.create(desired);
    else this.replace(merge(prune(live, former, desired), desired));
  }

  remove(id: SimulatedId): void {
    this.#objects.delete(toKey(id));
    this.#applied.delete(toKey(id));
  }

  /** Deletes objects whose owners are all gone, and references to owners that are gone. */
  collectGarbage(): void {
    const uids = new Set(this.list().map((object) => getText(object, 'metadata', 'uid')));
    for (const object of this.list()) {
      const references = getObjects(object, 'metadata', 'ownerReferences');
      const left = references.filter((reference) => uids.has(getText(reference, 'uid')));
      if (left.length === references.length) continue;
      if (left.length === 0) this.remove(getSimulatedId(object));
      else this.replace(withOwners(object, left));
    }
  }
}

/** Status that a cluster without workload controllers writes. */
const initialStatus: Readonly<Record<string, JsonObject>> = {
  Namespace: { phase: 'Active' },
  CustomResourceDefinition: { conditions: [{ type: 'Established', status: 'True' }] },
};

/** Returns the identity of an object. */
export function getSimulatedId(object: JsonObject): SimulatedId {
  const [kind, namespace, name] = [
    getText(object, 'kind'),
    getText(object, 'metadata', 'namespace'),
    getText(object, 'metadata', 'name'),
  ];
  return { kind, namespace, name };
}

function toKey({ kind, namespace, name }: SimulatedId): string {
  return `${kind}/${namespace}/${name}`;
}

/** Returns an object with these owner references; without any, the field is absent. */
export function withOwners(object: JsonObject, ownerReferences: readonly JsonObject[]): JsonObject {
  const entries = Object.entries(getObject(object, 'metadata'));
  const metadata = Object.fromEntries(entries.filter(([key]) => key !== 'ownerReferences'));
  return {
    ...object,
    metadata: { ...metadata, ...(ownerReferences.length > 0 && { ownerReferences: [...ownerReferences] }) },
  };
}

/** Removes keys of objects that were applied before and are no longer. */
function prune(live: JsonObject, former: JsonObject, desired: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(live)) {
    const [before, after] = [former[key], desired[key]];
    if (before !== undefined && after === undefined && key !== 'metadata') continue;
    result[key] =
      isJsonObject(value) && isJsonObject(before) && isJsonObject(after)
        ? prune(value, before, after)
        : value;
  }
  return result;
}

function merge(live: JsonObject, desired: JsonObject): JsonObject {
  const result: JsonObject = { ...live };
  for (const [key, value] of Object.entries(desired)) {
    const current = result[key];
    result[key] = isJsonObject(value) && isJsonObject(current) ? merge(current, value) : value;
  }
  return result;
}

/** Returns the result of a JSON merge patch. */
export function mergePatch(value: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const result: JsonObject = isJsonObject(value) ? { ...value } : {};
  for (const [key, item] of Object.entries(patch)) {
    if (item === null) delete result[key];
    else result[key] = mergePatch(result[key], item);
  }
  return result;
}
