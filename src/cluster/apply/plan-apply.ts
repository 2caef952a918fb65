import { compareCrds } from '../../bundle/plain/crd-upgrade/crd-upgrade.js';
import { type PlainObject, getGroup } from '../../kube/object.js';
import { readManifests } from '../../kube/manifests.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { computeDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, asJson } from '../../document/json.js';
import { getObject, getValue } from '../../document/json-fields.js';
import { type NeededPermission, findForbidden } from '../access.js';
import { compareRender } from './compare-render.js';
import { type Resources, discoverResources, findResource } from '../discovery.js';
import {
  type InventoryPlace,
  currentRevision,
  inventoryName,
  isSameSource,
  readInventory,
} from '../inventory.js';
import type { Kubectl } from '../kubectl.js';
import {
  type PresentOwner,
  findPresentOwner,
  getLive,
  isTakenOver,
  ownerAnnotation,
  readOwner,
  takenOverAnnotation,
} from '../live.js';
import {
  type ObjectId,
  canContainOthers,
  describeId,
  inPhaseOrder,
  toKey,
  toObjectId,
  toStub,
  without,
} from '../objects.js';
import type {
  AdoptionSource,
  Applicable,
  ApplyOptions,
  ApplyPlan,
  ObjectChange,
  PlacedObject,
  PlannedChange,
} from './plan-types.js';

/** Secret of the dry run that checks whether an inventory can be written. */
const rehearsedInventory = 'opmate-inventory';

/**
 * Plans the changes of applying a deployment, with all problems: kinds that the cluster lacks, objects of others,
 * missing permissions, unsafe changes of definitions, and errors of a dry run. Objects are compared with those on the
 * cluster; nothing that the inventory stores is applied. Changes nothing. Throws OpmateError if the cluster is unreachable.
 */
export async function planApply(
  kubectl: Kubectl,
  deployment: Applicable,
  options: ApplyOptions,
): Promise<ApplyPlan> {
  const place = { name: deployment.name, namespace: deployment.installNamespace };
  if (place.namespace === '') {
    throw new OpmateError('INVALID', `${place.name}: missing namespace`, {
      hint: 'set spec.installNamespace or options.installNamespace',
    });
  }
  const values = deployment.objects.map((object) => object.load());
  kubectl.hideSecrets(values.filter(({ kind }) => kind === 'Secret'));
  const read = await readInventory(kubectl, place);
  const { inventory } = read;
  const current = currentRevision(inventory);
  const held = [...inventory.objects, ...(inventory.unfinished?.objects ?? [])];
  const resources = await discoverResources(kubectl, [...values, ...held.map(toStub)]);
  const findings: Diagnostic[] = [];
  const placed = placeObjects(deployment.objects, resources, { place, findings, options });
  const isSame = current !== undefined && isSameSource(current, deployment);
  const plan: ApplyPlan = {
    deployment,
    place,
    read,
    current,
    isCurrent: isSame && inventory.unfinished === undefined,
    objects: placed.objects,
    omitted: placed.omitted,
    changes: [],
    findings,
    forced: new Set(),
    live: new Map(),
    approval: '',
  };
  if (findings.length > 0) return plan;
  const surplus = findSurplus(held, plan.objects);
  findings.push(...(await findForbidden(kubectl, getNeeds(plan, surplus, resources, options))));
  if (findings.length === 0) await compareWithCluster(kubectl, plan, { surplus, resources, options });
  return plan;
}

/** Returns the objects of the inventory that are no longer applied, in the order of their removal. */
function findSurplus(held: readonly ObjectId[], objects: ApplyPlan['objects']): ObjectId[] {
  const applied = new Set(objects.map(toKey));
  const released = held.filter((id) => !applied.has(toKey(id)));
  return inPhaseOrder([...new Map(released.map((id) => [toKey(id), id])).values()]).reverse();
}

/** Adds the changes, or the findings, of comparing the objects with those on the cluster. */
async function compareWithCluster(
  kubectl: Kubectl,
  plan: ApplyPlan,
  {
    surplus,
    resources,
    options,
  }: {
    surplus: ObjectId[];
    resources: Resources;
    options: ApplyOptions;
  },
): Promise<void> {
  const { deployment, place, objects, findings } = plan;
  const owner = toOwner(place);
  const existing = objects.filter((object) => findResource(resources, object)?.exists === true);
  const left = surplus.filter((id) => findResource(resources, id)?.exists);
  const live = await getLive(kubectl, [...existing, ...left]);
  plan.live = live;
  const owned = classifyOwners(objects, live, owner, options);
  findings.push(...owned.findings);
  const { isCrdUpgradeChecked = true } = deployment;
  if (isCrdUpgradeChecked && options.isCrdUpgradeChecked !== false)
    findings.push(...checkDefinitions(objects, live));
  if (findings.length > 0) return;
  const { changes, ...compared } = await compareRender(kubectl, plan, {
    existing,
    owners: owned.owners,
    inventorySecret: inventorySecret(place),
    options,
  });
  findings.push(...compared.findings);
  plan.forced = compared.forced;
  plan.objects = markTakenOver(objects, changes, live);
  plan.changes = [...changes, ...getRemovals(plan, surplus, owner, options)];
  const idsOf = (...kinds: readonly ObjectChange[]): ObjectId[] =>
    plan.changes.filter(({ change }) => kinds.includes(change)).map(({ id }) => id);
  const [removals, takeovers] = [idsOf('remove', 'release'), idsOf('take over', 'adopt')];
  plan.approval = computeApproval(place, deployment.hash, removals, takeovers);
}

