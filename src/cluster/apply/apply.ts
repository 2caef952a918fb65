import { groupByPhase } from '../../bundle/object-set/phases.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { getObjects, getValue } from '../../document/json-fields.js';
import { getGroup } from '../../kube/object.js';
import {
  type HeldObject,
  type DeploymentInventory,
  type ReadInventory,
  type Revision,
  dropRenders,
  storeRender,
  withRevision,
  writeInventory,
} from '../inventory.js';
import { type Kubectl, parseObjects } from '../kubectl.js';
import { getLive, isTakenOver, selectLive } from '../live.js';
import { type ObjectId, describeId, getId, toKey, toObjectId } from '../objects.js';
import type { ApplyOptions, ApplyPlan, ObjectChange, PlacedObject } from './plan-types.js';
import { getFlags } from './rehearse.js';
import { releaseObjects, removeObjects } from '../delete/remove.js';
import { restoreObjects } from './restore.js';

/** Result of applying. */
export interface ApplyReport {
  /** Undefined if the source was already applied. */
  revision: number | undefined;
  created: ObjectId[];
  changed: ObjectId[];
  removed: ObjectId[];
  /** Objects that existed before the deployment, and are no longer part of it. */
  released: ObjectId[];
  /** Orphaned definitions and namespaces. */
  kept: ObjectId[];
  /** Objects with fields that others have changed, which were not restored. */
  left: ObjectId[];
  unchanged: number;
}

/** Shared values of the steps of a run. */
interface Run {
  kubectl: Kubectl;
  plan: ApplyPlan;
  validation: string;
  options: ApplyOptions;
  report: ApplyReport;
  /** Objects that may have been changed. */
  reached: PlacedObject[];
}

const establishMs = 2 * 60_000;
const establishStepMs = 500;

/**
 * Executes a plan: phase by phase, then the removals; the inventory is updated before and after. On failure or
 * cancellation, changes are rolled back, and the error reports whether that succeeded. A source that is already on the
 * cluster is applied again, which restores what has drifted.
 */
export async function applyPlan(
  kubectl: Kubectl,
  plan: ApplyPlan,
  options: ApplyOptions,
): Promise<ApplyReport> {
  const { place, objects, isCurrent, read } = plan;
  const { logger } = options;
  const report: ApplyReport = {
    revision: undefined,
    created: [],
    changed: [],
    removed: [],
    released: [],
    unchanged: 0,
    kept: idsOf(plan, 'keep'),
    left: idsOf(plan, 'leave'),
  };
  const validation = await kubectl.validation();
  const run: Run = { kubectl, plan, validation, options, report, reached: [] };
  const left = new Set(report.left.map(toKey));
  const { unfinished } = read.inventory;
  if (unfinished !== undefined)
    logger.log('warn', `${place.name}: the run started at ${unfinished.time} was interrupted: recovering`);
  const attempt = createRevision(plan, options);
  let written = read;
  try {
    // The namespace of the inventory must exist first.
    const home = objects.filter(
      (object) => object.kind === 'Namespace' && object.name === place.namespace && !isCurrent,
    );
    await applyObjects(home, run);
    if (!isCurrent) {
      written = await beginRun(run, attempt);
      attempt.render = await storeRender(kubectl, place, plan.deployment.objects);
    }
    for (const phase of groupByPhase(
      objects.filter((object) => !home.includes(object) && !left.has(toKey(object))),
    )) {
      throwIfCancelled(options.signal);
      logger.log('debug', `${place.name}: ${phase.name}`, { objects: phase.objects.length });
      await applyObjects(phase.objects, run);
      await waitForDefinitions(phase.objects, run);
    }
  } catch (error) {
    // Applying the same source again needs no rollback.
    if (isCurrent || (written === read && run.reached.length === 0)) throw error;
    throw await restoreObjects(error, { read: written, reached: run.reached, attempt }, run);
  }
  await finishRun(run, written, attempt);
  return report;
}

function idsOf({ changes }: ApplyPlan, wanted: ObjectChange): ObjectId[] {
  return changes.flatMap(({ id, change }) => (change === wanted ? [id] : []));
}

function createRevision({ read, deployment }: ApplyPlan, { now, rollbackTo }: ApplyOptions): Revision {
  const { packageName, bundleName, version, healthChecks, hash, pins } = deployment;
  return {
    revision: Math.max(0, ...read.inventory.revisions.map((item) => item.revision)) + 1,
    time: now().toISOString(),
    result: 'applied',
    ...(packageName !== undefined && { packageName }),
    ...(bundleName !== undefined && { bundleName }),
    ...(version !== undefined && { version }),
    ...(healthChecks !== undefined && { healthChecks }),
    hash,
    pins: pins.map(({ name, type, ref, content }) => ({ name, type, ref, content })),
    ...(rollbackTo !== undefined && { rollbackTo }),
  };
}

