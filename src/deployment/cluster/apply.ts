import { isDeepStrictEqual } from 'node:util';
import { type PlainObject, getGroup } from '../../kube/object.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { CancelledError, OpmateError, getMessage, throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getObject, getObjects, getValue } from '../../document/json-fields.js';
import type { Logger } from '../../core/log.js';
import type { RenderedDeployment } from '../rendered-deployment.js';
import { type Need, findForbidden, rehearse } from './access.js';
import { type Resources, discoverResources, findResource } from './discovery.js';
import {
  type InventoryPlace,
  type KeptPin,
  type ReadInventory,
  type Revision,
  currentRevision,
  dropRenders,
  inventoryName,
  loadRender,
  readInventory,
  storeRender,
  withRevision,
  withoutRender,
  writeInventory,
} from './inventory.js';
import { type Kubectl, readObjects } from './kubectl.js';
import {
  type ObjectId,
  describeId,
  holdsOthers,
  getId,
  inPhaseOrder,
  toKey,
  getPhase,
  phases,
  toStub,
  without,
} from './objects.js';

/** What of a rendered deployment reaches the cluster. */
export type Applicable = Pick<
  RenderedDeployment,
  'name' | 'installNamespace' | 'version' | 'clouds' | 'objects' | 'hash'
> & { pins: readonly KeptPin[] };

/** How a deployment is applied. */
export interface ApplyOptions {
  /** Takes over fields that others manage. */
  forceConflicts?: boolean;
  /** Deletes definitions and namespaces too, with all that is in them. */
  force?: boolean;
  /** The revision whose render this is. */
  rollbackTo?: number;
  now: () => Date;
  /** Resolves after this time, or as soon as `signal` fires. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  logger: Logger;
  signal?: AbortSignal | undefined;
}

/** What happens to an object, compared with the render before. */
export type ObjectChange = 'add' | 'take over' | 'change' | 'remove' | 'keep';

/** What applying a deployment would do. */
export interface ApplyPlan {
  deployment: Applicable;
  place: InventoryPlace;
  read: ReadInventory;
  /** What is on the cluster by now. */
  current: Revision | undefined;
  previous: readonly PlacedObject[];
  objects: readonly PlacedObject[];
  /** Objects that stay as they are left out; `keep` is what would be removed, were it not for --force. */
  changes: { id: ObjectId; change: ObjectChange }[];
  /** Why it cannot be applied, conflicts included; nothing was changed. */
  findings: Diagnostic[];
  /** Objects with fields that others manage, by their keys. */
  conflicts: Map<string, Diagnostic>;
  live: ReadonlyMap<string, JsonObject>;
  /** Leave objects with conflicts as they are. */
  isWithoutConflicts?: boolean;
}

/** What applying did. */
export interface ApplyReport {
  /** Undefined where the render was on the cluster already. */
  revision: number | undefined;
  created: ObjectId[];
  changed: ObjectId[];
  removed: ObjectId[];
  /** Orphaned definitions and namespaces. */
  kept: ObjectId[];
  unchanged: number;
}

/** An object in the namespace where it belongs. */
interface PlacedObject extends ObjectId {
  value: JsonObject;
}

/** Marks objects with the deployment that they belong to. */
export const ownerAnnotation = 'opmate.dev/deployment';
const fieldManager = 'opmate';
const establishMs = 2 * 60_000;
const establishStepMs = 500;
const deleteSeconds = 120;
/** The Secret by which a rehearsal finds out whether there can be an inventory. */
const rehearsedInventory = 'opmate-inventory';

/** The value of the annotation. */
function getOwner({ name, namespace }: InventoryPlace): string {
  return `${namespace}/${name}`;
}

/**
 * Finds out what applying a deployment would change, and everything that speaks against it: kinds that the cluster
 * lacks, objects of other deployments, permissions that the user lacks, and what the API server answers to a
 * rehearsal. Changes nothing. Throws OpmateError where the cluster cannot be asked.
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
  const owner = getOwner(place);
  const { placed: objects, findings } = placeObjects(deployment.objects, resources, place, owner);
  const previous = placeObjects(former, resources, place, owner).placed;
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
  const wanted = new Set(objects.map(toKey));
  const released = held.filter((id) => !wanted.has(toKey(id)));
  const surplus = inPhaseOrder([...new Map(released.map((id) => [toKey(id), id])).values()]).reverse();
  findings.push(...(await findForbidden(kubectl, getNeeds(plan, surplus, resources, options))));
  if (findings.length > 0) return plan;
  const there = objects.filter((object) => findResource(resources, object)?.isThere === true);
  const live = await getLive(kubectl, [
    ...there,
    ...surplus.filter((id) => findResource(resources, id)?.isThere),
  ]);
  plan.live = live;
  plan.changes = getChanges(plan, surplus, owner, options);
  findings.push(...foreignObjects(objects, live, owner));
  if (findings.length === 0) findings.push(...(await rehearsal(kubectl, plan, there, options)));
  return plan;
}

/** Puts objects where they belong, with the mark of their owner; of duplicates the last one takes precedence. */
function placeObjects(
  objects: readonly PlainObject[],
  resources: Resources,
  place: InventoryPlace,
  owner: string,
): { placed: PlacedObject[]; findings: Diagnostic[] } {
  const findings: Diagnostic[] = [];
  const placed = new Map<string, PlacedObject>();
  for (const object of objects) {
    const resource = findResource(resources, object);
    if (object.apiVersion === '') {
      findings.push(createFault('missing-field', 'apiVersion is missing', { subject: describeId(object) }));
      continue;
    }
    if (resource === undefined) {
      findings.push(
        createFault('missing-kind', `the cluster has no ${object.apiVersion} ${object.kind}`, {
          subject: describeId(object),
          hint: 'install its definition first, or omit it with --optional-kinds',
        }),
      );
      continue;
    }
    if (object.name === '') {
      findings.push(
        createFault('missing-field', 'has no name, so every run would create it again', {
          subject: object.kind,
        }),
      );
      continue;
    }
    const { isNamespaced } = resource;
    const namespace = isNamespaced ? object.namespace || place.namespace : '';
    const item = { apiVersion: object.apiVersion, kind: object.kind, namespace, name: object.name };
    placed.set(toKey(item), { ...item, value: markedAs(object.load(), namespace, owner) });
  }
  return { placed: inPhaseOrder([...placed.values()]), findings };
}

function markedAs(value: JsonObject, namespace: string, owner: string): JsonObject {
  const original = getObject(value, 'metadata');
  const metadata = without(original, 'namespace');
  const annotations = getObject(metadata, 'annotations');
  return {
    ...value,
    metadata: {
      ...metadata,
      ...(namespace !== '' && { namespace }),
      annotations: { ...annotations, [ownerAnnotation]: owner },
    },
  };
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
      .filter((id) => options.force === true || !holdsOthers(id))
      .flatMap((id) => needs(id, ['delete'])),
  ];
}

