import { type Diagnostic } from '../../core/diagnostic.js';
import { computeDigest } from '../../core/digest.js';
import { firstBy } from '../../core/groups.js';
import { encodeGoJson, parseGoJson } from '../../document/go-json.js';
import { type JsonObject, asJson, isJsonObject } from '../../document/json.js';
import { getList, getObject, getObjects, getText, getValue } from '../../document/json-fields.js';
import { getGroup } from '../../kube/object.js';
import { findForbidden } from '../access.js';
import { type Resources, discoverResources, findResource } from '../discovery.js';
import { type InventoryPlace, type ReadInventory, inventoryName, readInventory } from '../inventory.js';
import { type Kubectl, parseObjects } from '../kubectl.js';
import { getLive, isTakenOver, readOwner } from '../live.js';
import { type ObjectId, getId, inPhaseOrder, toKey, toObjectId, toStub } from '../objects.js';
import { toOwner } from '../apply/plan-apply.js';

/** A step of deleting a deployment. */
export interface DeletionStep {
  id: ObjectId;
  /** `skip`: it belongs to others, or does not exist. */
  change: 'remove' | 'release' | 'keep' | 'skip';
  reason?: string;
  /** Number of custom resources of a definition. */
  instances?: number;
}

/** Plan of deleting a deployment, in order. */
export interface DeletionPlan {
  place: InventoryPlace;
  read: ReadInventory;
  steps: DeletionStep[];
  /** Custom resources of definitions to remove, which are deleted first, while their operator runs. */
  instances: ObjectId[];
  findings: Diagnostic[];
  live: ReadonlyMap<string, JsonObject>;
  /** SHA-256 of identity and removals: what an approval covers. */
  approval: string;
}

/** Options of planning a deletion. */
export interface DeletionOptions {
  /** Also delete definitions, with all custom resources; default false. */
  isWithDefinitions?: boolean;
  /** Release all objects instead of deleting them; default false. */
  isOrphaning?: boolean;
}

/**
 * Plans the deletion of a deployment: its objects in the reverse order of phases. Objects that existed before it are
 * released, objects of others are skipped, definitions are kept by default, and namespaces that hold objects of others.
 * Orphaning releases every object.
 */
export async function planDelete(
  kubectl: Kubectl,
  place: InventoryPlace,
  { isWithDefinitions = false, isOrphaning = false }: DeletionOptions = {},
): Promise<DeletionPlan> {
  const read = await readInventory(kubectl, place);
  const { objects, unfinished } = read.inventory;
  const taken = new Set(objects.filter(({ takenOver }) => takenOver === true).map(toKey));
  const held = [...firstBy([...objects, ...(unfinished?.objects ?? [])].map(toObjectId), toKey).values()];
  const resources = await discoverResources(kubectl, held.map(toStub));
  const live = await getLive(
    kubectl,
    held.filter((id) => findResource(resources, id)?.exists === true),
  );
  const plan: DeletionPlan = { place, read, steps: [], instances: [], findings: [], live, approval: '' };
  const owner = toOwner(place);
  for (const id of inPhaseOrder(held).reverse()) {
    const current = live.get(toKey(id));
    if (current === undefined) plan.steps.push({ id, change: 'skip', reason: 'not found' });
    else if (readOwner(current) !== owner)
      plan.steps.push({ id, change: 'skip', reason: describeOther(current) });
    else if (taken.has(toKey(id)) || isTakenOver(current))
      plan.steps.push({ id, change: 'release', reason: 'existed before the deployment' });
    else if (isOrphaning) plan.steps.push({ id, change: 'release', reason: 'orphaned' });
    else if (id.kind === 'CustomResourceDefinition')
      plan.steps.push(await planDefinition(kubectl, plan, { id, current, isWithDefinitions }));
    else if (id.kind === 'Namespace' && getGroup(id.apiVersion) === '')
      plan.steps.push(await planNamespace(kubectl, plan, id, held));
    else plan.steps.push({ id, change: 'remove' });
  }
  plan.findings.push(...(await findForbidden(kubectl, getNeeds(plan, resources))));
  const removals = plan.steps.filter(({ change }) => change === 'remove').map(({ id }) => id);
  plan.approval = computeDigest(
    encodeGoJson(
      asJson({ name: place.name, namespace: place.namespace, delete: [...plan.instances, ...removals] }),
    ),
  );
  return plan;
}

function describeOther(object: JsonObject): string {
  const owner = readOwner(object);
  return owner === undefined ? 'no longer belongs to the deployment' : `belongs to the deployment ${owner}`;
}

