import { revisionKeys } from '../../bundle/object-set/object-set.js';
import { getCollisionProtection } from '../../bundle/object-set/phases.js';
import { type ProgressionProbe, probeObject } from '../../bundle/object-set/probes.js';
import type { JsonObject } from '../../document/json.js';
import { getObject, getObjects, getText, getTexts, getValue } from '../../document/json-fields.js';
import { getAnnotation, getName, getNamespace } from '../../kube/object.js';
import { type Condition, getConditions, hasCondition, withConditions, withStatus } from './conditions.js';
import {
  type ResolvedPhase,
  SetProblem,
  checkObserved,
  checkPhase,
  checkRevision,
  checkSecrets,
  getObservedPhases,
  getProbes,
  resolvePhases,
} from './set-phases.js';
import { type SimulatedCluster, getSimulatedId, withOwners } from './simulated-cluster.js';

const teardownFinalizer = 'olm.operatorframework.io/teardown';
const revisionAnnotation = 'olm.operatorframework.io/revision';
const managedBy = { 'app.kubernetes.io/managed-by': 'olm.operatorframework.io' };

/** Brings the objects of a ClusterObjectSet to its state, and writes its status. (Source: operator-controller, boxcutter.) */
export function reconcileSet(set: JsonObject, cluster: SimulatedCluster): void {
  let current = set;
  try {
    checkSecrets(set, cluster);
    const phases = resolvePhases(set, cluster);
    const observedPhases = getObservedPhases(phases);
    checkObserved(set, observedPhases);
    current = withStatus(set, { observedPhases });
    if (getText(set, 'spec', 'lifecycleState') === 'Archived') {
      cluster.replace(archive(current, phases, cluster));
      return;
    }
    current = withFinalizer(current);
    checkRevision(current, phases, cluster);
    const failing = applyPhases(current, phases, cluster);
    if (failing === undefined) completeSet(current, cluster);
    else cluster.replace(withRollout(current, failing, cluster));
  } catch (error) {
    if (!(error instanceof SetProblem)) throw error;
    cluster.replace(withProblem(current, error, cluster));
  }
}

function withFinalizer(set: JsonObject): JsonObject {
  const metadata = getObject(set, 'metadata');
  const finalizers = new Set([...getTexts(metadata, 'finalizers'), teardownFinalizer]);
  return { ...set, metadata: { ...metadata, finalizers: [...finalizers] } };
}

function withoutFinalizer(set: JsonObject): JsonObject {
  const metadata = getObject(set, 'metadata');
  const finalizers = getTexts(metadata, 'finalizers').filter((name) => name !== teardownFinalizer);
  return { ...set, metadata: { ...metadata, finalizers } };
}

/** Applies phase by phase. Returns the message of the first object that is not available; undefined if all are. */
function applyPhases(
  set: JsonObject,
  phases: readonly ResolvedPhase[],
  cluster: SimulatedCluster,
): string | undefined {
  const probes = getProbes(set) as object[] as ProgressionProbe[];
  for (const [index, phase] of phases.entries()) {
    checkPhase(phase, cluster);
    const collisions = phase.objects.filter((object) => !applyObject(set, phase, object, cluster));
    if (collisions.length > 0) {
      const lines = collisions.map(({ value }) => `Object ${describeObject(value)}`);
      throw new SetProblem(`revision object collisions in phase ${index}\n${lines.join('\n')}`);
    }
    for (const { value } of phase.objects) {
      const live = cluster.find(getSimulatedId(value));
      const { status, messages } = probeObject(live ?? value, probes);
      if (status !== 'True') return `Object ${describeObject(value)}: ${messages.join(' and ')}`;
    }
  }
  return undefined;
}

/** `Deployment.apps/v1 NS/NAME`. */
function describeObject(object: JsonObject): string {
  return `${getText(object, 'kind')}.${getText(object, 'apiVersion')} ${getNamespace(object)}/${getName(object)}`;
}

