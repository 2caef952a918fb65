import { defaultProbes, probeObject, type ProgressionProbe } from '../bundle/object-set/probes.js';
import { groupBy } from '../core/groups.js';
import { CancelledError, OpmateError } from '../core/errors.js';
import type { JsonObject } from '../document/json.js';
import { getObject, getObjects, getText, getValue } from '../document/json-fields.js';
import { getGroup } from '../kube/object.js';
import { type Kubectl, parseObjects } from './kubectl.js';
import { getLive } from './live.js';
import { type ObjectId, getId, toKey, toObjectId } from './objects.js';

/** An object that is not ready. */
export interface UnreadyObject extends ObjectId {
  /** Failing probes, last condition, and last event of its pods. */
  reasons: string[];
}

/** Options of waiting. */
interface WaitOptions {
  timeoutMs: number;
  now: () => Date;
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  signal?: AbortSignal | undefined;
  /** Called with the objects that are not ready, after each round with a change. */
  onProgress?: ((unready: readonly UnreadyObject[]) => void) | undefined;
}

const stepMs = 1000;
const maxMessage = 300;

/**
 * Waits until objects are ready: the probes of operator-controller hold, and for kinds that it never calls available,
 * their own status. Returns the objects that are not ready after the time-out, with reasons.
 */
export async function waitUntilReady(
  kubectl: Kubectl,
  ids: readonly ObjectId[],
  probes: readonly ProgressionProbe[],
  { timeoutMs, now, sleep, signal, onProgress }: WaitOptions,
): Promise<UnreadyObject[]> {
  const end = now().getTime() + timeoutMs;
  let reported = '';
  for (;;) {
    const unready = await findUnready(kubectl, ids, probes);
    if (unready.length === 0) return [];
    if (now().getTime() >= end) return explainUnready(kubectl, unready);
    const text = JSON.stringify(unready);
    if (text !== reported) onProgress?.(unready);
    reported = text;
    await sleep(stepMs, signal);
    if (signal?.aborted === true) throw new CancelledError();
  }
}

/** Waits until objects no longer exist. Returns those that remain after the time-out. */
export async function waitUntilGone(
  kubectl: Kubectl,
  ids: readonly ObjectId[],
  { timeoutMs, now, sleep, signal }: WaitOptions,
): Promise<ObjectId[]> {
  const end = now().getTime() + timeoutMs;
  for (;;) {
    const left = await getLive(kubectl, ids);
    const remaining = ids.filter((id) => left.has(toKey(id))).map(toObjectId);
    if (remaining.length === 0 || now().getTime() >= end) return remaining;
    await sleep(stepMs, signal);
  }
}

/** Returns the objects that are not ready, with the messages of their probes. */
export async function findUnready(
  kubectl: Kubectl,
  ids: readonly ObjectId[],
  probes: readonly ProgressionProbe[] = [],
): Promise<UnreadyObject[]> {
  const live = await getLive(kubectl, ids);
  return ids.flatMap((id) => {
    const reasons = probeReadiness(live.get(toKey(id)), probes);
    return reasons.length === 0 ? [] : [{ ...toObjectId(id), reasons }];
  });
}

/** Kinds for which the probes of operator-controller never hold, or hold at once. */
const ownChecks: Readonly<Record<string, (object: JsonObject) => string[]>> = {
  'Deployment.apps': checkDeployment,
  'StatefulSet.apps': checkStatefulSet,
  'DaemonSet.apps': checkDaemonSet,
  'Job.batch': (object) => {
    const failed = findCondition(object, 'Failed');
    return failed?.['status'] === 'True' ? [`Job failed: ${describeCondition(failed)}`] : [];
  },
  'APIService.apiregistration.k8s.io': (object) => requireCondition(object, 'Available'),
};

/**
 * Returns the reasons why an object is not ready; none if it is. (Source: probes of operator-controller, except for
 * workloads without replicas, StatefulSets, DaemonSets, Jobs and APIServices.)
 */
function probeReadiness(object: JsonObject | undefined, probes: readonly ProgressionProbe[] = []): string[] {
  if (object === undefined) return ['missing'];
  if (getText(object, 'metadata', 'deletionTimestamp') !== '') return ['being deleted'];
  const { apiVersion, kind } = getId(object);
  const own = ownChecks[`${kind}.${getGroup(apiVersion)}`];
  const { messages } = probeObject(object, [...(own === undefined ? defaultProbes : []), ...probes]);
  return [...new Set([...messages, ...(own?.(object) ?? [])])];
}

function checkDeployment(object: JsonObject): string[] {
  if (getNumber(object, 'spec', 'replicas', 1) === 0) return checkObserved(object);
  return [...new Set(probeObject(object, defaultProbes).messages)];
}

function checkStatefulSet(object: JsonObject): string[] {
  const wanted = getNumber(object, 'spec', 'replicas', 1);
  const updated = getNumber(object, 'status', 'updatedReplicas', 0);
  const ready = getNumber(object, 'status', 'readyReplicas', 0);
  // With a partition or on deletion of pods, not all of them are to be updated.
  const isOnDelete = getText(object, 'spec', 'updateStrategy', 'type') === 'OnDelete';
  const partition = Number(getValue(object, 'spec', 'updateStrategy', 'rollingUpdate', 'partition') ?? 0);
  const target = isOnDelete ? 0 : Math.max(0, wanted - partition);
  return [
    ...checkObserved(object),
    ...(updated < target ? [`${updated} of ${target} replicas updated`] : []),
    ...(ready < wanted ? [`${ready} of ${wanted} replicas ready`] : []),
  ];
}

