import { LimitError } from '../../../core/errors.js';
import { getOrAdd } from '../../../core/groups.js';
import { type JsonObject, isJsonObject } from '../../../document/json.js';
import { getList, getObject, getObjects, getText, getTexts } from '../../../document/json-fields.js';
import { compareBytes, sortedByBytes } from '../../../core/order.js';
import type { PlainObject } from '../../../kube/object.js';
import { findRisks } from './risks.js';
import { type Subject, isSharedSubject, readSubject } from './subjects.js';

/** Permissions of a subject for one resource or URL. */
export interface Right extends Subject {
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

/** Verbs granted for a row. */
type Grant<R> = readonly [row: R, verbs: readonly string[]];

/**
 * Returns the permissions of subjects from all bindings among these objects: one row per subject, namespace, group,
 * resource and set of names. Missing and aggregated roles are rows without verbs. Sorted. Throws LimitError.
 */
export function getRights(objects: readonly PlainObject[]): Right[] {
  return withVerbs(iterateGrants(objects), toKey, maxRights).map(withRisks);
}

function* iterateGrants(objects: readonly PlainObject[]): Generator<Grant<Row>> {
  const roles = new Map<string, JsonObject>();
  for (const { kind, namespace, name, load } of objects) {
    if (isRole({ kind })) roles.set(toRoleKey(kind, namespace, name), load());
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
      const account = readSubject(subject, namespace);
      if (account === undefined) continue;
      for (const rule of getObjects(role, 'rules')) {
        const verbs = getTexts(rule['verbs']);
        const names = sortedByBytes(new Set(getTexts(rule['resourceNames'])));
        for (const { group, resource, isUrl } of iterateTargets(rule)) {
          yield [{ ...account, namespace, group, resource, names: isUrl ? [] : names }, verbs];
        }
      }
      const isAggregated = isJsonObject(role?.['aggregationRule']);
      if (role !== undefined && !isAggregated) continue;
      const resource = `${roleKind}/${roleName}`;
      yield [{ ...account, namespace, group: rbacGroup, resource, names: [], isAggregated }, []];
    }
  }
}

/** Returns the resources and URLs of a rule. */
export function* iterateTargets(
  rule: JsonObject,
): Generator<{ group: string; resource: string; isUrl: boolean }> {
  for (const group of getTexts(rule['apiGroups'])) {
    for (const resource of getTexts(rule['resources'])) yield { group, resource, isUrl: false };
  }
  for (const url of getTexts(rule['nonResourceURLs'])) yield { group: '', resource: url, isUrl: true };
}

/** Returns one row per key with all its verbs, sorted by key. Throws LimitError beyond `max` rows. */
export function withVerbs<R extends object>(
  grants: Iterable<Grant<R>>,
  keyOf: (row: R) => string,
  max: number,
): (R & { verbs: string[] })[] {
  const rows = new Map<string, { row: R; verbs: Set<string> }>();
  for (const [row, verbs] of grants) {
    const known = getOrAdd(rows, keyOf(row), () => ({ row, verbs: new Set<string>() }));
    for (const verb of verbs) known.verbs.add(verb);
    if (rows.size > max) {
      throw new LimitError(`more than ${max} permissions`, {
        hint: 'check that these are the roles of one operator',
      });
    }
  }
  return [...rows]
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([, { row, verbs }]) => ({ ...row, verbs: verbs.has('*') ? ['*'] : sortedByBytes(verbs) }));
}

const rbacGroup = 'rbac.authorization.k8s.io';

function withRisks({ isAggregated = false, ...right }: Row & Pick<Right, 'verbs'>): Right {
  return { ...right, risks: findRisks({ ...right, isAggregated, isShared: isSharedSubject(right) }) };
}

function toKey({ kind = '', account, accountNamespace, namespace, group, resource, names }: Row): string {
  return JSON.stringify([accountNamespace, account, kind, namespace, group, resource, names]);
}

export function isRole({ kind }: { kind: string }): boolean {
  return kind === 'Role' || kind === 'ClusterRole';
}

/** Returns a key of a role; the namespace matters for the kind Role only. */
export function toRoleKey(kind: string, namespace: string, name: string): string {
  return JSON.stringify([kind, kind === 'Role' ? namespace : '', name]);
}

/** Returns the rights that are not among others, with their additional verbs. */
export function rightsBeyond(rights: readonly Right[], others: readonly Right[]): Right[] {
  const known = new Map(others.map((right) => [toKey(right), right]));
  return rights.flatMap((right) => {
    const other = known.get(toKey(right));
    if (other === undefined) return [right];
    if (other.verbs.includes('*')) return [];
    const verbs = right.verbs.filter((verb) => !other.verbs.includes(verb));
    return verbs.length === 0 ? [] : [withRisks({ ...right, verbs })];
  });
}
