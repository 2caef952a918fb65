import { type JsonObject, isJsonObject } from '../../../document/json.js';
import { getObject, getObjects } from '../../../document/json-fields.js';
import { sortedByBytes } from '../../../core/order.js';
import { type PlainObject, generated, getGroup } from '../../../kube/object.js';
import { roleObjects } from './permissions.js';
import { isRole, toRoleKey } from './rights.js';

/** Plural names that are not the kind in lower case with an `s`. */
const plurals: Readonly<Record<string, string>> = {
  NetworkPolicy: 'networkpolicies',
  PriorityClass: 'priorityclasses',
};

function toResource(kind: string): string {
  return plurals[kind] ?? `${kind.toLowerCase()}s`;
}

/** A rule required to install an operator. */
export interface NeededRule {
  /** Empty for the whole cluster. */
  namespace: string;
  rule: JsonObject;
  /** Alternative rule, which allows granting permissions that one lacks. */
  instead?: JsonObject;
}

/**
 * Returns the permissions required to install an operator: to create, list and watch each kind, to get, change and
 * delete these objects, and, as Kubernetes requires for granting them, every rule of their roles, or to bind roles that
 * are not among them. With `inventoryNamespace`, also its Secrets, where `deployment apply` stores its inventory
 * and renders. By namespace, the whole cluster first. (Source: former permission preflight of operator-controller.)
 */
export function neededRules(
  objects: readonly PlainObject[],
  extension: string,
  inventoryNamespace?: string,
): NeededRule[] {
  const roles = new Map(
    objects.filter(isRole).map((role) => [toRoleKey(role.kind, role.namespace, role.name), role] as const),
  );
  const finalizers = {
    apiGroups: ['olm.operatorframework.io'],
    resourceNames: [extension],
    resources: ['clusterextensions/finalizers'],
    verbs: ['patch', 'update'],
  };
  const inventory = {
    apiGroups: [''],
    resources: ['secrets'],
    verbs: ['create', 'delete', 'get', 'patch', 'update'],
  };
  const places = inventoryNamespace === undefined ? [] : [inventoryNamespace];
  return sortedByBytes(new Set(['', ...places, ...objects.map(getScope)])).flatMap((namespace) => {
    const scoped = objects.filter((object) => getScope(object) === namespace);
    return [
      ...objectRules(scoped).map((rule) => ({ namespace, rule })),
      ...(namespace === '' ? [{ namespace, rule: finalizers }] : []),
      ...(namespace === inventoryNamespace ? [{ namespace, rule: inventory }] : []),
      ...grantedRules(scoped, roles).map((granted) => ({ namespace, ...granted })),
    ];
  });
}

/** Returns a service account with the needed permissions: a ClusterRole, a Role per namespace, and their bindings. */
export function installerObjects(
  name: string,
  installNamespace: string,
  needed: readonly NeededRule[],
): PlainObject[] {
  const account = { name, namespace: installNamespace };
  const clusterRules = new Set(
    needed.filter(({ namespace }) => namespace === '').map(({ rule }) => JSON.stringify(rule)),
  );
  const objects = sortedByBytes(new Set(needed.map(({ namespace }) => namespace))).flatMap((namespace) => {
    const rules = new Map(
      needed
        .filter((rule) => rule.namespace === namespace)
        .map(({ rule }) => [JSON.stringify(rule), rule] as const)
        .filter(([key]) => namespace === '' || !clusterRules.has(key)),
    );
    return roleObjects({ name, namespace, rules: [...rules.values()], account, origin: 'installer' });
  });
  const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account };
  return [generated(object, 'installer'), ...objects];
}

const rbac = 'rbac.authorization.k8s.io';

/** Returns the namespace of an object; webhook configurations are cluster-scoped despite theirs. */
function getScope({ kind, namespace }: PlainObject): string {
  return /^(?:Mutating|Validating)WebhookConfiguration$/.test(kind) ? '' : namespace;
}

/** Returns the rules for applying and deleting these objects. */
function objectRules(objects: readonly PlainObject[]): JsonObject[] {
  const namesByResource = new Map<string, Set<string>>();
  for (const object of objects) {
    const key = `${getGroup(object.apiVersion)}/${toResource(object.kind)}`;
    const names = namesByResource.get(key) ?? new Set<string>();
    namesByResource.set(key, names.add(object.name));
  }
  return sortedByBytes(namesByResource.keys()).flatMap((key) => {
    const [group = '', resource = ''] = key.split('/');
    const kind = { apiGroups: [group], resources: [resource] };
    const names = sortedByBytes(namesByResource.get(key) ?? []);
    return [
      { ...kind, verbs: ['create', 'list', 'watch'] },
      { ...kind, resourceNames: names, verbs: ['delete', 'get', 'patch', 'update'] },
    ];
  });
}

/** Returns the rules required to grant these roles, as Kubernetes prevents privilege escalation. */
function grantedRules(
  objects: readonly PlainObject[],
  roles: ReadonlyMap<string, PlainObject>,
): { rule: JsonObject; instead?: JsonObject }[] {
  return objects.flatMap((object) => {
    if (isRole(object)) {
      const instead = roleRule(object.kind, object.name, 'escalate');
      return getGrantedRules(object).map((rule) => ({ rule, instead }));
    }
    if (object.kind !== 'RoleBinding' && object.kind !== 'ClusterRoleBinding') return [];
    const { roleRef } = object.load();
    const { kind, name } = getObject(roleRef);
    if (typeof kind !== 'string' || typeof name !== 'string') return [];
    const bind = roleRule(kind, name, 'bind');
    const role = roles.get(toRoleKey(kind, object.namespace, name));
    if (role === undefined) return [{ rule: bind }];
    return getGrantedRules(role).map((rule) => ({ rule, instead: bind }));
  });
}

/** Returns the rules of a role; an aggregated role may have any rules. */
function getGrantedRules(object: PlainObject): JsonObject[] {
  const role = object.load();
  const rules = getObjects(role, 'rules');
  if (!isJsonObject(role['aggregationRule'])) return rules;
  return [
    ...rules,
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ];
}

function roleRule(kind: string, name: string, verb: string): JsonObject {
  return { apiGroups: [rbac], resourceNames: [name], resources: [`${kind.toLowerCase()}s`], verbs: [verb] };
}