function checkDaemonSet(object: JsonObject): string[] {
  const wanted = getNumber(object, 'status', 'desiredNumberScheduled', 0);
  const updated = getNumber(object, 'status', 'updatedNumberScheduled', 0);
  const ready = getNumber(object, 'status', 'numberReady', 0);
  const isOnDelete = getText(object, 'spec', 'updateStrategy', 'type') === 'OnDelete';
  return [
    ...checkObserved(object),
    ...(updated < wanted && !isOnDelete ? [`${updated} of ${wanted} pods updated`] : []),
    ...(ready < wanted ? [`${ready} of ${wanted} pods ready`] : []),
  ];
}

/** Requires that the controller has seen the object at all: an object that was just created has no status. */
function checkObserved(object: JsonObject): string[] {
  const generation = getNumber(object, 'metadata', 'generation', 0);
  return getNumber(object, 'status', 'observedGeneration', 0) < generation ? ['.status outdated'] : [];
}

function requireCondition(object: JsonObject, type: string): string[] {
  const condition = findCondition(object, type);
  if (condition === undefined) return [`missing condition ${type}`];
  return condition['status'] === 'True' ? [] : [describeCondition(condition)];
}

function findCondition(object: JsonObject, type: string): JsonObject | undefined {
  return getObjects(object, 'status', 'conditions').find((condition) => getText(condition, 'type') === type);
}

function describeCondition(condition: JsonObject): string {
  const [type, status, reason, message] = ['type', 'status', 'reason', 'message'].map((key) =>
    getText(condition, key),
  );
  const why = [reason, message].filter((text) => text !== '').join(': ');
  return `${type}=${status}${why === '' ? '' : ` (${why?.slice(0, maxMessage)})`}`;
}

function getNumber(object: JsonObject, part: string, field: string, missing: number): number {
  const value = getValue(object, part, field);
  return typeof value === 'number' ? value : missing;
}

/** Adds the last condition of each object, and the last event and state of its pods. */
export async function explainUnready(
  kubectl: Kubectl,
  unready: readonly UnreadyObject[],
): Promise<UnreadyObject[]> {
  const live = await getLive(kubectl, unready);
  const byNamespace = groupBy(unready, ({ namespace }) => namespace);
  const details = new Map<string, string[]>();
  for (const [namespace, objects] of byNamespace) {
    const workloads = objects.filter((id) => live.has(toKey(id)));
    if (namespace === '' || workloads.length === 0) continue;
    const [pods, events] = [
      await readAll(kubectl, 'pods', namespace),
      await readAll(kubectl, 'events', namespace),
    ];
    for (const id of workloads) {
      const object = live.get(toKey(id)) as JsonObject;
      details.set(toKey(id), describePods(id, object, pods, events));
    }
  }
  return unready.map((id) => {
    const object = live.get(toKey(id));
    const condition = object && lastFalseCondition(object);
    return {
      ...id,
      reasons: [
        ...new Set([
          ...id.reasons,
          ...(condition === undefined ? [] : [describeCondition(condition)]),
          ...(details.get(toKey(id)) ?? []),
        ]),
      ],
    };
  });
}

/** Returns the objects of a kind in a namespace; none if they cannot be read, since they only explain. */
async function readAll(kubectl: Kubectl, resource: string, namespace: string): Promise<JsonObject[]> {
  try {
    const { stdout, errors } = await kubectl.run(['get', resource, `--namespace=${namespace}`, '-o', 'json']);
    return errors.length > 0 ? [] : parseObjects(stdout);
  } catch (error) {
    if (error instanceof OpmateError && error.code !== 'CANCELLED') return [];
    throw error;
  }
}

function lastFalseCondition(object: JsonObject): JsonObject | undefined {
  const time = (condition: JsonObject): string => getText(condition, 'lastTransitionTime');
  return getObjects(object, 'status', 'conditions')
    .filter((condition) => condition['status'] !== 'True')
    .sort((a, b) => (time(a) < time(b) ? -1 : 1))
    .at(-1);
}

/** Returns the waiting container and the last event of the pods of a workload, and its own last warning. */
function describePods(
  id: ObjectId,
  object: JsonObject,
  pods: readonly JsonObject[],
  events: readonly JsonObject[],
): string[] {
  const labels = getObject(object, 'spec', 'selector', 'matchLabels');
  const keys = Object.keys(labels);
  const own =
    keys.length === 0
      ? []
      : pods.filter((pod) => keys.every((key) => getText(pod, 'metadata', 'labels', key) === labels[key]));
  const waiting = own.flatMap((pod) => {
    const name = getText(pod, 'metadata', 'name');
    return getObjects(pod, 'status', 'containerStatuses').flatMap((status) => {
      const { reason, message } = getObject(status, 'state', 'waiting');
      const why = [reason, message].filter((text) => typeof text === 'string').join(': ');
      return why === '' ? [] : [`pod ${name}: ${why.slice(0, maxMessage)}`];
    });
  });
  const names = new Set([id.name, ...own.map((pod) => getText(pod, 'metadata', 'name'))]);
  const last = events
    .filter(
      (event) => getText(event, 'type') === 'Warning' && names.has(getText(event, 'involvedObject', 'name')),
    )
    .sort((a, b) => (eventTime(a) < eventTime(b) ? -1 : 1))
    .at(-1);
  const about =
    last && `${getText(last, 'involvedObject', 'kind')} ${getText(last, 'involvedObject', 'name')}`;
  return [
    ...waiting.slice(0, 1),
    ...(last === undefined
      ? []
      : [`event of ${about}: ${getText(last, 'reason')}: ${getText(last, 'message').slice(0, maxMessage)}`]),
  ];
}

function eventTime(event: JsonObject): string {
  return (
    getText(event, 'lastTimestamp') ||
    getText(event, 'eventTime') ||
    getText(event, 'metadata', 'creationTimestamp')
  );
}