/** Records the run in the inventory, so that the next one can complete it. */
function beginRun({ kubectl, plan }: Run, { time, hash }: Revision): Promise<ReadInventory> {
  const { place, objects, read } = plan;
  const unfinished = { time, hash, objects: objects.map(toObjectId) };
  return writeInventory(kubectl, place, { ...read, inventory: { ...read.inventory, unfinished } });
}

/** Removes and releases orphans, and records the revision. Throws OpmateError if orphans stay. */
async function finishRun(run: Run, written: ReadInventory, attempt: Revision): Promise<void> {
  const { kubectl, plan, options, report } = run;
  const { place, read, isCurrent } = plan;
  const before = read.inventory;
  const removals = idsOf(plan, 'remove');
  const releases = idsOf(plan, 'release');
  const { removed, failures } = await removeObjects(kubectl, removals);
  report.removed = removed;
  failures.push(...(await releaseObjects(kubectl, selectLive(plan.live, releases))));
  if (failures.length === 0) report.released = releases;
  if (isCurrent && removals.length + releases.length === 0) return;
  const done = new Set([...removed, ...report.released].map(toKey));
  const remaining = [...removals, ...releases].filter((id) => !done.has(toKey(id)));
  const revisions = isCurrent ? before.revisions : withRevision(before.revisions, attempt);
  const { set = before.set } = options;
  const inventory: DeploymentInventory = {
    objects: [...heldObjects(plan), ...report.kept, ...remaining],
    revisions,
    ...(set !== undefined && { set }),
  };
  await writeInventory(kubectl, place, { ...written, inventory }, false);
  await dropRenders(kubectl, place, before.revisions, revisions);
  if (!isCurrent) report.revision = attempt.revision;
  if (failures.length > 0) {
    const subject = `${place.name}: applied, but some orphaned objects were not removed`;
    throw new OpmateError('INVALID', `${subject}: ${failures.join('; ')}`, {
      hint: 'run the command again to retry',
    });
  }
}

/** Returns the objects of a plan as an inventory holds them. */
function heldObjects({ objects }: ApplyPlan): HeldObject[] {
  return objects.map((object) => {
    return { ...toObjectId(object), ...(isTakenOver(object.value) && { takenOver: true }) };
  });
}

async function applyObjects(objects: readonly PlacedObject[], run: Run): Promise<void> {
  const { kubectl, plan, validation, report } = run;
  run.reached.push(...objects);
  for (const isForced of [false, true]) {
    const some = objects.filter((object) => plan.forced.has(toKey(object)) === isForced);
    if (some.length === 0) continue;
    const args = ['apply', '--server-side', ...getFlags(validation, isForced), '-o', 'json', '-f', '-'];
    const text = await kubectl.expect('applying', args, {
      objects: some.map(({ value }) => value),
      timeoutMs: 15 * 60_000,
    });
    const getVersion = (object: JsonObject): unknown => getValue(object, 'metadata', 'resourceVersion');
    for (const object of parseObjects(text)) {
      const id = getId(object);
      const before = plan.live.get(toKey(id));
      if (before === undefined) report.created.push(id);
      else if (getVersion(before) === getVersion(object)) report.unchanged++;
      else report.changed.push(id);
    }
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
    waiting = waiting.filter((object) => !isEstablished(object, live.get(toKey(object))));
    const [first] = waiting;
    if (first === undefined) return;
    if (waited >= establishMs) {
      throw new OpmateError('INVALID', `${describeId(first)}: not established after ${establishMs / 1000} s`);
    }
    await sleep(establishStepMs, signal);
  }
}

/** Reports whether a definition is established. Throws OpmateError if its names are refused. */
function isEstablished(id: ObjectId, live: JsonObject | undefined): boolean {
  const conditions = getObjects(live, 'status', 'conditions');
  const refused = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
  if (refused !== undefined) {
    const { message } = refused;
    const why = typeof message === 'string' ? message.slice(0, 300) : 'no reason given';
    throw new OpmateError('INVALID', `${describeId(id)}: names not accepted: ${why}`);
  }
  return conditions.some(({ type, status }) => type === 'Established' && status === 'True');
}
