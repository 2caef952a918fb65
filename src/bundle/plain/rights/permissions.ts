import type { JsonObject } from '../../../document/json.js';
import { sortedByBytes } from '../../../core/order.js';
import type { Permission } from '../../../kube/csv-types.js';
import type { PolicyRule } from '../../../kube/meta-types.js';
import { permissionName } from '../registry-v1/generated-names.js';
import { type PlainObject, generated } from '../../../kube/object.js';
import type { RegistryV1 } from '../registry-v1/registry-v1.js';

const rbac = 'rbac.authorization.k8s.io';

/** What permissions for single namespaces also need when they are given for all. (Source: operator-controller.) */
const readNamespaces: PolicyRule = {
  verbs: ['get', 'list', 'watch'],
  apiGroups: [''],
  resources: ['namespaces'],
};

/** A permission as it is granted: in one namespace, or, where that is empty, in the whole cluster. */
interface Grant {
  permission: Permission;
  namespace: string;
  /** Name of the role and its binding. */
  name: string;
  /** The field that it comes from. */
  origin: string;
}

/**
 * The permissions that an operator gets when it watches these namespaces: with all of them watched, what it
 * asks for in single namespaces is given in the whole cluster, and reading namespaces too.
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

/** The service accounts, roles and bindings of an operator. `default` exists in every namespace already. */
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
    const metadata: JsonObject = namespace === '' ? { name } : { name, namespace };
    const kind = namespace === '' ? 'ClusterRole' : 'Role';
    const role: JsonObject = {
      apiVersion: `${rbac}/v1`,
      kind,
      metadata,
      rules: permission.rules,
    };
    const binding: JsonObject = {
      apiVersion: `${rbac}/v1`,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: rbac, kind, name },
      subjects: [
        {
          kind: 'ServiceAccount',
          name: permission.serviceAccountName || 'default',
          namespace: installNamespace,
        },
      ],
    };
    objects.push(generated(role, origin), generated(binding, origin));
  }
  return objects;
}