/** Applies an object unless another one has it. Returns false for a collision. */
function applyObject(
  set: JsonObject,
  phase: ResolvedPhase,
  { value, collisionProtection }: ResolvedPhase['objects'][number],
  cluster: SimulatedCluster,
): boolean {
  const live = cluster.find(getSimulatedId(value));
  const revision = getRevision(set);
  const references = live === undefined ? [] : getObjects(live, 'metadata', 'ownerReferences');
  const controller = references.find((reference) => reference['controller'] === true);
  const uid = getText(set, 'metadata', 'uid');
  if (live !== undefined && getText(controller, 'uid') !== uid) {
    const held = getAnnotation(live, revisionAnnotation);
    const isOfSibling = isSibling(set, controller, cluster);
    if (isOfSibling && Number(held) > revision) return true;
    if (!isOfSibling || Number(held) === revision) {
      const protection = getCollisionProtection(
        getText(set, 'spec', 'collisionProtection') as never,
        phase.collisionProtection as never,
        collisionProtection as never,
      );
      const isFree = controller === undefined && held === '';
      const isAllowed = isFree ? protection !== 'Prevent' : controller !== undefined && protection === 'None';
      if (!isAllowed) return false;
    }
  }
  const own: JsonObject = {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterObjectSet',
    name: getName(set),
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  const others = references
    .filter((reference) => reference['uid'] !== uid)
    .map((reference) => (reference['controller'] === true ? { ...reference, controller: false } : reference));
  cluster.apply(withOwners(withRevision(value, set, revision), [...others, own]));
  return true;
}

function withRevision(value: JsonObject, set: JsonObject, revision: number): JsonObject {
  const metadata = getObject(value, 'metadata');
  const owner = getText(set, 'metadata', 'labels', revisionKeys.ownerName);
  return {
    ...value,
    metadata: {
      ...metadata,
      labels: { ...getObject(metadata, 'labels'), ...managedBy, [revisionKeys.ownerName]: owner },
      annotations: { ...getObject(metadata, 'annotations'), [revisionAnnotation]: String(revision) },
    },
  };
}

function getRevision(set: JsonObject): number {
  return Number(getValue(set, 'spec', 'revision') ?? 0);
}

/** Reports whether an object belongs to another revision of the same extension. */
function isSibling(set: JsonObject, controller: JsonObject | undefined, cluster: SimulatedCluster): boolean {
  if (controller === undefined || controller['kind'] !== 'ClusterObjectSet') return false;
  return listSiblings(set, cluster).some((other) => getName(other) === getText(controller, 'name'));
}

function listSiblings(set: JsonObject, cluster: SimulatedCluster): JsonObject[] {
  const owner = getText(set, 'metadata', 'labels', revisionKeys.ownerName);
  const owners = getObjects(set, 'metadata', 'ownerReferences').map((reference) => reference['uid']);
  return cluster.list('ClusterObjectSet').filter((other) => {
    if (getName(other) === getName(set)) return false;
    const same = getText(other, 'metadata', 'labels', revisionKeys.ownerName) === owner;
    const others = getObjects(other, 'metadata', 'ownerReferences').map((reference) => reference['uid']);
    return same && (owners.length === 0 || others.length === 0 || owners.some((uid) => others.includes(uid)));
  });
}

function getVersion(set: JsonObject): string {
  return getAnnotation(set, revisionKeys.bundleVersion);
}

/** Writes the status of a set whose objects are all available, and archives the revisions before it. */
function completeSet(set: JsonObject, cluster: SimulatedCluster): void {
  cluster.replace(
    withConditions(
      set,
      ['Available', 'True', 'ProbesSucceeded', 'Objects are available and pass all probes.'],
      ['Progressing', 'True', 'Succeeded', `Revision ${getVersion(set)} has rolled out.`],
      ['Succeeded', 'True', 'Succeeded', 'Revision succeeded rolling out.'],
    ),
  );
  for (const other of listSiblings(set, cluster)) {
    const isActive = getText(other, 'spec', 'lifecycleState') === 'Active';
    if (!isActive || getRevision(other) >= getRevision(set)) continue;
    cluster.replace({ ...other, spec: { ...getObject(other, 'spec'), lifecycleState: 'Archived' } });
  }
}

function withRollout(set: JsonObject, failing: string, cluster: SimulatedCluster): JsonObject {
  const message = `Revision ${getVersion(set)} is rolling out.`;
  return withConditions(
    set,
    ['Available', 'False', 'ProbeFailure', failing],
    withDeadline(set, ['Progressing', 'True', 'RollingOut', message], cluster),
  );
}

function withProblem(
  set: JsonObject,
  { reason, message }: SetProblem,
  cluster: SimulatedCluster,
): JsonObject {
  if (reason === 'Blocked') return withConditions(set, ['Progressing', 'False', reason, message]);
  const hadAvailable = getConditions(set).some(([type]) => type === 'Available');
  return withConditions(
    set,
    ...(hadAvailable ? [['Available', 'Unknown', 'Reconciling', message] as const] : []),
    withDeadline(set, ['Progressing', 'True', reason, message], cluster),
  );
}

/** Returns the condition of a set that has not rolled out by its deadline. */
function withDeadline(set: JsonObject, progressing: Condition, cluster: SimulatedCluster): Condition {
  const minutes = getValue(set, 'spec', 'progressDeadlineMinutes');
  const created = Number(getValue(set, 'metadata', 'creationSeconds') ?? 0);
  if (typeof minutes !== 'number' || hasCondition(set, 'Succeeded')) return progressing;
  if (cluster.now - created < minutes * 60) return progressing;
  const message = `Revision has not rolled out for ${minutes} minute(s). Last status: ${progressing[3]}`;
  return ['Progressing', 'False', 'ProgressDeadlineExceeded', message];
}

/** Deletes the objects that an archived set still controls, in reverse; others only lose its reference. */
function archive(set: JsonObject, phases: readonly ResolvedPhase[], cluster: SimulatedCluster): JsonObject {
  const uid = getText(set, 'metadata', 'uid');
  for (const { value } of [...phases].reverse().flatMap(({ objects }) => objects)) {
    const live = cluster.find(getSimulatedId(value));
    if (live === undefined) continue;
    const references = getObjects(live, 'metadata', 'ownerReferences');
    const own = references.find((reference) => reference['uid'] === uid);
    const isOwn = getAnnotation(live, revisionAnnotation) === String(getRevision(set));
    if (own?.['controller'] === true && isOwn) cluster.remove(getSimulatedId(live));
    else if (own !== undefined)
      cluster.replace(
        withOwners(
          live,
          references.filter((reference) => reference !== own),
        ),
      );
  }
  return withConditions(
    withoutFinalizer(set),
    ['Available', 'Unknown', 'Archived', 'revision is archived'],
    ['Progressing', 'False', 'Archived', 'revision is archived'],
  );
}
