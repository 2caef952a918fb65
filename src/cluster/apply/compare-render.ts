import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { isJsonObject } from '../../document/json.js';
import { diffFields } from '../documents/diff.js';
import { loadRender } from '../inventory.js';
import type { Kubectl } from '../kubectl.js';
import { type ChangedField, type PresentOwner, compareLive } from '../live.js';
import { type ObjectId, describeId, toKey, toObjectId } from '../objects.js';
import type { ApplyOptions, ApplyPlan, PlacedObject, PlannedChange } from './plan-types.js';
import { type Rehearsal, getFlags, rehearse } from './rehearse.js';

interface Comparison {
  /** Objects whose kinds the cluster has. */
  existing: readonly PlacedObject[];
  /** Objects to take over or adopt, by key. */
  owners: ReadonlyMap<string, { change: 'take over' | 'adopt'; owner: PresentOwner }>;
  /** Object that stands for the Secrets of the inventory. */
  inventorySecret: PlacedObject;
  options: ApplyOptions;
}

interface Compared {
  changes: PlannedChange[];
  findings: Diagnostic[];
  forced: Set<string>;
}

/**
 * Compares a render with the cluster by a dry run, which includes defaults and what admission changes. Fields of other
 * managers are conflicts unless the policy of `heal` covers them, or the object is taken over or adopted.
 */
export async function compareRender(
  kubectl: Kubectl,
  plan: ApplyPlan,
  comparison: Comparison,
): Promise<Compared> {
  const { owners, options } = comparison;
  const tried = findTried(plan, comparison);
  const validation = await kubectl.validation();
  const isForced = (object: ObjectId): boolean => options.heal === 'all' || owners.has(toKey(object));
  const verdicts = new Map([
    ...(await rehearse(
      kubectl,
      tried.filter((object) => !isForced(object)),
      getFlags(validation, false),
    )),
    ...(await rehearse(kubectl, tried.filter(isForced), getFlags(validation, true))),
  ]);
  const compared: Compared = {
    changes: [],
    findings: [],
    forced: new Set(tried.filter(isForced).map(toKey)),
  };
  const conflicting = tried.filter((object) => verdicts.get(toKey(object))?.conflict !== undefined);
  const forcedVerdicts = await rehearse(kubectl, conflicting, getFlags(validation, true));
  const newFields = conflicting.length === 0 ? undefined : await openNewFields(kubectl, plan);
  for (const object of [comparison.inventorySecret, ...plan.objects]) {
    const key = toKey(object);
    const verdict = verdicts.get(key);
    compared.findings.push(...(verdict?.errors ?? []).map((error) => toRefusal(object, error)));
    if (object === comparison.inventorySecret) continue;
    const conflict = verdict?.conflict;
    const change =
      conflict === undefined || newFields === undefined
        ? describeChange(plan, object, verdict?.result, owners.get(key))
        : resolveConflict(plan, object, {
            conflict,
            newFields,
            options,
            result: forcedVerdicts.get(key)?.result,
          });
    if (change === undefined) continue;
    if ('finding' in change) compared.findings.push(change.finding);
    else {
      compared.changes.push(change);
      if (conflict !== undefined && change.change === 'heal') compared.forced.add(key);
    }
  }
  return compared;
}

/** Returns the objects whose kind, namespace and role exist: only they can be tried. */
function findTried(
  { objects, live, place }: ApplyPlan,
  { existing, inventorySecret }: Comparison,
): PlacedObject[] {
  const newOnes = new Set(objects.filter((object) => !live.has(toKey(object))).map(toKey));
  const namespace = (name: string): string =>
    toKey({ apiVersion: 'v1', kind: 'Namespace', namespace: '', name });
  const tried = existing.filter((object) => {
    if (object.namespace !== '' && newOnes.has(namespace(object.namespace))) return false;
    const { roleRef } = object.value;
    if (!isJsonObject(roleRef) || typeof roleRef['name'] !== 'string') return true;
    // The dry run may reject bindings of roles that do not exist yet.
    const [kind, scope] = roleRef['kind'] === 'Role' ? ['Role', object.namespace] : ['ClusterRole', ''];
    return !newOnes.has(
      toKey({ apiVersion: object.apiVersion, kind, namespace: scope, name: roleRef['name'] }),
    );
  });
  // The inventory needs the namespace too.
  return newOnes.has(namespace(place.namespace)) ? tried : [inventorySecret, ...tried];
}

