import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { groupBy } from '../../core/groups.js';
import { OpmateError } from '../../core/errors.js';
import { decodeUtf8, parseGoJson } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { getObject, getObjects, getText } from '../../document/json-fields.js';
import { readManifests } from '../../kube/manifests.js';
import { type InventoryPlace, deleteInventory, readInventory, writeInventory } from '../inventory.js';
import { type Kubectl, parseObjects } from '../kubectl.js';
import { type PresentOwner, selectLive } from '../live.js';
import { type ObjectId, describeId, getId, toKey, toObjectId, toStub, without } from '../objects.js';
import type { ApplyPlan, PlannedChange } from './plan-types.js';
import { replaceObjects, withoutOwner } from '../delete/remove.js';

/** Changes of the present owners, in addition to the plan of the objects. */
export interface Adoption {
  /** Objects of the owners that are deleted, without their dependents. */
  records: ObjectId[];
  /** Objects of the owners that are not part of the deployment: nobody manages them afterwards. */
  orphans: ObjectId[];
  /** Deployments that lose objects. */
  deployments: InventoryPlace[];
}

/** Plans what happens to the present owners of adopted objects. Throws OpmateError. */
export async function planAdoption(kubectl: Kubectl, plan: ApplyPlan): Promise<Adoption> {
  const adoption: Adoption = { records: [], orphans: [], deployments: [] };
  const adopted = plan.changes.filter(({ change }) => change === 'adopt');
  const owners = groupBy(adopted, ({ owner }) => JSON.stringify(owner));
  for (const [first] of owners.values()) {
    const owner = first?.owner;
    if (owner === undefined) continue;
    const [namespace = '', name = ''] = owner.name.split('/');
    const place = { namespace, name };
    if (owner.kind === 'helm') await addRelease(kubectl, plan, place, adoption);
    else if (owner.kind === 'olm' && name !== '') await addSubscription(kubectl, place, adoption);
    else if (owner.kind === 'deployment') {
      adoption.deployments.push(place);
      const { inventory } = await readInventory(kubectl, place);
      adoption.orphans.push(...leftObjects(plan, inventory.objects));
    }
  }
  return adoption;
}

function leftObjects({ objects }: ApplyPlan, ids: readonly ObjectId[]): ObjectId[] {
  const applied = new Set(objects.map(toKey));
  return ids.filter((id) => !applied.has(toKey(id))).map(toObjectId);
}

const unzip = promisify(gunzip);
const maxRelease = 64 * 1024 * 1024;

/** Adds the records of a Helm release, and the objects of its newest revision that are not adopted. */
async function addRelease(
  kubectl: Kubectl,
  plan: ApplyPlan,
  { namespace, name }: InventoryPlace,
  adoption: Adoption,
): Promise<void> {
  const text = await kubectl.expect(`reading the Helm release ${name}`, [
    'get',
    'secrets',
    `--namespace=${namespace}`,
    `--selector=owner=helm,name=${name}`,
    '-o',
    'json',
  ]);
  const secrets = parseObjects(text).filter(({ type }) => type === 'helm.sh/release.v1');
  const revisionOf = (secret: JsonObject): number => Number(getText(secret, 'metadata', 'labels', 'version'));
  const newest = [...secrets].sort((a, b) => revisionOf(a) - revisionOf(b)).at(-1);
  adoption.records.push(
    ...secrets.map((secret) => toObjectId({ ...getId(secret), apiVersion: 'v1', kind: 'Secret' })),
  );
  if (newest === undefined) return;
  const packed = Buffer.from(Buffer.from(getText(newest, 'data', 'release'), 'base64').toString(), 'base64');
  const release = parseGoJson(decodeUtf8(await unzip(packed, { maxOutputLength: maxRelease })));
  const content = Buffer.from(getText(release, 'manifest'));
  const { manifests } = readManifests([{ name: 'release.yaml', content }], { prefix: '' });
  const namespaced = new Set(
    plan.objects.filter((object) => object.namespace !== '').map(({ kind }) => kind),
  );
  const ids = manifests.map((manifest) => {
    const isNamespaced = manifest.namespace !== '' || namespaced.has(manifest.kind);
    const scope = isNamespaced ? manifest.namespace || namespace : '';
    const { apiVersion, kind, name: object } = manifest;
    return { apiVersion, kind, namespace: scope, name: object };
  });
  // A kind that is not in the render may be namespaced or not: both keys are compared.
  const applied = new Set(plan.objects.map((object) => toKey({ ...object, namespace: '' })));
  adoption.orphans.push(...ids.filter((id) => !applied.has(toKey({ ...id, namespace: '' }))));
}

const olm = 'operators.coreos.com/v1alpha1';

