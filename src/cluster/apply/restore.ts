import { CancelledError, OpmateError, getMessage } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { getObject } from '../../document/json-fields.js';
import {
  type ReadInventory,
  type Revision,
  dropRenders,
  withRevision,
  withoutRender,
  writeInventory,
} from '../inventory.js';
import type { Kubectl } from '../kubectl.js';
import { selectLive } from '../live.js';
import { canContainOthers, describeId, toKey, toObjectId, without } from '../objects.js';
import type { ApplyOptions, ApplyPlan, PlacedObject } from './plan-types.js';
import { removeObjects, replaceObjects } from '../delete/remove.js';

interface Reached {
  read: ReadInventory;
  /** Objects that may have been changed. */
  reached: readonly PlacedObject[];
  attempt: Revision;
}

/**
 * Rolls back a failed update: deletes new objects, and restores the others as they were read from the cluster before.
 * Nothing that the inventory stores is applied. Cannot be cancelled. Returns the error to throw.
 */
export async function restoreObjects(
  error: unknown,
  { read, reached, attempt }: Reached,
  { kubectl, plan, options: { logger } }: { kubectl: Kubectl; plan: ApplyPlan; options: ApplyOptions },
): Promise<unknown> {
  const { place, live } = plan;
  const isCancelled = error instanceof CancelledError;
  const why = isCancelled ? 'interrupted' : getMessage(error);
  logger.log('warn', `${place.name}: ${why}: restoring the previous state`);
  const problems: string[] = [];
  const fresh = reached.filter((object) => !live.has(toKey(object)));
  const kept = fresh.filter(canContainOthers).map(toObjectId);
  try {
    const removable = fresh.filter((id) => !canContainOthers(id));
    problems.push(...(await removeObjects(kubectl, removable, { isCancellable: false })).failures);
    const before = selectLive(live, reached).map(asRead);
    problems.push(...(await replaceObjects(kubectl, before, false)));
    if (problems.length === 0 && (read !== plan.read || kept.length > 0)) {
      const { inventory } = plan.read;
      const failure: Revision = { ...withoutRender(attempt), result: 'failed', reason: why };
      const revisions = withRevision(inventory.revisions, failure);
      const known = new Set(inventory.objects.map(toKey));
      const objects = [...inventory.objects, ...kept.filter((id) => !known.has(toKey(id)))];
      await writeInventory(
        kubectl,
        place,
        { ...read, inventory: { ...inventory, objects, revisions } },
        false,
      );
      await dropRenders(kubectl, place, [...inventory.revisions, attempt], revisions);
    }
  } catch (problem) {
    problems.push(getMessage(problem));
  }
  const stays = kept.length === 0 ? '' : `; left in place: ${kept.map(describeId).join(', ')}`;
  if (problems.length > 0) {
    const text = `${place.name}: ${why}; restoring the previous state failed: ${problems.join('; ')}`;
    const hint = 'fix the reported problems, then apply again';
    return new OpmateError('INVALID', text, { cause: error, hint });
  }
  logger.log('warn', `${place.name}: previous state restored${stays}`);
  if (isCancelled) return error;
  return new OpmateError('INVALID', `${place.name}: not applied, previous state restored${stays}: ${why}`, {
    cause: error,
    hint: error instanceof OpmateError ? error.hint : undefined,
  });
}

/** Returns a live object to be restored, whatever its current state. */
function asRead(object: JsonObject): JsonObject {
  const metadata = getObject(object, 'metadata');
  return {
    ...object,
    metadata: without(metadata, 'resourceVersion', 'uid', 'generation', 'creationTimestamp'),
  };
}