function toRefusal(object: ObjectId, error: string): Diagnostic {
  const [, missing] = /namespaces "([^"]+)" not found/.exec(error) ?? [];
  return createFault('refused', error, {
    subject: describeId(object),
    ...(missing !== undefined && { hint: `create it first: kubectl create namespace ${missing}` }),
  });
}

function describeChange(
  { live, isCurrent }: ApplyPlan,
  object: PlacedObject,
  result: Rehearsal['result'],
  owned: { change: 'take over' | 'adopt'; owner: PresentOwner } | undefined,
): PlannedChange | undefined {
  const id = toObjectId(object);
  const current = live.get(toKey(object));
  if (current === undefined) return { id, change: 'add', fields: [] };
  const fields = result === undefined ? [] : compareLive(current, result);
  if (owned !== undefined) return { id, fields, ...owned };
  // Without a result of the dry run the object is applied, and the report says whether it has changed.
  if (fields.length === 0 && result !== undefined) return undefined;
  return { id, change: isCurrent ? 'heal' : 'change', fields };
}

interface Conflict {
  conflict: string;
  /** Object with the fields of the render, whoever manages them. */
  result: Rehearsal['result'];
  newFields: (object: PlacedObject) => readonly string[] | undefined;
  options: ApplyOptions;
}

/** Returns the change of an object with conflicts, or the finding if it must not be applied. */
function resolveConflict(
  { live, isCurrent }: ApplyPlan,
  object: PlacedObject,
  { conflict, result, newFields, options: { heal = 'report' } }: Conflict,
): PlannedChange | { finding: Diagnostic } | undefined {
  const id = toObjectId(object);
  const current = live.get(toKey(object));
  const fields = current === undefined || result === undefined ? [] : compareLive(current, result);
  const foreign = fields.filter(({ managers }) => managers.length > 0);
  if (heal === 'own' && isApplied(foreign, isCurrent ? [] : newFields(object)))
    return { id, change: 'heal', fields };
  if (isCurrent) return { id, change: 'leave', fields };
  const hint = 'remove these fields from the deployment, or restore them with a policy for healing';
  return { finding: createFault('conflict', conflict, { subject: describeId(object), hint }) };
}

/** Reports whether all fields were applied before: none is among the new ones of the render. */
function isApplied(fields: readonly ChangedField[], added: readonly string[] | undefined): boolean {
  if (added === undefined) return false;
  return fields.every(({ path }) => !added.some((other) => path.startsWith(other) || other.startsWith(path)));
}

/**
 * Returns a function that finds the fields of an object that the revision before did not have; undefined for an object
 * that it did not have. The stored render only narrows what is healed: its values are never applied.
 */
async function openNewFields(
  kubectl: Kubectl,
  { current, place }: ApplyPlan,
): Promise<(object: PlacedObject) => readonly string[] | undefined> {
  const stored = current?.render === undefined ? [] : await loadRender(kubectl, place, current.render);
  kubectl.hideSecrets(stored.filter(({ kind }) => kind === 'Secret').map((object) => object.load()));
  const before = new Map(
    stored.map((object) => [toKey({ ...object, namespace: object.namespace || place.namespace }), object]),
  );
  return (object) => {
    const former = before.get(toKey({ ...object, namespace: object.namespace || place.namespace }));
    if (former === undefined) return undefined;
    return diffFields(former.load(), object.value)
      .filter((field) => !('old' in field))
      .map(({ path }) => path);
  };
}
