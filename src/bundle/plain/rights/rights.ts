import { LimitError } from '../../../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../../document/json.js';
import { getList, getObject, getObjects, getText, getTexts } from '../../../document/json-fields.js';
import { compareBytes, sortedByBytes } from '../../../core/order.js';
import type { PlainObject } from '../../../kube/object.js';
import { findRisks } from './risks.js';

/** Permissions of an account for one resource or URL. */
export interface Right {
  account: string;
  accountNamespace: string;
  /** Scope; empty for the whole cluster. */
  namespace: string;
  /** Empty for the core group. */
  group: string;
  /** Resource, `/path` of a URL, or `Kind/NAME` of a role with unknown rules. */
  resource: string;
  /** Names of the objects; empty for all. */
  names: string[];
  /** Sorted; only `*` if included; empty if unknown. */
  verbs: string[];
  /** Some of `riskNames`. */
  risks: string[];
}

/** Maximum number of rows for one operator. */
const maxRights = 100_000;

type Row = Omit<Right, 'verbs' | 'risks'> & { isAggregated?: boolean };

/**
 * Returns the permissions of service accounts from all bindings among these objects: one row per account, namespace,
 * group, resource and set of names. Missing and aggregated roles are rows without verbs. Sorted. Throws LimitError.
 */
export function getRights(objects: readonly PlainObject[]): Right[] {
  const rows = new Map<string, { row: Row; verbs: Set<string> }>();
  const add = (row: Row, verbs: readonly string[]): void => {
    const key = toKey(row);
    const known = rows.get(key) ?? { row, verbs: new Set<string>() };
    for (const verb of verbs) known.verbs.add(verb);
    rows.set(key, known);
    if (rows.size > maxRights) {
      throw new LimitError(`more than ${maxRights} permissions`, {
        hint: 'check that these are the roles of one operator',
      });
    }
  };
  const roles = new Map<string, JsonObject>();
  for (const { kind, namespace, name, load } of objects) {
    if (isRole(kind)) roles.set(toRoleKey(kind, namespace, name), load());
  }
  for (const binding of objects) {
    if (binding.kind !== 'RoleBinding' && binding.kind !== 'ClusterRoleBinding') continue;
    const namespace = binding.kind === 'RoleBinding' ? binding.namespace : '';
    const { roleRef, subjects } = binding.load();
    const { kind, name } = getObject(roleRef);
    const roleKind = kind === 'Role' ? 'Role' : 'ClusterRole';
    const roleName = getText(name);
    const role = roles.get(toRoleKey(roleKind, namespace, roleName));
    for (const subject of getList(subjects)) {
      const account = findAccount(subject, namespace);
      if (account === undefined) continue;
      for (const rule of role === undefined ? [] : getRules(role)) {
        addRule(rule, { ...account, namespace }, add);
      }
      const isAggregated = isJsonObject(role?.['aggregationRule']);
      if (role !== undefined && !isAggregated) continue;
      const resource = `${roleKind}/${roleName}`;
      add({ ...account, namespace, group: rbacGroup, resource, names: [], isAggregated }, []);
    }
  }
  return [...rows.values()]
    .map(({ row, verbs }) => getRight(row, verbs))
    .sort((a, b) => compareBytes(toKey(a), toKey(b)));
}

const rbacGroup = 'rbac.authorization.k8s.io';

function getRight(row: Row, verbs: ReadonlySet<string>): Right {
  const { isAggregated = false, ...rest } = row;
  const right = { ...rest, verbs: verbs.has('*') ? ['*'] : sortedByBytes(verbs) };
  return { ...right, risks: findRisks({ ...right, isAggregated }) };
}

function toKey({ account, accountNamespace, namespace, group, resource, names }: Row): string {
  return JSON.stringify([accountNamespace, account, namespace, group, resource, names]);
}

export function isRole(kind: string): boolean {
  return kind === 'Role' || kind === 'ClusterRole';
}

/** Returns a key of a role; the namespace matters for the kind Role only. */
export function toRoleKey(kind: string, namespace: string, name: string): string {
  return JSON.stringify([kind, kind === 'Role' ? namespace : '', name]);
}

/** Returns the service account of a subject; undefined for users and groups. */
function findAccount(
  subject: JsonValue,
  namespace: string,
): { account: string; accountNamespace: string } | undefined {
  if (!isJsonObject(subject) || subject['kind'] !== 'ServiceAccount') return undefined;
  const { name, namespace: own } = subject;
  if (typeof name !== 'string') return undefined;
  return { account: name, accountNamespace: typeof own === 'string' && own !== '' ? own : namespace };
}

/** Returns the rules of a role. */
export function getRules(role: JsonObject): JsonObject[] {
  return getObjects(role, 'rules');
}

function addRule(
  rule: JsonObject,
  grantee: Pick<Row, 'account' | 'accountNamespace' | 'namespace'>,
  add: (row: Row, verbs: readonly string[]) => void,
): void {
  const verbs = getTexts(rule['verbs']);
  const names = sortedByBytes(new Set(getTexts(rule['resourceNames'])));
  for (const group of getTexts(rule['apiGroups'])) {
    for (const resource of getTexts(rule['resources'])) add({ ...grantee, group, resource, names }, verbs);
  }
  for (const url of getTexts(rule['nonResourceURLs']))
    add({ ...grantee, group: '', resource: url, names: [] }, verbs);
}

/** Returns the rights that are not among others, with their additional verbs. */
export function rightsBeyond(rights: readonly Right[], others: readonly Right[]): Right[] {
  const known = new Map(others.map((right) => [toKey(right), right]));
  return rights.flatMap((right) => {
    const other = known.get(toKey(right));
    if (other === undefined) return [right];
    if (other.verbs.includes('*')) return [];
    const verbs = right.verbs.filter((verb) => !other.verbs.includes(verb));
    return verbs.length === 0 ? [] : [getRight(right, new Set(verbs))];
  });
}