async function getLive(kubectl: Kubectl, ids: readonly ObjectId[]): Promise<Map<string, JsonObject>> {
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
    const there = live.get(key);
    const id = stripped(object);
    if (there === undefined) changes.push({ id, change: 'add' });
    else if (ownerIn(there) !== owner) changes.push({ id, change: 'take over' });
    else if (former === undefined || !isDeepStrictEqual(former.value, object.value)) {
      changes.push({ id, change: 'change' });
    }
  }
  for (const id of surplus) {
    const there = live.get(toKey(id));
    // What somebody else has taken away, or over, is no longer ours to delete.
    if (there === undefined || ownerIn(there) !== owner) continue;
    const isKept = holdsOthers(id) && (force !== true || holdsWanted(id, there, objects, place));
    changes.push({ id, change: isKept ? 'keep' : 'remove' });
  }
  return changes;
}

/** Whether removing a namespace or a definition would take away what is asked for, or the inventory. */
function holdsWanted(
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

function stripped({ apiVersion, kind, namespace, name }: ObjectId): ObjectId {
  return { apiVersion, kind, namespace, name };
}

function ownerIn({ metadata }: JsonObject): string | undefined {
  const owner = getValue(metadata, 'annotations', ownerAnnotation);
  return typeof owner === 'string' ? owner : undefined;
}

function foreignObjects(
  objects: readonly PlacedObject[],
  live: ReadonlyMap<string, JsonObject>,
  owner: string,
): Diagnostic[] {
  return objects.flatMap((object) => {
    const there = live.get(toKey(object));
    const other = there && ownerIn(there);
    if (other === undefined || other === owner) return [];
    return [
      createFault('other-owner', `belongs to the deployment ${quoteGo(other)}`, {
        subject: describeId(object),
        hint: `remove it from one of them, or remove its annotation ${ownerAnnotation}`,
      }),
    ];
  });
}

function getFlags({ forceConflicts }: ApplyOptions, validation: string): string[] {
  return [
    `--field-manager=${fieldManager}`,
    validation,
    ...(forceConflicts === true ? ['--force-conflicts'] : []),
  ];
}

/** What the API server would say, of the objects that can be tried: those whose kind, namespace and role are there. */
async function rehearsal(
  kubectl: Kubectl,
  { objects, live, place, conflicts }: ApplyPlan,
  there: readonly PlacedObject[],
  options: ApplyOptions,
): Promise<Diagnostic[]> {
  const isNew = ({ apiVersion, kind, namespace, name }: ObjectId): boolean =>
    !live.has(toKey({ apiVersion, kind, namespace, name }));
  const newOnes = new Set(objects.filter(isNew).map(toKey));
  const namespace = (name: string): string =>
    toKey({ apiVersion: 'v1', kind: 'Namespace', namespace: '', name });
  const tried = there.filter((object) => {
    if (object.namespace !== '' && newOnes.has(namespace(object.namespace))) return false;
    const { roleRef } = object.value;
    if (!isJsonObject(roleRef) || typeof roleRef['name'] !== 'string') return true;
    // Whoever may not hand out roles that are not there yet might hand out these.
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
  const findings: Diagnostic[] = errors.filter((error) => !isConflict(error)).map(inWords);
  if (!errors.some(isConflict)) return findings;
  // kubectl does not say whose conflicts they are.
  const conflicting = tried.filter((object) => !isNew(object));
  const results = await mapConcurrent(conflicting, 4, async (object) =>
    (await rehearse(kubectl, [object.value], flags)).filter(isConflict).map((error) => ({
      key: toKey(object),
      finding: {
        severity: 'error' as const,
        code: 'conflict',
        subject: describeId(object),
        problem: error,
        hint: 'add --force-conflicts to take over these fields',
      },
    })),
  );
  for (const { key, finding } of results.flat()) conflicts.set(key, finding);
  return [...findings, ...conflicts.values()];
}

function isConflict(error: string): boolean {
  return /Apply failed with \d+ conflict/.test(error);
}

function inWords(error: string): Diagnostic {
  const [, namespace] = /namespaces "([^"]+)" not found/.exec(error) ?? [];
  return createFault('refused', error, {
    ...(namespace !== undefined && { hint: `create it first: kubectl create namespace ${namespace}` }),
  });
}

/**
 * The plan without the objects that others manage fields of, where they are all that speaks against it and its render is
 * on the cluster already: one such object must not keep the others from being put back. Undefined where it has to fail.
 */
export function withoutConflicts(plan: ApplyPlan): ApplyPlan | undefined {
  const { findings, conflicts, current, deployment, read } = plan;
  const isOnCluster = current?.hash === deployment.hash && read.inventory.unfinished === undefined;
  if (!isOnCluster || findings.length > conflicts.size) return undefined;
  return { ...plan, findings: [], isWithoutConflicts: true };
}

/**
 * Does what a plan says: phase by phase, then the removals; the inventory knows of it before and after. Where that
 * fails or is cancelled, what was changed is put back as it was before, and the error says whether that succeeded.
 * Where the render is on the cluster already, it is applied again, and what had changed since is reported.
 */
export async function applyPlan(
  kubectl: Kubectl,
  plan: ApplyPlan,
  options: ApplyOptions,
): Promise<ApplyReport> {
  const { deployment, place, objects, changes, current } = plan;
  const left = plan.isWithoutConflicts === true ? plan.conflicts : new Map<string, Diagnostic>();
  const { logger, now, rollbackTo } = options;
  const flags = getFlags(options, await kubectl.validation());
  const report: ApplyReport = {
    revision: undefined,
    created: [],
    changed: [],
    removed: [],
    kept: [],
    unchanged: 0,
  };
  const before = plan.read.inventory;
  const isSame = current?.hash === deployment.hash && before.unfinished === undefined;
  const removals = changes.flatMap(({ id, change }) => (change === 'remove' ? [id] : []));
  report.kept = changes.flatMap(({ id, change }) => (change === 'keep' ? [id] : []));
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
    logger.log(
      'warn',
      `${place.name}: a run that began at ${before.unfinished.time} did not end: recovering it now`,
    );
  }
  const step = async (some: readonly PlacedObject[], isInTime: boolean): Promise<void> => {
    if (some.length === 0) return;
    reached.push(...some);
    await applyObjects(kubectl, some, flags, plan.live, report);
    if (isInTime) await waitForDefinitions(kubectl, some, options);
  };
  try {
    // Where the inventory will be must be there before it.
    const home = objects.filter(
      (object) => getPhase(object) === 'namespaces' && object.name === place.namespace && !isSame,
    );
    await step(home, false);
    if (!isSame) {
      const ids = objects.map(stripped);
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
      await step(some, true);
    }
  } catch (error) {
    if (read === plan.read && reached.length === 0) throw error;
    throw await putBack(kubectl, plan, { read, reached, attempt, error, isSame }, flags, options);
  }
  const failures = await removeAll(kubectl, removals, report);
  if (isSame && removals.length === 0) return report;
  const remaining = removals.filter((id) => !report.removed.includes(id));
  const revisions = isSame ? before.revisions : withRevision(before.revisions, attempt);
  const inventory = { objects: [...objects.map(stripped), ...report.kept, ...remaining], revisions };
  await writeInventory(kubectl, place, { ...read, inventory }, false);
  await dropRenders(kubectl, place, before.revisions, revisions);
  if (!isSame) report.revision = revision;
  if (failures.length > 0) {
    const subject = `${place.name}: applied, but not everything that is left over could be removed`;
    throw new OpmateError('INVALID', `${subject}: ${failures.join('; ')}`, {
      hint: 'run the command again to retry',
    });
  }
  return report;
}

