import { gunzipSync } from 'node:zlib';
import { computePhaseDigest } from '../../bundle/object-set/phases.js';
import { isClusterKind } from '../../bundle/plain/cluster-scope.js';
import { OpmateError } from '../../core/errors.js';
import { parseGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getList, getObject, getObjects, getText, getValue } from '../../document/json-fields.js';
import { getName, getNamespace, splitApiVersion } from '../../kube/object.js';
import type { SimulatedCluster } from './simulated-cluster.js';

/** A phase of a ClusterObjectSet with its objects, those in Secrets included. */
export interface ResolvedPhase {
  name: string;
  collisionProtection: string;
  objects: { value: JsonObject; collisionProtection: string }[];
}

/** A problem that stops a set, in the words of operator-controller; it is tried again unless it is `Blocked`. */
export class SetProblem extends Error {
  readonly reason: 'Retrying' | 'Blocked';

  constructor(message: string, reason: SetProblem['reason'] = 'Retrying') {
    super(message);
    this.reason = reason;
  }
}

/** Returns the phases of a set. Throws SetProblem for an object that its Secret does not have. */
export function resolvePhases(set: JsonObject, cluster: SimulatedCluster): ResolvedPhase[] {
  return getObjects(set, 'spec', 'phases').map((phase) => {
    const name = getText(phase, 'name');
    return {
      name,
      collisionProtection: getText(phase, 'collisionProtection'),
      objects: getObjects(phase, 'objects').map((item) => {
        const { ref } = item;
        const value = isJsonObject(ref) ? readReference(ref, name, cluster) : getObject(item, 'object');
        return { value, collisionProtection: getText(item, 'collisionProtection') };
      }),
    };
  });
}

function readReference(ref: JsonObject, phase: string, cluster: SimulatedCluster): JsonObject {
  const [name, namespace, key] = [getText(ref, 'name'), getText(ref, 'namespace'), getText(ref, 'key')];
  const place = `resolving ref in phase ${quoteGo(phase)}`;
  const secret = cluster.find({ kind: 'Secret', namespace, name });
  const title = `Secret ${namespace}/${name}`;
  if (secret === undefined)
    throw new SetProblem(`${place}: getting ${title}: secrets ${quoteGo(name)} not found`);
  const data = readSecretKey(secret, key);
  if (data === undefined) throw new SetProblem(`${place}: key ${quoteGo(key)} not found in ${title}`);
  const text = (isGzip(data) ? gunzipSync(data, { maxOutputLength: maxUnpacked }) : data).toString();
  try {
    const value = parseGoJson(text);
    return isJsonObject(value) ? value : {};
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw new SetProblem(
      `${place}: unmarshaling object from key ${quoteGo(key)} in ${title}: ${error.problem}`,
    );
  }
}

const maxUnpacked = 10 * 1024 * 1024;

function isGzip(data: Buffer): boolean {
  return data[0] === 0x1f && data[1] === 0x8b;
}

function readSecretKey(secret: JsonObject, key: string): Buffer | undefined {
  const [packed, text] = [getValue(secret, 'data', key), getValue(secret, 'stringData', key)];
  if (typeof text === 'string') return Buffer.from(text);
  return typeof packed === 'string' ? Buffer.from(packed, 'base64') : undefined;
}

/** Throws SetProblem for referenced Secrets that can be changed. */
export function checkSecrets(set: JsonObject, cluster: SimulatedCluster): void {
  const items = getObjects(set, 'spec', 'phases').flatMap((phase) => getObjects(phase, 'objects'));
  const names = items.flatMap(({ ref }) => {
    const id = { kind: 'Secret', namespace: getText(ref, 'namespace'), name: getText(ref, 'name') };
    const secret = cluster.find(id);
    return secret === undefined || secret['immutable'] === true ? [] : [`${id.namespace}/${id.name}`];
  });
  if (names.length === 0) return;
  const problem =
    'the following secrets are not immutable (referenced secrets must have immutable set to true)';
  throw new SetProblem(`${problem}: ${[...new Set(names)].join(', ')}`, 'Blocked');
}

/** Returns the phases with their digests, as the status has them. */
export function getObservedPhases(phases: readonly ResolvedPhase[]): { name: string; digest: string }[] {
  return phases.map(({ name, objects }) => {
    return {
      name,
      digest: computePhaseDigest(
        name,
        objects.map(({ value }) => value),
      ),
    };
  });
}

/** Throws SetProblem where phases differ from those that were observed first. */
export function checkObserved(set: JsonObject, current: ReturnType<typeof getObservedPhases>): void {
  const stored = new Map(
    getObjects(set, 'status', 'observedPhases').map((phase) => [
      getText(phase, 'name'),
      getText(phase, 'digest'),
    ]),
  );
  if (stored.size === 0) return;
  if (stored.size !== current.length) {
    const counts = `expected ${stored.size} phases, got ${current.length}`;
    throw new SetProblem(`number of phases has changed (${counts})`, 'Blocked');
  }
  const changed = current.flatMap(({ name, digest }) => {
    const before = stored.get(name);
    const isSame = before === undefined || before === digest;
    return isSame ? [] : [`phase ${quoteGo(name)} (expected digest ${before}, got ${digest})`];
  });
  if (changed.length === 0) return;
  throw new SetProblem(
    `resolved content of ${changed.length} phase(s) has changed: ${changed.join('; ')}; a referenced object source may have been deleted and recreated with different content`,
    'Blocked',
  );
}

