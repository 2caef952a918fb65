import { LimitError } from '../../../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../../document/json.js';
import { getList, getObject, getObjects, getText, getTexts } from '../../../document/json-fields.js';
import { compareBytes, sortedByBytes } from '../../../core/order.js';
import type { PlainObject } from '../../../kube/object.js';
import { findRisks } from './risks.js';

/** What an account may do with one resource, or with one address. */
export interface Right {
  account: string;
  /** Namespace of the account. */
  accountNamespace: string;
  /** Where it holds; empty for the whole cluster. */
  namespace: string;
  /** Empty for the core group. */
  group: string;
  /** Resource or `/path` of an address; for a role that is not there to be read, `Kind/NAME`. */
  resource: string;
  /** Names of the objects; empty for all. */
  names: string[];
  /** Sorted; just `*` where that is among them. Empty where nobody can tell. */
  verbs: string[];
  /** See `risks`. */
  risks: string[];
}

/** Rows that the rules of one operator may have. */
const maxRights = 100_000;

/** A rule with its scope, cut down to what one row says. */
type Row = Omit<Right, 'verbs' | 'risks'> & { isAggregated?: boolean };

/**
 * What the service accounts in these objects hold once they are applied, from every binding among them: one row
 * an account, namespace, group, resource and set of names. Roles that the objects only name are rows without
 * verbs, as are those that take up the rules of other roles. Sorted. Throws LimitError.
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
  for (const object of objects) {
    if (object.kind === 'Role' || object.kind === 'ClusterRole') {
      roles.set(
        roleKey(object.kind, object.kind === 'Role' ? object.namespace : '', object.name),
        object.load(),
      );
    }
  }
  for (const binding of objects) {
    if (binding.kind !== 'RoleBinding' && binding.kind !== 'ClusterRoleBinding') continue;
    const namespace = binding.kind === 'RoleBinding' ? binding.namespace : '';
    const { roleRef, subjects } = binding.load();
    const { kind, name } = getObject(roleRef);
    const roleKind = kind === 'Role' ? 'Role' : 'ClusterRole';
    const roleName = getText(name);
    const role = roles.get(roleKey(roleKind, roleKind === 'Role' ? namespace : '', roleName));
    for (const subject of getList(subjects)) {
      const account = findAccount(subject, namespace);
      if (account === undefined) continue;
      if (role === undefined) {
        add({ ...account, namespace, group: rbacGroup, resource: `${roleKind}/${roleName}`, names: [] }, []);
      } else {
        for (const rule of getRules(role)) addRule(rule, { ...account, namespace }, add);
        if (isJsonObject(role['aggregationRule'])) {
          const resource = `${roleKind}/${roleName}`;
          add({ ...account, namespace, group: rbacGroup, resource, names: [], isAggregated: true }, []);
        }
      }
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

function roleKey(kind: string, namespace: string, name: string): string {
  return JSON.stringify([kind, namespace, name]);
}

/** The account that a subject is; undefined for users and groups. */
function findAccount(
  subject: JsonValue,
  namespace: string,
): { account: string; accountNamespace: string } | undefined {
  if (!isJsonObject(subject) || subject['kind'] !== 'ServiceAccount') return undefined;
  const { name, namespace: own } = subject;
  if (typeof name !== 'string') return undefined;
  return { account: name, accountNamespace: typeof own === 'string' && own !== '' ? own : namespace };
}

/** The rules of a role that are objects. */
export function getRules(role: JsonObject): JsonObject[] {
  return getObjects(role, 'rules');
}

function addRule(
  rule: JsonObject,
  where: Pick<Row, 'account' | 'accountNamespace' | 'namespace'>,
  add: (row: Row, verbs: readonly string[]) => void,
): void {
  const verbs = getTexts(rule['verbs']);
  const names = sortedByBytes(new Set(getTexts(rule['resourceNames'])));
  for (const group of getTexts(rule['apiGroups'])) {
    for (const resource of getTexts(rule['resources'])) add({ ...where, group, resource, names }, verbs);
  }
  for (const url of getTexts(rule['nonResourceURLs']))
    add({ ...where, group: '', resource: url, names: [] }, verbs);
}

/** What one set of rights has and another has not: rows with the verbs that are new. */
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
