import type { JsonObject, JsonValue } from '../../../document/json.js';
import { sortedByBytes } from '../../../core/order.js';
import type { Permission } from '../../../kube/csv-types.js';
import type { PolicyRule } from '../../../kube/meta-types.js';
import { permissionName } from '../registry-v1/generated-names.js';
import { type PlainObject, generated } from '../../../kube/object.js';
import type { RegistryV1 } from '../registry-v1/registry-v1.js';

const rbac = 'rbac.authorization.k8s.io';

/** Added to namespaced permissions that are granted for the whole cluster. (Source: operator-controller.) */
const readNamespaces: PolicyRule = {
  verbs: ['get', 'list', 'watch'],
  apiGroups: [''],
  resources: ['namespaces'],
};

interface Grant {
  permission: Permission;
  /** Empty for the whole cluster. */
  namespace: string;
  /** Name of the role and its binding. */
  name: string;
  /** Field of the permission. */
  origin: string;
}

/**
 * Returns the permissions of an operator that watches these namespaces. If it watches all, namespaced permissions are
 * granted for the whole cluster, with permission to read namespaces.
 */
function getGrants({ csv }: RegistryV1, targets: readonly string[]): Grant[] {
  const csvName = csv.metadata.name ?? '';
  const { permissions = [], clusterPermissions = [] } = csv.spec.install.spec ?? {};
  const isForAll = targets.length === 1 && targets[0] === '';
  const grant = (permission: Permission, namespace: string, field: string): Grant => ({
    permission,
    namespace,
    name: permissionName(csvName, permission),
    origin: `spec.install.spec.${field}`,
  });
  const cluster = clusterPermissions.map((permission) => grant(permission, '', 'clusterPermissions'));
  if (!isForAll) {
    const local = targets.flatMap((namespace) =>
      permissions.map((permission) => grant(permission, namespace, 'permissions')),
    );
    return [...local, ...cluster];
  }
  const promoted = permissions.map(({ serviceAccountName, rules }) => {
    const permission = { serviceAccountName, rules: [...(rules ?? []), readNamespaces] };
    return grant(permission, '', 'permissions');
  });
  return [...cluster, ...promoted];
}

/** Returns the service accounts, except `default`, and the roles and bindings of an operator. */
export function permissionObjects(
  bundle: RegistryV1,
  installNamespace: string,
  targets: readonly string[],
): PlainObject[] {
  const { permissions = [], clusterPermissions = [] } = bundle.csv.spec.install.spec ?? {};
  const accounts = new Set(
    [...permissions, ...clusterPermissions].map(({ serviceAccountName }) => serviceAccountName || 'default'),
  );
  accounts.delete('default');
  const objects = sortedByBytes(accounts).map((name) =>
    generated(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: installNamespace } },
      'spec.install.spec',
    ),
  );
  for (const { permission, namespace, name, origin } of getGrants(bundle, targets)) {
    const account = { name: permission.serviceAccountName || 'default', namespace: installNamespace };
    objects.push(...roleObjects({ name, namespace, rules: permission.rules, account, origin }));
  }
  return objects;
}

/** Returns a role and its binding to a service account, for the whole cluster if `namespace` is empty. */
export function roleObjects({
  name,
  namespace,
  rules,
  account,
  origin,
}: {
  name: string;
  namespace: string;
  rules: JsonValue;
  account: { name: string; namespace: string };
  origin: string;
}): [role: PlainObject, binding: PlainObject] {
  const apiVersion = `${rbac}/v1`;
  const kind = namespace === '' ? 'ClusterRole' : 'Role';
  const metadata: JsonObject = namespace === '' ? { name } : { name, namespace };
  const roleRef = { apiGroup: rbac, kind, name };
  const subjects = [{ kind: 'ServiceAccount', ...account }];
  return [
    generated({ apiVersion, kind, metadata, rules }, origin),
    generated({ apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects }, origin),
  ];
}
