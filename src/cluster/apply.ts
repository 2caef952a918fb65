import { type Diagnostic } from '../core/diagnostic.js';
import { CancelledError, OpmateError, getMessage, throwIfCancelled } from '../core/errors.js';
import type { JsonObject } from '../document/json.js';
import { getObject, getObjects, getValue } from '../document/json-fields.js';
import { getGroup } from '../kube/object.js';
import {
  type ReadInventory,
  type Revision,
  dropRenders,
  storeRender,
  withRevision,
  withoutRender,
  writeInventory,
} from './inventory.js';
import { type Kubectl, readObjects } from './kubectl.js';
import {
  type ObjectId,
  canContainOthers,
  describeId,
  getId,
  getPhase,
  phases,
  toKey,
  toStub,
  without,
} from './objects.js';
import {
  type ApplyOptions,
  type ApplyPlan,
  type PlacedObject,
  getFlags,
  getLive,
  toObjectId,
} from './plan-apply.js';

/** Result of applying. */
export interface ApplyReport {
  /** Undefined if the render was already on the cluster. */
  revision: number | undefined;
  created: ObjectId[];
  changed: ObjectId[];
  removed: ObjectId[];
  /** Orphaned definitions and namespaces. */
  kept: ObjectId[];
  unchanged: number;
}

/** Shared values of the steps of a run. */
interface Run {
  kubectl: Kubectl;
  plan: ApplyPlan;
  /** Flags of server-side apply. */
  flags: readonly string[];
  options: ApplyOptions;
  report: ApplyReport;
}

const establishMs = 2 * 60_000;
const establishStepMs = 500;
const deleteSeconds = 120;

/**
 * Executes a plan: phase by phase, then the removals; the inventory is updated before and after. On failure or
 * cancellation, changes are rolled back, and the error reports whether that succeeded. A render that is already on
 * the cluster is applied again, and drift is reported.
 */
export async function applyPlan(
  kubectl: Kubectl,
  plan: ApplyPlan,
  options: ApplyOptions,
): Promise<ApplyReport> {
  const { deployment, place, objects, changes, current } = plan;
  const left = plan.isWithoutConflicts === true ? plan.conflicts : new Map<string, Diagnostic>();
  const { logger, now, rollbackTo } = options;
  const idsOf = (wanted: string): ObjectId[] =>
    changes.flatMap(({ id, change }) => (change === wanted ? [id] : []));
  const report: ApplyReport = {
    ...{ revision: undefined, created: [], changed: [], removed: [], unchanged: 0 },
    kept: idsOf('keep'),
  };
  const run: Run = { kubectl, plan, flags: getFlags(options, await kubectl.validation()), options, report };
  const before = plan.read.inventory;
  const isSame = current?.hash === deployment.hash && before.unfinished === undefined;
  let read = plan.read;
  const revision = Math.max(0, ...before.revisions.map((item) => item.revision)) + 1;
  const attempt: Revision = {
    revision,
    time: now().toISOString(),
    result: 'applied',
    ...(deployment.version !== undefined && { version: deployment.version }),
    hash: deployment.hash,
    pins: deployment.pins.map(({ name, type, ref, content }) => ({ name, type, ref, content })),
    ...(rollbackTo !== undefined && { rollbackTo }),
  };
  const reached: PlacedObject[] = [];
  if (before.unfinished !== undefined) {
    const { time } = before.unfinished;
    logger.log('warn', `${place.name}: the run started at ${time} was interrupted: recovering`);
  }
  const step = async (some: readonly PlacedObject[]): Promise<void> => {
    if (some.length === 0) return;
    reached.push(...some);
    await applyObjects(some, run);
  };
  try {
    // The namespace of the inventory must exist first.
    const home = objects.filter(
      (object) => getPhase(object) === 'namespaces' && object.name === place.namespace && !isSame,
    );
    await step(home);
    if (!isSame) {
      const ids = objects.map(toObjectId);
      const unfinished = { time: attempt.time, hash: deployment.hash, objects: ids };
      read = await writeInventory(kubectl, place, { ...read, inventory: { ...before, unfinished } });
      attempt.render = await storeRender(kubectl, place, deployment.objects);
    }
    for (const phase of phases) {
      throwIfCancelled(options.signal);
      const some = objects.filter(
        (object) => getPhase(object) === phase && !home.includes(object) && !left.has(toKey(object)),
      );
      if (some.length > 0) logger.log('debug', `${place.name}: ${phase}`, { objects: some.length });
      await step(some);
      await waitForDefinitions(some, run);
    }
  } catch (error) {
    // Applying the same render again needs no rollback.
    if (isSame || (read === plan.read && reached.length === 0)) throw error;
    throw await putBack(error, { read, reached, attempt }, run);
  }
  const removals = idsOf('remove');
  const { removed, failures } = await removeAll(kubectl, removals);
  report.removed = removed;
  if (isSame && removals.length === 0) return report;
  const remaining = removals.filter((id) => !removed.includes(id));
  const revisions = isSame ? before.revisions : withRevision(before.revisions, attempt);
  const inventory = { objects: [...objects.map(toObjectId), ...report.kept, ...remaining], revisions };
  await writeInventory(kubectl, place, { ...read, inventory }, false);
  await dropRenders(kubectl, place, before.revisions, revisions);
  if (!isSame) report.revision = revision;
  if (failures.length > 0) {
    const subject = `${place.name}: applied, but some orphaned objects were not removed`;
    throw new OpmateError('INVALID', `${subject}: ${failures.join('; ')}`, {
      hint: 'run the command again to retry',
    });
  }
  return report;
}