/** Returns the value of the owner annotation of a deployment. */
export function toOwner({ namespace, name }: InventoryPlace): string {
  return `${namespace}/${name}`;
}

/** Returns the SHA-256 of what an approval covers: identity, render, removals, takeovers and adoptions. */
export function computeApproval(
  { name, namespace }: InventoryPlace,
  render: string,
  removals: readonly ObjectId[] = [],
  takeovers: readonly ObjectId[] = [],
): string {
  return computeDigest(encodeGoJson(asJson({ name, namespace, render, removals, takeovers })));
}

interface Placing {
  place: InventoryPlace;
  findings: Diagnostic[];
  options: ApplyOptions;
}

/** Sets namespace and owner of objects; the last duplicate takes precedence. */
function placeObjects(
  objects: readonly PlainObject[],
  resources: Resources,
  { place, findings, options: { optionalKinds = new Set<string>() } }: Placing,
): { objects: PlacedObject[]; omitted: ObjectId[] } {
  const placed = new Map<string, PlacedObject>();
  const omitted: ObjectId[] = [];
  const refuse = (code: string, problem: string, subject: string, hint?: string): void =>
    void findings.push(createFault(code, problem, { subject, ...(hint !== undefined && { hint }) }));
  for (const object of objects) {
    const { apiVersion, kind, name } = object;
    const resource = findResource(resources, object);
    if (apiVersion === '') refuse('missing-field', 'missing apiVersion', describeId(object));
    else if (resource === undefined) {
      if (optionalKinds === 'all' || optionalKinds.has(kind)) {
        omitted.push(toObjectId(object));
        continue;
      }
      const hint = 'install its definition first, or make the kind optional';
      const problem = `kind ${apiVersion} ${kind} not found in the cluster`;
      refuse('missing-kind', problem, describeId(object), hint);
    } else if (name === '') {
      refuse('missing-field', 'missing name: every run would create it again', kind);
    } else {
      const namespace = resource.isNamespaced ? object.namespace || place.namespace : '';
      const item = { apiVersion, kind, namespace, name };
      placed.set(toKey(item), {
        ...item,
        value: withMark(object.load(), namespace, ownerAnnotation, toOwner(place)),
      });
    }
  }
  return { objects: inPhaseOrder([...placed.values()]), omitted };
}

function withMark(value: JsonObject, namespace: string, annotation: string, text: string): JsonObject {
  const metadata = without(getObject(value, 'metadata'), 'namespace');
  const annotations = { ...getObject(metadata, 'annotations'), [annotation]: text };
  return { ...value, metadata: { ...metadata, ...(namespace !== '' && { namespace }), annotations } };
}

/** Marks objects that existed before: those to take over, and those taken over before. */
function markTakenOver(
  objects: readonly PlacedObject[],
  changes: readonly PlannedChange[],
  live: ReadonlyMap<string, JsonObject>,
): PlacedObject[] {
  const taken = new Map(
    changes.filter(({ change }) => change === 'take over').map((item) => [toKey(item.id), item]),
  );
  return objects.map((object) => {
    const change = taken.get(toKey(object));
    const current = live.get(toKey(object));
    const mark =
      change?.owner ?? (current !== undefined && isTakenOver(current) ? findFormerOwner(current) : undefined);
    if (mark === undefined) return object;
    const text = mark.name === '' ? mark.kind : `${mark.kind} ${mark.name}`;
    return { ...object, value: withMark(object.value, object.namespace, takenOverAnnotation, text) };
  });
}

function findFormerOwner(object: JsonObject): PresentOwner {
  const text = getValue(object, 'metadata', 'annotations', takenOverAnnotation);
  return { kind: 'unknown', name: typeof text === 'string' ? text.replace(/^unknown /, '') : '' };
}

function getNeeds(
  { objects, place }: ApplyPlan,
  surplus: readonly ObjectId[],
  resources: Resources,
  options: ApplyOptions,
): NeededPermission[] {
  const needs = (id: ObjectId, verbs: readonly NeededPermission['verb'][]): NeededPermission[] => {
    const resource = findResource(resources, id);
    if (resource === undefined) return [];
    const { group, plural } = resource;
    return verbs.map((verb) => ({ verb, group, resource: plural, namespace: id.namespace, name: id.name }));
  };
  const secret = (verb: NeededPermission['verb'], name = ''): NeededPermission => {
    return { verb, group: '', resource: 'secrets', namespace: place.namespace, name };
  };
  return [
    // Renders are in Secrets with hashes in their names.
    ...(['get', 'create', 'delete'] as const).map((verb) => secret(verb)),
    secret('update', inventoryName(place.name)),
    secret('patch', rehearsedInventory),
    ...objects.flatMap((object) => needs(object, ['get', 'create', 'patch', 'update'])),
    ...surplus
      .filter((id) => options.force === true || !canContainOthers(id))
      .flatMap((id) => needs(id, ['delete'])),
  ];
}