async function applyObjects(
  kubectl: Kubectl,
  objects: readonly PlacedObject[],
  flags: readonly string[],
  live: ReadonlyMap<string, JsonObject>,
  report: Pick<ApplyReport, 'created' | 'changed' | 'unchanged'>,
): Promise<void> {
  const args = ['apply', '--server-side', ...flags, '-o', 'json', '-f', '-'];
  const text = await kubectl.expect('applying', args, {
    objects: objects.map(({ value }) => value),
    timeoutMs: 15 * 60_000,
  });
  for (const object of readObjects(text)) {
    const id = getId(object);
    const before = live.get(toKey(id));
    if (before === undefined) report.created.push(id);
    else if (resourceVersion(before) === resourceVersion(object)) report.unchanged++;
    else report.changed.push(id);
  }
}

function resourceVersion({ metadata }: JsonObject): unknown {
  return getValue(metadata, 'resourceVersion');
}

/** Waits until the API server serves what definitions define. Throws OpmateError. */
async function waitForDefinitions(
  kubectl: Kubectl,
  objects: readonly PlacedObject[],
  { signal, sleep }: ApplyOptions,
): Promise<void> {
  let waiting = objects.filter(({ kind, apiVersion }) => {
    return kind === 'CustomResourceDefinition' && getGroup(apiVersion) === 'apiextensions.k8s.io';
  });
  for (let waited = 0; waiting.length > 0; waited += establishStepMs) {
    const live = await getLive(kubectl, waiting);
    waiting = waiting.filter((object) => {
      const conditions = getConditions(live.get(toKey(object)));
      const refused = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
      if (refused !== undefined) {
        const why =
          typeof refused['message'] === 'string' ? refused['message'].slice(0, 300) : 'no reason given';
        throw new OpmateError('INVALID', `${describeId(object)}: its names are not accepted: ${why}`);
      }
      return !conditions.some(({ type, status }) => type === 'Established' && status === 'True');
    });
    const [first] = waiting;
    if (first === undefined) return;
    if (waited >= establishMs) {
      throw new OpmateError('INVALID', `${describeId(first)}: not established after ${establishMs / 1000} s`);
    }
    await sleep(establishStepMs, signal);
    throwIfCancelled(signal);
  }
}

