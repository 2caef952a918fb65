import { isDeepStrictEqual } from 'node:util';
import { type PlainObject, getGroup } from '../kube/object.js';
import { type Diagnostic, createFault } from '../core/diagnostic.js';
import { mapConcurrent } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import { getObject, getValue } from '../document/json-fields.js';
import type { Logger } from '../core/log.js';
import type { RenderedDeployment } from './documents/render-deployments.js';
import { type Need, findForbidden, rehearse } from './access.js';
import { type Resources, discoverResources, findResource } from './discovery.js';
import {
  type InventoryPlace,
  type KeptPin,
  type ReadInventory,
  type Revision,
  currentRevision,
  inventoryName,
  loadRender,
  readInventory,
} from './inventory.js';
import { type Kubectl, readObjects } from './kubectl.js';
import {
  type ObjectId,
  canContainOthers,
  describeId,
  getId,
  inPhaseOrder,
  toKey,
  toStub,
  without,
} from './objects.js';

/** Part of a rendered deployment that is applied. */
export type Applicable = Pick<
  RenderedDeployment,
  'name' | 'installNamespace' | 'version' | 'clouds' | 'objects' | 'hash'
> & { pins: readonly KeptPin[] };

/** Options of applying a deployment. */
export interface ApplyOptions {
  /** Take over fields that others manage. */
  forceConflicts?: boolean;
  /** Delete definitions and namespaces too, with their content. */
  force?: boolean;
  /** Revision of the render. */
  rollbackTo?: number;
  now: () => Date;
  /** Resolves after this time. Throws CancelledError as soon as `signal` is aborted. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  logger: Logger;
  signal?: AbortSignal | undefined;
}

/** Change of an object since the last render. */
export type ObjectChange = 'add' | 'take over' | 'change' | 'remove' | 'keep';

/** Plan of applying a deployment. */
export interface ApplyPlan {
  deployment: Applicable;
  place: InventoryPlace;
  read: ReadInventory;
  /** Objects currently on the cluster. */
  current: Revision | undefined;
  previous: readonly PlacedObject[];
  objects: readonly PlacedObject[];
  /** Changes without unchanged objects; `keep` would be a removal with --force. */
  changes: { id: ObjectId; change: ObjectChange }[];
  /** Problems, conflicts included, that prevent applying; nothing was changed. */
  findings: Diagnostic[];
  /** Keys of objects with fields that others manage. */
  conflicts: Map<string, Diagnostic>;
  live: ReadonlyMap<string, JsonObject>;
  /** Leave objects with conflicts unchanged. */
  isWithoutConflicts?: boolean;
}

/** An object with its namespace. */
export interface PlacedObject extends ObjectId {
  value: JsonObject;
}

/** Annotation of objects with their deployment. */
export const ownerAnnotation = 'opmate.dev/deployment';
const fieldManager = 'opmate';
/** Secret of the dry run that checks whether an inventory can be written. */
const rehearsedInventory = 'opmate-inventory';

/**
 * Plans the changes of applying a deployment, with all problems: kinds that the cluster lacks, objects of other
 * deployments, missing permissions, and errors of a dry run. Changes nothing. Throws OpmateError if the cluster is
 * unreachable.
 */
export async function planApply(
  kubectl: Kubectl,
  deployment: Applicable,
  options: ApplyOptions,
): Promise<ApplyPlan> {
  const place = { name: deployment.name, namespace: deployment.installNamespace };
  if (place.namespace === '') {
    throw new OpmateError('INVALID', `${place.name}: missing namespace`, {
      hint: 'set spec.installNamespace or --install-namespace',
    });
  }
  kubectl.hideSecrets(
    deployment.objects.filter(({ kind }) => kind === 'Secret').map((object) => object.load()),
  );
  const read = await readInventory(kubectl, place);
  const { inventory } = read;
  const current = currentRevision(inventory);
  const former = current?.render === undefined ? [] : await loadRender(kubectl, place, current.render);
  const values = [...deployment.objects, ...former].map((object) => object.load());
  kubectl.hideSecrets(former.filter(({ kind }) => kind === 'Secret').map((object) => object.load()));
  const held = [...inventory.objects, ...(inventory.unfinished?.objects ?? [])];
  const resources = await discoverResources(kubectl, [...values, ...held.map(toStub)]);
  const owner = `${place.namespace}/${place.name}`;
  const findings: Diagnostic[] = [];
  const objects = placeObjects(deployment.objects, resources, place, owner, findings);
  const previous = placeObjects(former, resources, place, owner, []);
  const plan: ApplyPlan = {
    deployment,
    place,
    read,
    current,
    previous,
    objects,
    changes: [],
    findings,
    conflicts: new Map(),
    live: new Map(),
  };
  if (findings.length > 0) return plan;
  const applied = new Set(objects.map(toKey));
  const released = held.filter((id) => !applied.has(toKey(id)));
  const surplus = inPhaseOrder([...new Map(released.map((id) => [toKey(id), id])).values()]).reverse();
  findings.push(...(await findForbidden(kubectl, getNeeds(plan, surplus, resources, options))));
  if (findings.length > 0) return plan;
  const existing = objects.filter((object) => findResource(resources, object)?.exists === true);
  const live = await getLive(kubectl, [
    ...existing,
    ...surplus.filter((id) => findResource(resources, id)?.exists),
  ]);
  plan.live = live;
  plan.changes = getChanges(plan, surplus, owner, options);
  findings.push(...findForeignObjects(objects, live, owner));
  if (findings.length === 0) findings.push(...(await dryRun(kubectl, plan, existing, options)));
  return plan;
}

/** Sets namespace and owner of objects; the last duplicate takes precedence. */
function placeObjects(
  objects: readonly PlainObject[],
  resources: Resources,
  place: InventoryPlace,
  owner: string,
  findings: Diagnostic[],
): PlacedObject[] {
  const placed = new Map<string, PlacedObject>();
  const refuse = (code: string, problem: string, subject: string, hint?: string): void =>
    void findings.push(createFault(code, problem, { subject, ...(hint !== undefined && { hint }) }));
  for (const object of objects) {
    const { apiVersion, kind, name } = object;
    const resource = findResource(resources, object);
    if (apiVersion === '') refuse('missing-field', 'missing apiVersion', describeId(object));
    else if (resource === undefined) {
      const hint = 'install its definition first, or omit it with --optional-kinds';
      const problem = `kind ${apiVersion} ${kind} not found in the cluster`;
      refuse('missing-kind', problem, describeId(object), hint);
    } else if (name === '') {
      refuse('missing-field', 'missing name: every run would create it again', kind);
    } else {
      const namespace = resource.isNamespaced ? object.namespace || place.namespace : '';
      const item = { apiVersion, kind, namespace, name };
      const value = object.load();
      const metadata = without(getObject(value, 'metadata'), 'namespace');
      const annotations = { ...getObject(metadata, 'annotations'), [ownerAnnotation]: owner };
      const marked = { ...metadata, ...(namespace !== '' && { namespace }), annotations };
      placed.set(toKey(item), { ...item, value: { ...value, metadata: marked } });
    }
  }
  return inPhaseOrder([...placed.values()]);
}

function getNeeds(
  { objects, place }: ApplyPlan,
  surplus: readonly ObjectId[],
  resources: Resources,
  options: ApplyOptions,
): Need[] {
  const needs = (id: ObjectId, verbs: readonly Need['verb'][]): Need[] => {
    const resource = findResource(resources, id);
    if (resource === undefined) return [];
    const { group, plural } = resource;
    return verbs.map((verb) => ({ verb, group, resource: plural, namespace: id.namespace, name: id.name }));
  };
  const secret = (verb: Need['verb'], name = ''): Need => {
    return { verb, group: '', resource: 'secrets', namespace: place.namespace, name };
  };
  return [
    // Renders are in Secrets with hashes in their names.
    ...(['get', 'create', 'delete'] as const).map((verb) => secret(verb)),
    secret('update', inventoryName(place.name)),
    secret('patch', rehearsedInventory),
    ...objects.flatMap((object) => needs(object, ['get', 'create', 'patch'])),
    ...surplus
      .filter((id) => options.force === true || !canContainOthers(id))
      .flatMap((id) => needs(id, ['delete'])),
  ];
}

export async function getLive(kubectl: Kubectl, ids: readonly ObjectId[]): Promise<Map<string, JsonObject>> {
  if (ids.length === 0) return new Map();
  const text = await kubectl.expect(
    'reading what is on the cluster',
    ['get', '--ignore-not-found', '-o', 'json', '-f', '-'],
    { objects: ids.map(toStub) },
  );
  const objects = readObjects(text);
  kubectl.hideSecrets(objects);
  return new Map(objects.map((object) => [toKey(getId(object)), object]));
}

function getChanges(
  { objects, previous, live, place }: ApplyPlan,
  surplus: readonly ObjectId[],
  owner: string,
  { force }: ApplyOptions,
): ApplyPlan['changes'] {
  const before = new Map(previous.map((object) => [toKey(object), object]));
  const changes: ApplyPlan['changes'] = [];
  for (const object of objects) {
    const key = toKey(object);
    const former = before.get(key);
    const current = live.get(key);
    const id = toObjectId(object);
    if (current === undefined) changes.push({ id, change: 'add' });
    else if (readOwner(current) !== owner) changes.push({ id, change: 'take over' });
    else if (former === undefined || !isDeepStrictEqual(former.value, object.value)) {
      changes.push({ id, change: 'change' });
    }
  }
  for (const id of surplus) {
    const current = live.get(toKey(id));
    // Objects that others removed or took over must not be deleted.
    if (current === undefined || readOwner(current) !== owner) continue;
    const isKept =
      canContainOthers(id) && (force !== true || containsAppliedObjects(id, current, objects, place));
    changes.push({ id, change: isKept ? 'keep' : 'remove' });
  }
  return changes;
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

export function toObjectId({ apiVersion, kind, namespace, name }: ObjectId): ObjectId {
  return { apiVersion, kind, namespace, name };
}

function readOwner({ metadata }: JsonObject): string | undefined {
  const owner = getValue(metadata, 'annotations', ownerAnnotation);
  return typeof owner === 'string' ? owner : undefined;
}

function findForeignObjects(
  objects: readonly PlacedObject[],
  live: ReadonlyMap<string, JsonObject>,
  owner: string,
): Diagnostic[] {
  return objects.flatMap((object) => {
    const current = live.get(toKey(object));
    const other = current && readOwner(current);
    if (other === undefined || other === owner) return [];
    return [
      createFault('other-owner', `belongs to the deployment ${quoteGo(other)}`, {
        subject: describeId(object),
        hint: `remove it from one of them, or remove its annotation ${ownerAnnotation}`,
      }),
    ];
  });
}

export function getFlags({ forceConflicts }: ApplyOptions, validation: string): string[] {
  return [
    `--field-manager=${fieldManager}`,
    validation,
    ...(forceConflicts === true ? ['--force-conflicts'] : []),
  ];
}

/** Runs a dry run of the objects whose kind, namespace and role exist. */
async function dryRun(
  kubectl: Kubectl,
  { objects, live, place, conflicts }: ApplyPlan,
  existing: readonly PlacedObject[],
  options: ApplyOptions,
): Promise<Diagnostic[]> {
  const isNew = (object: PlacedObject): boolean => !live.has(toKey(object));
  const newOnes = new Set(objects.filter(isNew).map(toKey));
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
  const isNamespaceNew = newOnes.has(namespace(place.namespace));
  const flags = getFlags(options, await kubectl.validation());
  const inventory: JsonObject = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: rehearsedInventory, namespace: place.namespace },
    type: 'opmate.dev/inventory',
  };
  const values = [...(isNamespaceNew ? [] : [inventory]), ...tried.map(({ value }) => value)];
  const errors = await rehearse(kubectl, values, flags);
  const findings = errors
    .filter((error) => !isConflict(error))
    .map((error) => {
      const [, missing] = /namespaces "([^"]+)" not found/.exec(error) ?? [];
      return createFault('refused', error, {
        ...(missing !== undefined && { hint: `create it first: kubectl create namespace ${missing}` }),
      });
    });
  if (!errors.some(isConflict)) return findings;
  // kubectl does not report which objects have conflicts.
  const conflicting = tried.filter((object) => !isNew(object));
  const results = await mapConcurrent(conflicting, 4, async (object) =>
    (await rehearse(kubectl, [object.value], flags)).filter(isConflict).map((error) => {
      const hint = 'add --force-conflicts to take over these fields';
      const finding = createFault('conflict', error, { subject: describeId(object), hint });
      return [toKey(object), finding] as const;
    }),
  );
  for (const [key, finding] of results.flat()) conflicts.set(key, finding);
  return [...findings, ...conflicts.values()];
}

function isConflict(error: string): boolean {
  return /Apply failed with \d+ conflict/.test(error);
}

/**
 * Returns the plan without objects with conflicts, if these are its only problem and its render is already on the
 * cluster: one such object must not prevent restoring the others. Undefined if it must fail.
 */
export function withoutConflicts(plan: ApplyPlan): ApplyPlan | undefined {
  const { findings, conflicts, current, deployment, read } = plan;
  const isOnCluster = current?.hash === deployment.hash && read.inventory.unfinished === undefined;
  if (!isOnCluster || findings.length > conflicts.size) return undefined;
  return { ...plan, findings: [], isWithoutConflicts: true };
}
