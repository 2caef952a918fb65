import { getOrAdd, pushTo } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { getText } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { getKey, getName, getNamespace } from '../../kube/object.js';
import { getLabels } from '../../kube/label-selector.js';

/** API version and kind, as in the first fields of an object. */
export interface ObjectKind {
  apiVersion: string;
  kind: string;
}

function v0(kind: string, version: 'v1' | 'v1alpha1' = 'v1alpha1'): ObjectKind {
  return { apiVersion: `operators.coreos.com/${version}`, kind };
}

function v1(kind: string): ObjectKind {
  return { apiVersion: 'olm.operatorframework.io/v1', kind };
}

/** Kinds that the migration reads. */
export const kinds = {
  subscription: v0('Subscription'),
  csv: v0('ClusterServiceVersion'),
  installPlan: v0('InstallPlan'),
  catalogSource: v0('CatalogSource'),
  operatorGroup: v0('OperatorGroup', 'v1'),
  operator: v0('Operator', 'v1'),
  operatorCondition: v0('OperatorCondition', 'v1'),
  clusterExtension: v1('ClusterExtension'),
  clusterCatalog: v1('ClusterCatalog'),
  clusterObjectSet: v1('ClusterObjectSet'),
  crd: { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  clusterRole: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
  namespace: { apiVersion: 'v1', kind: 'Namespace' },
} as const;

/** Objects of a cluster by kind and name. */
export class ClusterIndex {
  readonly #byKind = new Map<string, Map<string, JsonObject>>();
  /** Objects of a kind by namespace, label or package, each made when it is first asked for. */
  readonly #groups = new Map<string, Map<string, JsonObject[]>>();

  /** Of several objects with one name the last counts. */
  constructor(objects: Iterable<JsonObject>) {
    const unsorted = new Map<string, Map<string, JsonObject>>();
    for (const object of objects) {
      const kind = kindKey({ apiVersion: getText(object, 'apiVersion'), kind: getText(object, 'kind') });
      const named = unsorted.get(kind) ?? new Map<string, JsonObject>();
      named.set(getKey(object), object);
      unsorted.set(kind, named);
    }
    for (const [kind, named] of unsorted) {
      const sorted = [...named.values()].sort(
        (a, b) => compareBytes(getNamespace(a), getNamespace(b)) || compareBytes(getName(a), getName(b)),
      );
      this.#byKind.set(kind, new Map(sorted.map((object) => [getKey(object), object])));
    }
  }

  /** Returns the objects of a kind, sorted by namespace and name. */
  list(
    kind: ObjectKind,
    filter: { namespace?: string; labels?: Readonly<Record<string, string>> } = {},
  ): JsonObject[] {
    const { namespace, labels = {} } = filter;
    const lists = [
      ...(namespace === undefined
        ? []
        : [this.#group(kind, 'namespace', (object) => [getNamespace(object)], namespace)]),
      ...Object.entries(labels).map(([key, value]) =>
        this.#group(
          kind,
          'label',
          (object) => [...getLabels(object)].map(joinLabel),
          joinLabel([key, value]),
        ),
      ),
    ];
    const [shortest, ...others] = lists.sort((a, b) => a.length - b.length);
    if (shortest === undefined) return [...(this.#byKind.get(kindKey(kind))?.values() ?? [])];
    if (others.length === 0) return [...shortest];
    return shortest.filter((object) => {
      const actual = getLabels(object);
      const isInNamespace = namespace === undefined || getNamespace(object) === namespace;
      return isInNamespace && Object.entries(labels).every(([key, value]) => actual.get(key) === value);
    });
  }

  /** Returns the Subscriptions to a package, sorted by namespace and name. */
  listSubscribed(packageName: string): readonly JsonObject[] {
    const read = (object: JsonObject): string[] => [getText(object, 'spec', 'name')];
    return this.#group(kinds.subscription, 'package', read, packageName);
  }

  /** Returns the objects of a kind that have a key among others. */
  #group(
    kind: ObjectKind,
    by: string,
    listKeys: (object: JsonObject) => string[],
    key: string,
  ): readonly JsonObject[] {
    const groups = getOrAdd(this.#groups, `${kindKey(kind)} ${by}`, () => {
      const lists = new Map<string, JsonObject[]>();
      for (const object of this.#byKind.get(kindKey(kind))?.values() ?? [])
        for (const own of listKeys(object)) pushTo(lists, own, object);
      return lists;
    });
    return groups.get(key) ?? [];
  }

  /** Returns an object; undefined if not found. */
  find(kind: ObjectKind, name: string, namespace = ''): JsonObject | undefined {
    return this.#byKind.get(kindKey(kind))?.get(`${namespace}/${name}`);
  }
}

function joinLabel([key, value]: readonly [string, string]): string {
  return `${key}=${value}`;
}

function kindKey({ apiVersion, kind }: ObjectKind): string {
  return `${apiVersion} ${kind}`;
}
