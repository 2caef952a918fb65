import type { JsonObject } from '../document/json.js';
import { getObject, getObjects, getText, getValue } from '../document/json-fields.js';
import { type FieldChange, diffFields, maskSecrets } from './documents/diff.js';
import { type FieldManager, openManagers } from './field-managers.js';
import { type Kubectl, parseObjects } from './kubectl.js';
import { type ObjectId, getId, toKey, toStub, without } from './objects.js';

/** Annotation of objects with their deployment: `NAMESPACE/NAME`. */
export const ownerAnnotation = 'opmate.dev/deployment';
/** Annotation of objects that existed before the deployment: they are released, never deleted. */
export const takenOverAnnotation = 'opmate.dev/taken-over';

/** Returns the objects that exist, by key, with their field managers. */
export async function getLive(kubectl: Kubectl, ids: readonly ObjectId[]): Promise<Map<string, JsonObject>> {
  if (ids.length === 0) return new Map();
  const text = await kubectl.expect(
    'reading objects of the cluster',
    ['get', '--ignore-not-found', ...(await kubectl.managedFields()), '-o', 'json', '-f', '-'],
    { objects: ids.map(toStub) },
  );
  const objects = parseObjects(text);
  kubectl.hideSecrets(objects);
  return new Map(objects.map((object) => [toKey(getId(object)), object]));
}

/** Returns the live objects of these identities. */
export function selectLive(live: ReadonlyMap<string, JsonObject>, ids: readonly ObjectId[]): JsonObject[] {
  return ids.map((id) => live.get(toKey(id))).filter((object) => object !== undefined);
}

/** Returns the deployment that an object belongs to: `NAMESPACE/NAME`; undefined for none. */
export function readOwner(object: JsonObject): string | undefined {
  const owner = getValue(object, 'metadata', 'annotations', ownerAnnotation);
  return typeof owner === 'string' ? owner : undefined;
}

/** Reports whether an object existed before its deployment. */
export function isTakenOver(object: JsonObject): boolean {
  return getText(object, 'metadata', 'annotations', takenOverAnnotation) !== '';
}

/** Tool or person that an object without a deployment belongs to. */
export interface PresentOwner {
  kind: 'deployment' | 'helm' | 'olm' | 'kubectl' | 'controller' | 'unknown';
  /** Name: `NAMESPACE/NAME` of a deployment, release or ClusterServiceVersion, `Kind NAME` of a controller. */
  name: string;
  /** Further ClusterServiceVersions, as after an upgrade, whose objects both have. */
  further?: readonly string[];
}

/** Returns the present owner of a live object, from its annotations, labels, owner references and managers. */
export function findPresentOwner(object: JsonObject): PresentOwner {
  const deployment = readOwner(object);
  if (deployment !== undefined) return { kind: 'deployment', name: deployment };
  const namespace = getText(object, 'metadata', 'namespace');
  const release = getText(object, 'metadata', 'annotations', 'meta.helm.sh/release-name');
  if (release !== '') {
    const scope = getText(object, 'metadata', 'annotations', 'meta.helm.sh/release-namespace') || namespace;
    return { kind: 'helm', name: `${scope}/${release}` };
  }
  const labels = getObject(object, 'metadata', 'labels');
  const csv = getText(labels, 'olm.owner');
  const references = getObjects(object, 'metadata', 'ownerReferences');
  const csvReferences = references.filter(({ kind }) => kind === 'ClusterServiceVersion');
  const csvs = [csv, ...csvReferences.map((reference) => getText(reference, 'name'))].filter(Boolean);
  const scope = getText(labels, 'olm.owner.namespace') || namespace;
  const [name, ...further] = [...new Set(csvs)].map((owner) => `${scope}/${owner}`);
  if (name !== undefined) return { kind: 'olm', name, ...(further.length > 0 && { further }) };
  if (
    Object.keys(labels).some((key) => key.startsWith('operators.coreos.com/')) &&
    labels['olm.managed'] === 'true'
  )
    return { kind: 'olm', name: '' };
  const controller = references.find((reference) => reference['controller'] === true);
  if (controller !== undefined)
    return { kind: 'controller', name: `${getText(controller, 'kind')} ${getText(controller, 'name')}` };
  const managers = getObjects(object, 'metadata', 'managedFields').map((entry) => getText(entry, 'manager'));
  const hasApplied =
    getValue(object, 'metadata', 'annotations', 'kubectl.kubernetes.io/last-applied-configuration') !==
    undefined;
  const own = managers.find((manager) => manager.startsWith('kubectl'));
  if (hasApplied || own !== undefined) return { kind: 'kubectl', name: own ?? 'kubectl' };
  return { kind: 'unknown', name: managers[0] ?? '' };
}

/** A field that differs, with its managers other than opmate. */
export interface ChangedField extends FieldChange {
  managers: FieldManager[];
}

/**
 * Returns the fields in which an object would differ from the live one, without those that the API server writes.
 * Values of Secrets are masked.
 */
export function compareLive(live: JsonObject, next: JsonObject): ChangedField[] {
  const managersOf = openManagers(live);
  const [before = {}, after = {}] = maskSecrets(comparable(live), comparable(next));
  return diffFields(before, after).map((field) => ({ ...field, managers: managersOf(field.path) }));
}

function comparable(object: JsonObject): JsonObject {
  const metadata = without(
    getObject(object, 'metadata'),
    'managedFields',
    'resourceVersion',
    'generation',
    'uid',
    'creationTimestamp',
    'selfLink',
  );
  return { ...without(object, 'status'), metadata };
}