function inventorySecret({ namespace }: InventoryPlace): PlacedObject {
  const id = { apiVersion: 'v1', kind: 'Secret', namespace, name: rehearsedInventory };
  return { ...id, value: { ...toStub(id), type: 'opmate.dev/inventory' } };
}

/** Returns the owners of objects to take over or adopt, by key, and findings for objects of others. */
function classifyOwners(
  objects: readonly PlacedObject[],
  live: ReadonlyMap<string, JsonObject>,
  owner: string,
  { takeOver = false, adopt }: ApplyOptions,
): { owners: Map<string, { change: 'take over' | 'adopt'; owner: PresentOwner }>; findings: Diagnostic[] } {
  const owners = new Map<string, { change: 'take over' | 'adopt'; owner: PresentOwner }>();
  const findings: Diagnostic[] = [];
  for (const object of objects) {
    const current = live.get(toKey(object));
    if (current === undefined || readOwner(current) === owner) continue;
    const present = findPresentOwner(current);
    const subject = describeId(object);
    if (adopt !== undefined && isAdoptedFrom(present, adopt)) {
      owners.set(toKey(object), { change: 'adopt', owner: present });
    } else if (present.kind === 'deployment') {
      const hint = 'remove it from one of them, or adopt it from that deployment';
      findings.push(
        createFault('other-owner', `belongs to the deployment ${quoteGo(present.name)}`, { subject, hint }),
      );
    } else if (takeOver) {
      owners.set(toKey(object), { change: 'take over', owner: present });
    } else {
      const by =
        present.name === ''
          ? ''
          : `, managed by ${present.kind === 'unknown' ? '' : `${present.kind} `}${quoteGo(present.name)}`;
      const hint = 'delete it first, adopt it, or take it over';
      findings.push(createFault('exists', `already exists${by}`, { subject, hint }));
    }
  }
  return { owners, findings };
}

function isAdoptedFrom(present: PresentOwner, { kind, name }: AdoptionSource): boolean {
  // Objects without any trace of their creator are those of a person.
  const isKind = present.kind === kind || (kind === 'kubectl' && present.kind === 'unknown');
  const { name: owner, further = [] } = present;
  return (
    isKind && (name === undefined || [owner, ...further].includes(name) || (kind === 'olm' && owner === ''))
  );
}

/** Checks definitions that replace those on the cluster, as operator-controller does. */
function checkDefinitions(
  objects: readonly PlacedObject[],
  live: ReadonlyMap<string, JsonObject>,
): Diagnostic[] {
  return objects.flatMap((object) => {
    const current = live.get(toKey(object));
    if (object.kind !== 'CustomResourceDefinition' || current === undefined) return [];
    const texts = [current, object.value].map((value, index) => ({
      name: index === 0 ? 'cluster' : 'render',
      content: Buffer.from(encodeGoJson(value)),
    }));
    const [old, next] = texts.map((text) => readManifests([text], { prefix: '' }).manifests[0]);
    if (old === undefined || next === undefined) return [];
    return compareCrds(old, next).map(({ code, problem, version, property }) => {
      const at = [version, property].filter((part) => part !== undefined).join(' ');
      const hint = 'change the definition, or disable the check of CRD upgrades';
      return createFault(code, `unsafe upgrade: ${at === '' ? '' : `${at}: `}${problem}`, {
        subject: describeId(object),
        hint,
      });
    });
  });
}

function getRemovals(
  { objects, live, place, read: { inventory } }: ApplyPlan,
  surplus: readonly ObjectId[],
  owner: string,
  { force }: ApplyOptions,
): PlannedChange[] {
  const taken = new Set(inventory.objects.filter(({ takenOver }) => takenOver === true).map(toKey));
  return surplus.flatMap((held): PlannedChange[] => {
    const id = toObjectId(held);
    const current = live.get(toKey(id));
    // Objects that others removed or took over must not be deleted.
    if (current === undefined || readOwner(current) !== owner) return [];
    if (taken.has(toKey(id)) || isTakenOver(current)) return [{ id, change: 'release', fields: [] }];
    const isKept =
      canContainOthers(id) && (force !== true || containsAppliedObjects(id, current, objects, place));
    return [{ id, change: isKept ? 'keep' : 'remove', fields: [] }];
  });
}

/** Reports whether a namespace or definition contains objects of the deployment, or the inventory. */
function containsAppliedObjects(
  id: ObjectId,
  { spec }: JsonObject,
  objects: readonly ObjectId[],
  place: InventoryPlace,
): boolean {
  if (id.kind === 'Namespace') {
    return id.name === place.namespace || objects.some(({ namespace }) => namespace === id.name);
  }
  const group = getValue(spec, 'group');
  const defined = getValue(spec, 'names', 'kind');
  return objects.some(({ apiVersion, kind }) => getGroup(apiVersion) === group && kind === defined);
}