function getConditions(object: JsonObject | undefined): JsonObject[] {
  return getObjects(object, 'status', 'conditions');
}

/** Deletes objects phase by phase, backwards. Returns what could not be done. */
async function removeAll(
  kubectl: Kubectl,
  ids: readonly ObjectId[],
  report: Pick<ApplyReport, 'removed'>,
  isCancellable = true,
): Promise<string[]> {
  const failures: string[] = [];
  for (const phase of [...phases].reverse()) {
    const some = ids.filter((id) => getPhase(id) === phase);
    if (some.length === 0) continue;
    const args = ['delete', '--ignore-not-found', `--timeout=${deleteSeconds}s`, '-o', 'name', '-f', '-'];
    const { errors } = await kubectl.run(args, { objects: some.map(toStub), isCancellable });
    failures.push(...errors);
    // Which of them are gone is known only where all are.
    if (errors.length === 0) report.removed.push(...some);
  }
  return failures;
}

interface Failed {
  read: ReadInventory;
  /** Objects that may have been changed. */
  reached: readonly PlacedObject[];
  attempt: Revision;
  error: unknown;
  isSame: boolean;
}

/**
 * Puts back what an update has changed before it failed: new objects are deleted, those of the render before are
 * applied as they were, and others are written as they were found. Nobody can cancel this. Returns the error to throw.
 */