async function planDefinition(
  kubectl: Kubectl,
  plan: DeletionPlan,
  { id, current, isWithDefinitions }: { id: ObjectId; current: JsonObject; isWithDefinitions: boolean },
): Promise<DeletionStep> {
  const found = await listInstances(kubectl, current);
  if (!isWithDefinitions)
    return { id, change: 'keep', instances: found.length, reason: 'custom resources would be lost' };
  plan.instances.push(...found);
  return { id, change: 'remove', instances: found.length };
}

/** Returns the custom resources of a definition. Throws OpmateError if they cannot be listed. */
async function listInstances(kubectl: Kubectl, definition: JsonObject): Promise<ObjectId[]> {
  const { group, names, versions } = getObject(definition, 'spec');
  const version = getObjects(versions).find(({ served }) => served === true);
  const [plural, name] = [getText(names, 'plural'), getText(version, 'name')];
  if (plural === '' || name === '' || typeof group !== 'string') return [];
  const ids: ObjectId[] = [];
  let next = '';
  do {
    const page = next === '' ? '' : `&continue=${encodeURIComponent(next)}`;
    const text = await kubectl.expect(`counting ${plural}.${group}`, [
      'get',
      '--raw',
      `/apis/${group}/${name}/${plural}?limit=500${page}`,
    ]);
    const list = parseGoJson(text);
    // Items of a list lack their kind.
    const type = { apiVersion: `${group}/${name}`, kind: getText(names, 'kind') };
    ids.push(
      ...getList(list, 'items')
        .filter(isJsonObject)
        .map((item) => getId({ ...item, ...type })),
    );
    next = getText(list, 'metadata', 'continue');
  } while (next !== '');
  return ids;
}

/** Objects that clusters create in every namespace. */
const ownOfNamespace = new Set([
  'ServiceAccount default',
  'ServiceAccount builder',
  'ServiceAccount deployer',
  'ConfigMap kube-root-ca.crt',
  'ConfigMap openshift-service-ca.crt',
]);

async function planNamespace(
  kubectl: Kubectl,
  { place }: DeletionPlan,
  id: ObjectId,
  held: readonly ObjectId[],
): Promise<DeletionStep> {
  const others = await listOthers(kubectl, id.name, place, new Set(held.map(toKey)));
  const [first] = others;
  if (first === undefined) return { id, change: 'remove' };
  const more = others.length > 1 ? ` and ${others.length - 1} more` : '';
  return { id, change: 'keep', reason: `contains ${first.kind} ${first.name}${more}` };
}

/** Returns the objects in a namespace that are neither of the deployment, nor of its objects, nor of the cluster. */
async function listOthers(
  kubectl: Kubectl,
  namespace: string,
  place: InventoryPlace,
  held: ReadonlySet<string>,
): Promise<ObjectId[]> {
  const kinds = await kubectl.expect('reading the kinds of the cluster', [
    'api-resources',
    '--namespaced',
    '--verbs=list,delete',
    '-o',
    'name',
  ]);
  const listed = kinds
    .split('\n')
    .filter(
      (name) =>
        /^[a-z0-9.-]+$/.test(name) && !/^(?:events|endpoints|endpointslices|leases|replicasets)\b/.test(name),
    );
  if (listed.length === 0) return [];
  const text = await kubectl.expect(`reading the objects of namespace ${namespace}`, [
    'get',
    listed.join(','),
    `--namespace=${namespace}`,
    '--ignore-not-found',
    '-o',
    'json',
  ]);
  const prefix = inventoryName(place.name);
  return parseObjects(text).flatMap((object) => {
    const id = getId(object);
    const isOwned = getList(getValue(object, 'metadata', 'ownerReferences')).length > 0;
    const isInventory = id.kind === 'Secret' && (id.name === prefix || id.name.startsWith(`${prefix}-`));
    const isOfCluster = ownOfNamespace.has(`${id.kind} ${id.name}`);
    return isOwned || isInventory || isOfCluster || held.has(toKey(id)) ? [] : [id];
  });
}

function getNeeds({ steps, place }: DeletionPlan, resources: Resources): Parameters<typeof findForbidden>[1] {
  const secrets = { group: '', resource: 'secrets', namespace: place.namespace, name: '' };
  return [
    ...(['get', 'delete'] as const).map((verb) => ({ verb, ...secrets })),
    ...steps.flatMap(({ id, change }) => {
      const resource = findResource(resources, id);
      if (resource === undefined || change === 'keep' || change === 'skip') return [];
      const { group, plural } = resource;
      const verb = change === 'remove' ? ('delete' as const) : ('update' as const);
      return [{ verb, group, resource: plural, namespace: id.namespace, name: id.name }];
    }),
  ];
}