/** Returns an object as the engine writes it: `/v1, Kind=ConfigMap NS/a`. */
function describeObject(object: JsonObject): string {
  const { group, version } = splitApiVersion(getText(object, 'apiVersion'));
  const name = [getNamespace(object), getName(object)].filter(Boolean).join('/');
  return `${group}/${version}, Kind=${getText(object, 'kind')} ${name}`;
}

/** Metadata that objects of a set must not have. */
const forbidden = ['uid', 'resourceVersion', 'generation', 'generateName', 'finalizers', 'ownerReferences'];

/** Throws SetProblem for kinds that the cluster lacks, duplicate objects, and metadata that only a cluster writes. */
export function checkRevision(
  set: JsonObject,
  phases: readonly ResolvedPhase[],
  cluster: SimulatedCluster,
): void {
  const all = phases.flatMap((phase) => phase.objects.map(({ value }) => ({ phase: phase.name, value })));
  for (const { value } of all) {
    const [apiVersion, kind] = [getText(value, 'apiVersion'), getText(value, 'kind')];
    if (!isKnown(apiVersion, kind, cluster))
      throw new SetProblem(
        `establish watch: no matches for kind ${quoteGo(kind)} in version ${quoteGo(apiVersion)}`,
      );
  }
  const revision = getValue(set, 'spec', 'revision');
  const refuse = (phase: string, value: JsonObject, problem: string): never => {
    const subject = `revision ${quoteGo(getName(set))} (${Number(revision)})`;
    throw new SetProblem(
      `revision validation error: ${subject}: phase ${quoteGo(phase)}: ${describeObject(value)}: ${problem}`,
    );
  };
  for (const { phase, value } of all) {
    const metadata = getObject(value, 'metadata');
    const field = forbidden.find((name) => metadata[name] !== undefined);
    if (field !== undefined) refuse(phase, value, `metadata.${field}: Forbidden: must be empty`);
  }
  const seen = new Map<string, string[]>();
  for (const { phase, value } of all) {
    const key = describeObject(value);
    const before = seen.get(key);
    if (before === undefined) seen.set(key, [phase]);
    else
      refuse(
        phase,
        value,
        `duplicate object found in phases: ${[...new Set([...before, phase])].join(', ')}`,
      );
  }
}

/** Reports whether a cluster has a kind: that of a definition, or one of Kubernetes. */
function isKnown(apiVersion: string, kind: string, cluster: SimulatedCluster): boolean {
  const { group, version } = splitApiVersion(apiVersion);
  if (!group.includes('.') || group.endsWith('.k8s.io')) return true;
  return cluster.list('CustomResourceDefinition').some((definition) => {
    const versions = getObjects(definition, 'spec', 'versions').map((item) => getText(item, 'name'));
    return (
      getText(definition, 'spec', 'group') === group &&
      getText(definition, 'spec', 'names', 'kind') === kind &&
      versions.includes(version)
    );
  });
}

/** Throws SetProblem for objects of a phase that the API server would refuse. */
export function checkPhase({ objects }: ResolvedPhase, cluster: SimulatedCluster): void {
  for (const { value } of objects) {
    const kind = getText(value, 'kind');
    const namespace = getNamespace(value);
    if (namespace !== '' && !cluster.hasNamespace(namespace))
      throw new SetProblem(
        `reconciling object: validating: ${describeObject(value)}: namespaces ${quoteGo(namespace)} not found`,
      );
    if (getNamespace(value) === '' && !isClusterKind(kind))
      throw new SetProblem(
        'reconciling object: validating: an empty namespace may not be set during creation',
      );
    const { data } = value;
    const texts = ['ConfigMap', 'Secret'].includes(kind) && isJsonObject(data) ? Object.entries(data) : [];
    const wrong = texts.find(([, text]) => typeof text !== 'string');
    if (wrong !== undefined) {
      const name = [getNamespace(value), getName(value)].filter(Boolean).join('/');
      const type = `${splitApiVersion(getText(value, 'apiVersion')).group}/v1, Kind=${kind}`;
      throw new SetProblem(
        `reconciling object: validating: ${describeObject(value)}: failed to create typed patch object (${name}; ${type}): .data.${wrong[0]}: expected string, got &value.valueUnstructured{}`,
      );
    }
  }
}

/** Returns the probes of a set. */
export function getProbes(set: JsonObject): JsonObject[] {
  return getList(set, 'spec', 'progressionProbes').filter(isJsonObject);
}
