import { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { deleteInventory, writeInventory } from '../inventory.js';
import type { Kubectl } from '../kubectl.js';
import { selectLive } from '../live.js';
import type { ObjectId } from '../objects.js';
import type { DeletionPlan, DeletionStep } from './plan-delete.js';
import { releaseObjects, removeObjects } from './remove.js';

/** Result of deleting a deployment. */
export interface DeletionReport {
  removed: ObjectId[];
  released: ObjectId[];
  kept: DeletionStep[];
}

interface DeletionRun {
  now: () => Date;
  logger: Logger;
  /** Time per phase until deleted objects must be gone, in seconds. */
  timeoutSeconds?: number;
}

/**
 * Executes a deletion: custom resources, then objects by phase in reverse, then the inventory, and the namespace that
 * holds it last. Waits for finalizers. An interrupted or failed deletion is recorded, and continued by the next one.
 * Throws OpmateError if objects stay.
 */
export async function executeDelete(
  kubectl: Kubectl,
  plan: DeletionPlan,
  { now, logger, timeoutSeconds }: DeletionRun,
): Promise<DeletionReport> {
  const { place, read, steps, instances, live } = plan;
  const { inventory } = read;
  const idsOf = (change: DeletionStep['change']): ObjectId[] =>
    steps.filter((step) => step.change === change).map(({ id }) => id);
  const isHome = (id: ObjectId): boolean => id.kind === 'Namespace' && id.name === place.namespace;
  const removals = idsOf('remove');
  const unfinished = { time: now().toISOString(), hash: '', objects: [], isDeletion: true };
  await writeInventory(kubectl, place, { ...read, inventory: { ...inventory, unfinished } });
  const limits = timeoutSeconds === undefined ? {} : { timeoutSeconds };
  const removed: ObjectId[] = [];
  const failures: string[] = [];
  for (const some of [instances, removals.filter((id) => !isHome(id))]) {
    if (failures.length > 0 || some.length === 0) continue;
    logger.log('debug', `${place.name}: deleting`, { objects: some.length });
    const done = await removeObjects(kubectl, some, limits);
    removed.push(...done.removed);
    failures.push(...done.failures);
  }
  const released = idsOf('release');
  if (failures.length === 0) failures.push(...(await releaseObjects(kubectl, selectLive(live, released))));
  if (failures.length > 0) {
    throw new OpmateError('INVALID', `${place.name}: not deleted completely: ${failures.join('; ')}`, {
      hint: 'run the command again once their controllers have finished',
    });
  }
  await deleteInventory(kubectl, place, inventory);
  const home = await removeObjects(kubectl, removals.filter(isHome), limits);
  if (home.failures.length > 0)
    throw new OpmateError(
      'INVALID',
      `${place.name}: deleted, but its namespace was not: ${home.failures.join('; ')}`,
    );
  return {
    removed: [...removed, ...home.removed],
    released,
    kept: steps.filter(({ change }) => change === 'keep'),
  };
}