async function putBack(
  kubectl: Kubectl,
  plan: ApplyPlan,
  { read, reached, attempt, error, isSame }: Failed,
  flags: readonly string[],
  options: ApplyOptions,
): Promise<unknown> {
  const { place, live, previous } = plan;
  // Applied once more, the same render has nothing to go back to.
  if (isSame) return error;
  const isCancelled = error instanceof CancelledError;
  const why = isCancelled ? 'interrupted' : getMessage(error);
  options.logger.log('warn', `${place.name}: ${why}: restoring the previous state`);
  const problems: string[] = [];
  const attemptTo = async (args: readonly string[], objects: readonly JsonObject[]): Promise<void> => {
    if (objects.length === 0) return;
    const { errors } = await kubectl.run(args, { objects, isCancellable: false });
    problems.push(...errors);
  };
  const before = new Map(previous.map((object) => [toKey(object), object]));
  const fresh = reached.filter((object) => !live.has(toKey(object)) && !before.has(toKey(object)));
  const removable = fresh.filter((id) => !holdsOthers(id));
  const kept = fresh.filter(holdsOthers).map(stripped);
  const again = reached.flatMap((object) => before.get(toKey(object)) ?? []);
  const existing = reached.filter((object) => live.has(toKey(object)) && !before.has(toKey(object)));
  try {
    problems.push(...(await removeAll(kubectl, removable, { removed: [] }, false)));
    await attemptTo(
      ['apply', '--server-side', ...flags, '-o', 'name', '-f', '-'],
      again.map(({ value }) => value),
    );
    await attemptTo(
      ['replace', '--validate=false', '-o', 'name', '-f', '-'],
      existing.map((object) => asFound(live.get(toKey(object)) as JsonObject)),
    );
    if (problems.length === 0) {
      const { inventory } = plan.read;
      const failed: Revision = { ...withoutRender(attempt), result: 'failed' };
      const revisions = withRevision(inventory.revisions, failed);
      const known = new Set(inventory.objects.map(toKey));
      const mended = {
        objects: [...inventory.objects, ...kept.filter((id) => !known.has(toKey(id)))],
        revisions,
        ...(inventory.unfinished !== undefined && { unfinished: inventory.unfinished }),
      };
      if (read !== plan.read || kept.length > 0) {
        await writeInventory(kubectl, place, { ...read, inventory: mended }, false);
        await dropRenders(kubectl, place, [...inventory.revisions, attempt], revisions);
      }
    }
  } catch (problem) {
    problems.push(getMessage(problem));
  }
  const stays = kept.length === 0 ? '' : `; left in place: ${kept.map(describeId).join(', ')}`;
  if (problems.length === 0) {
    options.logger.log('warn', `${place.name}: the state before is restored${stays}`);
    if (isCancelled) return error;
    return new OpmateError(
      'INVALID',
      `${place.name}: not applied, the state before is restored${stays}: ${why}`,
      {
        cause: error,
        hint: error instanceof OpmateError ? error.hint : undefined,
      },
    );
  }
  const text = `${place.name}: ${why}; and the state before could not be restored: ${problems.join('; ')}`;
  return new OpmateError('INVALID', text, {
    cause: error,
    hint: 'fix the reported problems, then apply again',
  });
}

/** A live object, to be written again whatever has become of it. */
function asFound(object: JsonObject): JsonObject {
  const metadata = getObject(object, 'metadata');
  return {
    ...without(object, 'status'),
    metadata: without(metadata, 'resourceVersion', 'uid', 'managedFields', 'generation'),
  };
}
