import { type Diagnostic, createFault } from '../core/diagnostic.js';
import { quoteGo } from '../document/go-json.js';
import type { JsonObject } from '../document/json.js';
import { getText, getValue } from '../document/json-fields.js';
import { groupBy } from '../core/groups.js';
import { sortedByBytes } from '../core/order.js';
import { type Kubectl, parseObjects } from './kubectl.js';

/** A permission that the user needs. */
export interface NeededPermission {
  verb: 'get' | 'create' | 'patch' | 'update' | 'delete';
  group: string;
  resource: string;
  namespace: string;
  name: string;
}

/** Maximum requests per call: kubectl sends them one by one, and throttles itself. */
const batch = 500;

/**
 * Returns the missing permissions according to SelfSubjectAccessReviews: first for all names of a kind, then, if
 * denied, by name. Throws OpmateError if the request fails.
 */
export async function findForbidden(
  kubectl: Kubectl,
  needs: readonly NeededPermission[],
): Promise<Diagnostic[]> {
  const general = new Map<string, NeededPermission>();
  for (const need of needs) general.set(toKey({ ...need, name: '' }), { ...need, name: '' });
  const denied = await findDenied(kubectl, [...general.values()]);
  const doubtful = needs.filter((need) => denied.has(toKey({ ...need, name: '' })));
  // An object to be created has no name when that is decided.
  const named = doubtful.filter(({ verb }) => verb !== 'create');
  const deniedByName = await findDenied(kubectl, named);
  return describeDenied(doubtful.filter((need) => need.verb === 'create' || deniedByName.has(toKey(need))));
}

async function findDenied(kubectl: Kubectl, needs: readonly NeededPermission[]): Promise<Set<string>> {
  const denied = new Set<string>();
  const unique = [...new Map(needs.map((need) => [toKey(need), need])).values()];
  for (let start = 0; start < unique.length; start += batch) {
    const some = unique.slice(start, start + batch);
    const args = ['create', '-f', '-', '-o', 'json', '--validate=false'];
    const text = await kubectl.expect('asking for permissions', args, { objects: some.map(toReview) });
    const allowed = new Set<string>();
    for (const review of parseObjects(text)) {
      if (getValue(review, 'status', 'allowed') !== true) continue;
      const parts = ['verb', 'group', 'resource', 'namespace', 'name'];
      allowed.add(JSON.stringify(parts.map((part) => getText(review, 'spec', 'resourceAttributes', part))));
    }
    for (const need of some) if (!allowed.has(toKey(need))) denied.add(toKey(need));
  }
  return denied;
}

function toKey({ verb, group, resource, namespace, name }: NeededPermission): string {
  return JSON.stringify([verb, group, resource, namespace, name]);
}

function toReview({ verb, group, resource, namespace, name }: NeededPermission): JsonObject {
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: {
      resourceAttributes: {
        verb,
        ...(group !== '' && { group }),
        resource,
        ...(namespace !== '' && { namespace }),
        ...(name !== '' && { name }),
      },
    },
  };
}

const shownNames = 5;

/**
 * Returns one finding per kind and namespace: `may not patch roles.rbac.authorization.k8s.io in namespace "x": a, b`.
 */
function describeDenied(needs: readonly NeededPermission[]): Diagnostic[] {
  const groups = groupBy(needs, ({ group, resource, namespace }) =>
    JSON.stringify([group, resource, namespace]),
  );
  return sortedByBytes(groups.keys()).map((key) => {
    const same = groups.get(key) ?? [];
    const { group, resource, namespace } = same[0] as NeededPermission;
    const verbs = sortedByBytes(new Set(same.map(({ verb }) => verb)));
    const names = sortedByBytes(new Set(same.map(({ name }) => (name === '' ? 'any name' : name))));
    const what = group === '' ? resource : `${resource}.${group}`;
    const where = namespace === '' ? '' : ` in namespace ${quoteGo(namespace)}`;
    const more = names.length > shownNames ? ` and ${names.length - shownNames} more` : '';
    const shown = `${names.slice(0, shownNames).join(', ')}${more}`;
    return createFault('access', `you may not ${verbs.join(', ')} ${what}${where}: ${shown}`, {
      hint: 'run api.createInstaller to see the required role',
    });
  });
}
