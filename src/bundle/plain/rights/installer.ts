import { type JsonObject, isJsonObject } from '../../../document/json.js';
import { getObject } from '../../../document/json-fields.js';
import { sortedByBytes } from '../../../core/order.js';
import { type PlainObject, generated, getGroup } from '../../../kube/object.js';
import { getRules } from './rights.js';

/** Plural names that are not the kind in lower case with an `s`. */
const plurals: Readonly<Record<string, string>> = {
  NetworkPolicy: 'networkpolicies',
  PriorityClass: 'priorityclasses',
};

function getResource({ apiVersion, kind }: PlainObject): { group: string; resource: string } {
  return { group: getGroup(apiVersion), resource: plurals[kind] ?? `${kind.toLowerCase()}s` };
}

/** A rule that is needed to install an operator, and where. */
export interface NeededRule {
  /** Empty for the whole cluster. */
  namespace: string;
  rule: JsonObject;
  /** Holding this does as well: it allows to hand out what one has not. */
  instead?: JsonObject;
}

/**
 * What whoever installs an operator needs: to create, list and watch each kind, to get, change and delete the very
 * objects, and to hold, as Kubernetes asks of who hands them out, every rule of every role among them; for roles that
 * are only named, to bind them; where `inventoryNamespace` is named, also the Secrets there, in which `bundle deployment
 * apply` keeps its inventory and renders under names that are not known before. By namespace, the whole cluster first. (Source: the preflight of permissions that
 * operator-controller had.)
 */
export function neededRules(
  objects: readonly PlainObject[],
  extension: string,
  inventoryNamespace?: string,
): NeededRule[] {
  const roles = new Map(
    objects
      .filter(({ kind }) => isRole(kind))
      .map((role) => [roleKey(role.kind, role.namespace, role.name), role] as const),
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
  return sortedByBytes(new Set(['', ...places, ...objects.map(parseScope)])).flatMap((namespace) => {
    const here = objects.filter((object) => parseScope(object) === namespace);
    return [
      ...objectRules(here).map((rule) => ({ namespace, rule })),
      ...(namespace === '' ? [{ namespace, rule: finalizers }] : []),
      ...(namespace === inventoryNamespace ? [{ namespace, rule: inventory }] : []),
      ...grantedRules(here, roles).map((granted) => ({ namespace, ...granted })),
    ];
  });
}

/**
 * The account `name` in the install namespace and what it needs to install an operator: a ClusterRole, a Role in each
 * namespace, and their bindings.
 */
export function installerObjects(
  name: string,
  installNamespace: string,
  needed: readonly NeededRule[],
): PlainObject[] {
  const account = { kind: 'ServiceAccount', name, namespace: installNamespace };
  const everywhere = new Set(
    needed.filter(({ namespace }) => namespace === '').map(({ rule }) => JSON.stringify(rule)),
  );
  const objects = sortedByBytes(new Set(needed.map(({ namespace }) => namespace))).flatMap((namespace) => {
    const rules = new Map(
      needed
        .filter((rule) => rule.namespace === namespace)
        .map(({ rule }) => [JSON.stringify(rule), rule] as const)
        .filter(([key]) => namespace === '' || !everywhere.has(key)),
    );
    const metadata: JsonObject = namespace === '' ? { name } : { name, namespace };
    const kind = namespace === '' ? 'ClusterRole' : 'Role';
    const role = { apiVersion: `${rbac}/v1`, kind, metadata, rules: [...rules.values()] };
    const binding = {
      apiVersion: `${rbac}/v1`,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: rbac, kind, name },
      subjects: [account],
    };
    return [generated(role, 'installer'), generated(binding, 'installer')];
  });
  const { kind, ...metadata } = account;
  return [generated({ apiVersion: 'v1', kind, metadata }, 'installer'), ...objects];
}

const rbac = 'rbac.authorization.k8s.io';

/** Configurations of webhooks belong to the cluster, although they are written with a namespace. */
function parseScope({ kind, namespace }: PlainObject): string {
  return /^(?:Mutating|Validating)WebhookConfiguration$/.test(kind) ? '' : namespace;
}

function isRole(kind: string): boolean {
  return kind === 'Role' || kind === 'ClusterRole';
}

/** What it takes to apply these objects, and to take them away. */
function objectRules(objects: readonly PlainObject[]): JsonObject[] {
  const resources = new Map<string, { group: string; resource: string; names: Set<string> }>();
  for (const object of objects) {
    const { group, resource } = getResource(object);
    const known = resources.get(`${group}/${resource}`) ?? { group, resource, names: new Set<string>() };
    known.names.add(object.name);
    resources.set(`${group}/${resource}`, known);
  }
  return sortedByBytes(resources.keys()).flatMap((key) => {
    const { group, resource, names } = resources.get(key) as {
      group: string;
      resource: string;
      names: Set<string>;
    };
    const kind = { apiGroups: [group], resources: [resource] };
    return [
      { ...kind, verbs: ['create', 'list', 'watch'] },
      { ...kind, resourceNames: sortedByBytes(names), verbs: ['delete', 'get', 'patch', 'update'] },
    ];
  });
}

/** What whoever applies these roles and bindings must hold, for nobody may hand out what he has not. */
function grantedRules(
  objects: readonly PlainObject[],
  roles: ReadonlyMap<string, PlainObject>,
): { rule: JsonObject; instead?: JsonObject }[] {
  return objects.flatMap((object) => {
    if (isRole(object.kind)) {
      const instead = roleRule(object.kind, object.name, 'escalate');
      return handedOut(object).map((rule) => ({ rule, instead }));
    }
    if (object.kind !== 'RoleBinding' && object.kind !== 'ClusterRoleBinding') return [];
    const { roleRef } = object.load();
    const { kind, name } = getObject(roleRef);
    if (typeof kind !== 'string' || typeof name !== 'string') return [];
    const bind = roleRule(kind, name, 'bind');
    const role = roles.get(roleKey(kind, object.namespace, name));
    return role === undefined ? [{ rule: bind }] : handedOut(role).map((rule) => ({ rule, instead: bind }));
  });
}

/** The rules of a role; of one that takes up the rules of others, whatever they are, everything. */
function handedOut(object: PlainObject): JsonObject[] {
  const role = object.load();
  const rules = getRules(role);
  if (!isJsonObject(role['aggregationRule'])) return rules;
  return [
    ...rules,
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ];
}

function roleKey(kind: string, namespace: string, name: string): string {
  return JSON.stringify([kind, kind === 'Role' ? namespace : '', name]);
}

function roleRule(kind: string, name: string, verb: string): JsonObject {
  return { apiGroups: [rbac], resourceNames: [name], resources: [`${kind.toLowerCase()}s`], verbs: [verb] };
}