/** Adds a ClusterServiceVersion and the Subscription that installed it: OLM would otherwise undo the adoption. */
async function addSubscription(
  kubectl: Kubectl,
  { namespace, name }: InventoryPlace,
  adoption: Adoption,
): Promise<void> {
  const args = ['get', 'subscriptions.operators.coreos.com', `--namespace=${namespace}`, '-o', 'json'];
  const { stdout, errors } = await kubectl.run(args);
  if (errors.length > 0 && !errors.every((error) => error.includes("doesn't have a resource type")))
    throw new OpmateError('INVALID', `reading Subscriptions: ${errors.join('; ')}`);
  const subscriptions = errors.length > 0 ? [] : parseObjects(stdout);
  const own = subscriptions.filter((subscription) =>
    [getText(subscription, 'status', 'installedCSV'), getText(subscription, 'status', 'currentCSV')].includes(
      name,
    ),
  );
  adoption.records.push(
    ...own.map((subscription) => ({ ...getId(subscription), apiVersion: olm, kind: 'Subscription' })),
    { apiVersion: olm, kind: 'ClusterServiceVersion', namespace, name },
  );
}

/** Annotations, labels and field managers of present owners, which adopted objects lose. */
const traces: Readonly<
  Partial<Record<PresentOwner['kind'], { annotations: string[]; labels: string[]; managers: RegExp }>>
> = {
  kubectl: {
    annotations: ['kubectl.kubernetes.io/last-applied-configuration'],
    labels: [],
    managers: /^kubectl/,
  },
  helm: {
    annotations: ['meta.helm.sh/release-name', 'meta.helm.sh/release-namespace'],
    labels: [],
    managers: /^helm$/,
  },
  olm: {
    annotations: [],
    labels: ['olm.owner', 'olm.owner.kind', 'olm.owner.namespace', 'olm.managed', 'olm.permissions.hash'],
    managers: /^(?:olm|catalog)$/,
  },
};

/**
 * Ends the ownership of present owners before the render is applied: objects lose the traces of their owner, and the
 * records of OLM are deleted without their dependents. Objects keep their identity and content. Throws OpmateError.
 */
export async function beginAdoption(kubectl: Kubectl, plan: ApplyPlan, { records }: Adoption): Promise<void> {
  const adopted = plan.changes.filter(({ change }) => change === 'adopt');
  // OLM deletes cluster-scoped objects by label when a ClusterServiceVersion goes.
  const isFirst = ({ id, owner }: PlannedChange): boolean => owner?.kind === 'olm' && id.namespace === '';
  await removeTraces(kubectl, plan, adopted.filter(isFirst));
  await deleteRecords(
    kubectl,
    records.filter(({ apiVersion }) => apiVersion === olm),
  );
  await removeTraces(
    kubectl,
    plan,
    adopted.filter((change) => !isFirst(change)),
  );
}

async function removeTraces(
  kubectl: Kubectl,
  plan: ApplyPlan,
  adopted: readonly PlannedChange[],
): Promise<void> {
  const objects = adopted.flatMap(({ id, owner }) => {
    const trace = owner && traces[owner.kind];
    if (trace === undefined) return [];
    return selectLive(plan.live, [id]).map((object) => {
      const clean = withoutOwner(
        object,
        (name) => trace.managers.test(name),
        trace.annotations,
        trace.labels,
      );
      const metadata = getObject(clean, 'metadata');
      const references = getObjects(metadata, 'ownerReferences').filter(
        ({ kind }) => kind !== 'ClusterServiceVersion',
      );
      return {
        ...clean,
        metadata: { ...without(metadata, 'resourceVersion', 'ownerReferences'), ownerReferences: references },
      };
    });
  });
  const errors = await replaceObjects(kubectl, objects);
  if (errors.length > 0) throw new OpmateError('INVALID', `adopting: ${errors.join('; ')}`);
}

async function deleteRecords(kubectl: Kubectl, ids: readonly ObjectId[]): Promise<void> {
  for (const id of ids) {
    const args = ['delete', '--ignore-not-found', '--cascade=orphan', '-o', 'name', '-f', '-'];
    await kubectl.expect(`deleting ${describeId(id)}`, args, { objects: [toStub(id)] });
  }
}

/** Deletes the records of Helm, and removes adopted objects from the inventories of other deployments. */
export async function finishAdoption(kubectl: Kubectl, plan: ApplyPlan, adoption: Adoption): Promise<void> {
  await deleteRecords(
    kubectl,
    adoption.records.filter(({ apiVersion }) => apiVersion !== olm),
  );
  const adopted = new Set(plan.objects.map(toKey));
  for (const place of adoption.deployments) {
    const read = await readInventory(kubectl, place);
    if (read.resourceVersion === undefined) continue;
    const objects = read.inventory.objects.filter((id) => !adopted.has(toKey(id)));
    if (objects.length === 0) await deleteInventory(kubectl, place, read.inventory);
    else await writeInventory(kubectl, place, { ...read, inventory: { ...read.inventory, objects } });
  }
}
