import { type JsonObject, isJsonObject } from '../../core/json.js';
import { sortedByBytes } from '../../core/order.js';
import { type PlainObject, generated } from './object.js';
import { rulesOf } from './rights.js';

/** Plural names that are not the kind in lower case with an `s`. */
const plurals: Readonly<Record<string, string>> = {
  NetworkPolicy: 'networkpolicies',
  PriorityClass: 'priorityclasses',
};

function resourceOf({ apiVersion, kind }: PlainObject): { group: string; resource: string } {
  const slash = apiVersion.lastIndexOf('/');
  return {
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    resource: plurals[kind] ?? `${kind.toLowerCase()}s`,
  };
}

/**
 * The roles that whoever installs an operator needs: to create, list and watch each kind, to get, change and delete
 * the very objects, and to hold, as Kubernetes asks of who hands them out, every rule of every role among them; for
 * roles that are only named, to bind them. One ClusterRole, and a Role in each namespace. (Source: the preflight of
 * permissions that operator-controller had.)
 */
export function installerRoles(name: string, objects: readonly PlainObject[]): PlainObject[] {
  const roles = new Set(
    objects.filter(({ kind }) => isRole(kind)).map(({ kind, name: role }) => `${kind}/${role}`),
  );
  return sortedByBytes(new Set(objects.map(scopeOf))).map((namespace) => {
    const here = objects.filter((object) => scopeOf(object) === namespace);
    const rules = [...objectRules(here), ...grantedRules(here, roles)];
    const metadata: JsonObject = namespace === '' ? { name } : { name, namespace };
    const kind = namespace === '' ? 'ClusterRole' : 'Role';
    return generated({ apiVersion: `${rbac}/v1`, kind, metadata, rules }, 'installer');
  });
}

const rbac = 'rbac.authorization.k8s.io';

/** Configurations of webhooks belong to the cluster, although they are written with a namespace. */
function scopeOf({ kind, namespace }: PlainObject): string {
  return /^(?:Mutating|Validating)WebhookConfiguration$/.test(kind) ? '' : namespace;
}

function isRole(kind: string): boolean {
  return kind === 'Role' || kind === 'ClusterRole';
}

/** What it takes to apply these objects, and to take them away. */
function objectRules(objects: readonly PlainObject[]): JsonObject[] {
  const resources = new Map<string, { group: string; resource: string; names: Set<string> }>();
  for (const object of objects) {
    const { group, resource } = resourceOf(object);
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
function grantedRules(objects: readonly PlainObject[], roles: ReadonlySet<string>): JsonObject[] {
  const granted = new Map<string, JsonObject>();
  const grant = (rule: JsonObject): unknown => granted.set(JSON.stringify(rule), rule);
  for (const object of objects) {
    if (isRole(object.kind)) {
      const role = object.load();
      rulesOf(role).forEach(grant);
      // It takes up the rules of other roles, whatever they are.
      if (isJsonObject(role['aggregationRule'])) {
        grant({ apiGroups: ['*'], resources: ['*'], verbs: ['*'] });
        grant({ nonResourceURLs: ['*'], verbs: ['*'] });
      }
    } else if (object.kind === 'RoleBinding' || object.kind === 'ClusterRoleBinding') {
      const { roleRef } = object.load();
      const { kind, name } = isJsonObject(roleRef) ? roleRef : {};
      if (typeof kind !== 'string' || typeof name !== 'string' || roles.has(`${kind}/${name}`)) continue;
      const resources = [`${kind.toLowerCase()}s`];
      grant({ apiGroups: [rbac], resourceNames: [name], resources, verbs: ['bind'] });
    }
  }
  return [...granted.values()];
}