async function applyObjects(
  objects: readonly PlacedObject[],
  { kubectl, plan: { live }, flags, report }: Run,
): Promise<void> {
  const args = ['apply', '--server-side', ...flags, '-o', 'json', '-f', '-'];
  const text = await kubectl.expect('applying', args, {
    objects: objects.map(({ value }) => value),
    timeoutMs: 15 * 60_000,
  });
  const getVersion = (object: JsonObject): unknown => getValue(object, 'metadata', 'resourceVersion');
  for (const object of readObjects(text)) {
    const id = getId(object);
    const before = live.get(toKey(id));
    if (before === undefined) report.created.push(id);
    else if (getVersion(before) === getVersion(object)) report.unchanged++;
    else report.changed.push(id);
  }
}

/** Waits until the API server serves new definitions. Throws OpmateError. */
async function waitForDefinitions(
  objects: readonly PlacedObject[],
  { kubectl, options: { signal, sleep } }: Run,
): Promise<void> {
  let waiting = objects.filter(({ kind, apiVersion }) => {
    return kind === 'CustomResourceDefinition' && getGroup(apiVersion) === 'apiextensions.k8s.io';
  });
  for (let waited = 0; waiting.length > 0; waited += establishStepMs) {
    const live = await getLive(kubectl, waiting);
    waiting = waiting.filter((object) => {
      const conditions = getObjects(live.get(toKey(object)), 'status', 'conditions');
      const refused = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
      if (refused !== undefined) {
        const { message } = refused;
        const why = typeof message === 'string' ? message.slice(0, 300) : 'no reason given';
        throw new OpmateError('INVALID', `${describeId(object)}: names not accepted: ${why}`);
      }
      return !conditions.some(({ type, status }) => type === 'Established' && status === 'True');
    });
    const [first] = waiting;
    if (first === undefined) return;
    if (waited >= establishMs) {
      throw new OpmateError('INVALID', `${describeId(first)}: not established after ${establishMs / 1000} s`);
    }
    await sleep(establishStepMs, signal);
  }
}

/** Deletes objects phase by phase, in reverse. */
async function removeAll(
  kubectl: Kubectl,
  ids: readonly ObjectId[],
  isCancellable = true,
): Promise<{ removed: ObjectId[]; failures: string[] }> {
  const removed: ObjectId[] = [];
  const failures: string[] = [];
  for (const phase of [...phases].reverse()) {
    const some = ids.filter((id) => getPhase(id) === phase);
    if (some.length === 0) continue;
    const args = ['delete', '--ignore-not-found', `--timeout=${deleteSeconds}s`, '-o', 'name', '-f', '-'];
    const { errors } = await kubectl.run(args, { objects: some.map(toStub), isCancellable });
    failures.push(...errors);
    // Which of them are deleted is known only when all are.
    if (errors.length === 0) removed.push(...some);
  }
  return { removed, failures };
}

interface Reached {
  read: ReadInventory;
  /** Objects that may have been changed. */
  reached: readonly PlacedObject[];
  attempt: Revision;
}

/**
 * Rolls back a failed update: deletes new objects, applies those of the last render again, and restores others as
 * they were. Cannot be cancelled. Returns the error to throw.
 */
async function putBack(
  error: unknown,
  { read, reached, attempt }: Reached,
  { kubectl, plan, flags, options: { logger } }: Run,
): Promise<unknown> {
  const { place, live, previous } = plan;
  const isCancelled = error instanceof CancelledError;
  const why = isCancelled ? 'interrupted' : getMessage(error);
  logger.log('warn', `${place.name}: ${why}: restoring the previous state`);
  const problems: string[] = [];
  const attemptTo = async (args: readonly string[], objects: readonly JsonObject[]): Promise<void> => {
    if (objects.length === 0) return;
    const call = { objects, isCancellable: false };
    problems.push(...(await kubectl.run([...args, '-o', 'name', '-f', '-'], call)).errors);
  };
  const before = new Map(previous.map((object) => [toKey(object), object]));
  const fresh = reached.filter((object) => !live.has(toKey(object)) && !before.has(toKey(object)));
  const removable = fresh.filter((id) => !canContainOthers(id));
  const kept = fresh.filter(canContainOthers).map(toObjectId);
  const again = reached.flatMap((object) => before.get(toKey(object)) ?? []);
  const existing = reached.filter((object) => live.has(toKey(object)) && !before.has(toKey(object)));
  try {
    problems.push(...(await removeAll(kubectl, removable, false)).failures);
    await attemptTo(
      ['apply', '--server-side', ...flags],
      again.map(({ value }) => value),
    );
    await attemptTo(
      ['replace', '--validate=false'],
      existing.map((object) => asFound(live.get(toKey(object)) as JsonObject)),
    );
    if (problems.length === 0 && (read !== plan.read || kept.length > 0)) {
      const { inventory } = plan.read;
      const revisions = withRevision(inventory.revisions, { ...withoutRender(attempt), result: 'failed' });
      const known = new Set(inventory.objects.map(toKey));
      const objects = [...inventory.objects, ...kept.filter((id) => !known.has(toKey(id)))];
      const mended = { ...inventory, objects, revisions };
      await writeInventory(kubectl, place, { ...read, inventory: mended }, false);
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
function asFound(object: JsonObject): JsonObject {
  const metadata = getObject(object, 'metadata');
  return {
    ...without(object, 'status'),
    metadata: without(metadata, 'resourceVersion', 'uid', 'managedFields', 'generation'),
  };
}
