import { getTexts, getObject, getObjects, getText } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { groupByPhase } from '../../bundle/object-set/phases.js';
import { ownManager } from '../field-managers.js';
import type { Kubectl } from '../kubectl.js';
import { getLive, ownerAnnotation, takenOverAnnotation } from '../live.js';
import { type ObjectId, describeId, toKey, toStub, without } from '../objects.js';

/** Result of deleting objects. */
interface Removal {
  removed: ObjectId[];
  failures: string[];
}

interface RemovalOptions {
  /** Time per phase until deleted objects must be gone, in seconds; default 120. */
  timeoutSeconds?: number;
  isCancellable?: boolean;
}

const defaultTimeoutSeconds = 120;

/**
 * Deletes objects phase by phase, in reverse, and waits until they are gone. An object that stays is a failure with the
 * finalizers that it waits for; the next phase is deleted anyway, except definitions and namespaces.
 */
export async function removeObjects(
  kubectl: Kubectl,
  ids: readonly ObjectId[],
  { timeoutSeconds = defaultTimeoutSeconds, isCancellable = true }: RemovalOptions = {},
): Promise<Removal> {
  const removal: Removal = { removed: [], failures: [] };
  for (const { name, objects } of groupByPhase(ids).reverse()) {
    // They would delete what is left in them without its finalizers.
    if (removal.failures.length > 0 && (name === 'crds' || name === 'namespaces')) break;
    const args = ['delete', '--ignore-not-found', `--timeout=${timeoutSeconds}s`, '-o', 'name', '-f', '-'];
    const { errors } = await kubectl.run(args, {
      objects: objects.map(toStub),
      isCancellable,
      timeoutMs: (timeoutSeconds * objects.length + 60) * 1000,
    });
    if (errors.length === 0) {
      removal.removed.push(...objects);
      continue;
    }
    const left = await getLive(kubectl, objects);
    removal.removed.push(...objects.filter((id) => !left.has(toKey(id))));
    const waiting = objects.flatMap((id) => describeFinalizers(id, left.get(toKey(id))));
    removal.failures.push(...(waiting.length > 0 ? waiting : errors));
  }
  return removal;
}

/** Returns the finalizers that the deletion of an object waits for, as text; none if it is not being deleted. */
function describeFinalizers(id: ObjectId, object: JsonObject | undefined): string[] {
  if (object === undefined || getText(object, 'metadata', 'deletionTimestamp') === '') return [];
  const finalizers = getTexts(getObject(object, 'metadata')['finalizers']);
  return finalizers.length === 0 ? [] : [`${describeId(id)}: waits for finalizer ${finalizers.join(', ')}`];
}

/**
 * Ends the ownership of objects without deleting them: removes the annotations and the field manager of opmate, and
 * keeps all other content. Objects that changed since they were read are failures.
 */
export async function releaseObjects(kubectl: Kubectl, objects: readonly JsonObject[]): Promise<string[]> {
  if (objects.length === 0) return [];
  return replaceObjects(
    kubectl,
    objects.map((object) =>
      withoutOwner(object, (name) => name === ownManager, [ownerAnnotation, takenOverAnnotation]),
    ),
  );
}

/** Replaces objects by the content of these, field managers included. Returns the errors. */
export async function replaceObjects(
  kubectl: Kubectl,
  objects: readonly JsonObject[],
  isCancellable = true,
): Promise<string[]> {
  if (objects.length === 0) return [];
  const args = ['replace', `--field-manager=${ownManager}`, '--validate=false', '-o', 'name', '-f', '-'];
  const { errors } = await kubectl.run(args, { objects, isCancellable });
  if (errors.length > 0) return errors;
  // The first call attributes changed fields to opmate; the second changes none, and keeps the managers of the content.
  const again = objects.map((object) => {
    return { ...object, metadata: without(getObject(object, 'metadata'), 'resourceVersion') };
  });
  return (await kubectl.run(args, { objects: again, isCancellable })).errors;
}

/** Returns an object without these field managers, annotations and labels. */
export function withoutOwner(
  object: JsonObject,
  isManager: (name: string) => boolean,
  annotations: readonly string[],
  labels: readonly string[] = [],
): JsonObject {
  const metadata = getObject(object, 'metadata');
  const left = getObjects(metadata, 'managedFields').filter((entry) => !isManager(getText(entry, 'manager')));
  return {
    ...object,
    metadata: {
      ...without(metadata, 'uid', 'generation', 'creationTimestamp', 'selfLink'),
      annotations: without(getObject(metadata, 'annotations'), ...annotations),
      labels: without(getObject(metadata, 'labels'), ...labels),
      // An empty list would be replaced by the managers of the live object.
      managedFields: left.length === 0 ? [{}] : left,
    },
  };
}
