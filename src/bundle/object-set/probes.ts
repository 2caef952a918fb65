import { isDeepStrictEqual } from 'node:util';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../document/json.js';
import { splitApiVersion } from '../../kube/object.js';
import { getLabels, meetsSelector, selectorFault } from '../../kube/label-selector.js';

/** A probe of `spec.progressionProbes` of a ClusterObjectSet. */
export interface ProgressionProbe {
  selector:
    { type: 'GroupKind'; groupKind: { group: string; kind: string } } | { type: 'Label'; label: JsonObject };
  /** All of them must hold. */
  assertions: readonly ProbeAssertion[];
}

type ProbeAssertion =
  | { type: 'ConditionEqual'; conditionEqual: { type: string; status: string } }
  | { type: 'FieldsEqual'; fieldsEqual: { fieldA: string; fieldB: string } }
  | { type: 'FieldValue'; fieldValue: { fieldPath: string; value: string } };

/** Result of probing an object. */
interface ProbeResult {
  status: 'True' | 'False' | 'Unknown';
  /** Reasons in the words of operator-controller; none if the status is `True`. */
  messages: string[];
}

function probeKind(group: string, kind: string, ...assertions: readonly ProbeAssertion[]): ProgressionProbe {
  return { selector: { type: 'GroupKind', groupKind: { group, kind } }, assertions };
}

function requireCondition(type: string): ProbeAssertion {
  return { type: 'ConditionEqual', conditionEqual: { type, status: 'True' } };
}

function requirePhase(value: string): ProbeAssertion {
  return { type: 'FieldValue', fieldValue: { fieldPath: 'status.phase', value } };
}

const allReplicasUpdated: ProbeAssertion = {
  type: 'FieldsEqual',
  fieldsEqual: { fieldA: 'status.updatedReplicas', fieldB: 'status.replicas' },
};

/** Probes that operator-controller writes into every ClusterObjectSet, in its order. */
export const defaultProbes: readonly ProgressionProbe[] = [
  probeKind('apiextensions.k8s.io', 'CustomResourceDefinition', requireCondition('Established')),
  probeKind('cert-manager.io', 'Certificate', requireCondition('Ready')),
  probeKind('cert-manager.io', 'Issuer', requireCondition('Ready')),
  probeKind('', 'Namespace', requirePhase('Active')),
  probeKind('', 'PersistentVolumeClaim', requirePhase('Bound')),
  probeKind('apps', 'StatefulSet', allReplicasUpdated, requireCondition('Available')),
  probeKind('apps', 'Deployment', allReplicasUpdated, requireCondition('Available')),
];

/**
 * Probes an object of a cluster as operator-controller does. An object that no probe selects passes unless its
 * `status.observedGeneration` is outdated. Throws OpmateError INVALID for unknown kinds of selectors and assertions.
 */
export function probeObject(
  object: JsonObject,
  probes: readonly ProgressionProbe[] = defaultProbes,
): ProbeResult {
  const runs = probes.map((probe) => createProbe(probe));
  return combine(runs.map((run) => (isOutdated(object) ? unknown('.status outdated') : run(object))));
}

function isOutdated(object: JsonObject): boolean {
  const observed = getValue(object, 'status', 'observedGeneration');
  return Number.isInteger(observed) && observed !== getGeneration(object);
}

function getGeneration(object: JsonObject): JsonValue {
  const generation = getValue(object, 'metadata', 'generation');
  return Number.isInteger(generation) ? (generation as number) : 0;
}

const passed: ProbeResult = { status: 'True', messages: [] };

function failed(message: string): ProbeResult {
  return { status: 'False', messages: [message] };
}

function unknown(message: string): ProbeResult {
  return { status: 'Unknown', messages: [message] };
}

/** Unknown takes precedence over False, and False over True; only messages of that status are kept. */
function combine(results: readonly ProbeResult[]): ProbeResult {
  for (const status of ['Unknown', 'False'] as const) {
    const matching = results.filter((result) => result.status === status);
    if (matching.length > 0) return { status, messages: matching.flatMap(({ messages }) => messages) };
  }
  return passed;
}

function createProbe({ selector, assertions }: ProgressionProbe): (object: JsonObject) => ProbeResult {
  const checks = assertions.map(createCheck);
  const selects = createSelector(selector);
  return (object) => (selects(object) ? combine(checks.map((check) => check(object))) : passed);
}

function createSelector(selector: ProgressionProbe['selector']): (object: JsonObject) => boolean {
  if (selector.type === 'GroupKind') {
    const { group, kind } = selector.groupKind;
    return (object) =>
      getText(object, 'kind') === kind && splitApiVersion(getText(object, 'apiVersion')).group === group;
  }
  if (selector.type === 'Label') {
    const fault = selectorFault(selector.label);
    if (fault !== undefined)
      throw new OpmateError('INVALID', `invalid label selector in progressionProbe: ${fault}`);
    return (object) => meetsSelector(getLabels(object), selector.label);
  }
  const { type } = selector as { type: string };
  throw new OpmateError('INVALID', `unknown progressionProbe selector type: ${type}`);
}

function createCheck(assertion: ProbeAssertion): (object: JsonObject) => ProbeResult {
  switch (assertion.type) {
    case 'ConditionEqual':
      return (object) => checkCondition(object, assertion.conditionEqual);
    case 'FieldsEqual':
      return (object) => checkFieldsEqual(object, assertion.fieldsEqual);
    case 'FieldValue':
      return (object) => checkFieldValue(object, assertion.fieldValue);
    default: {
      const { type } = assertion as { type: string };
      throw new OpmateError('INVALID', `unknown progressionProbe assertion probe type: ${type}`);
    }
  }
}

function checkCondition(object: JsonObject, wanted: { type: string; status: string }): ProbeResult {
  const conditions = getValue(object, 'status', 'conditions');
  const name = `.status.condition["${wanted.type}"]`;
  if (conditions === undefined) return unknown('missing .status.conditions');
  if (!Array.isArray(conditions)) return unknown('malformed .status.conditions');
  for (const condition of conditions) {
    if (!isJsonObject(condition)) return unknown('malformed .status.conditions');
    if (getValue(condition, 'type') !== wanted.type) continue;
    const observed = getValue(condition, 'observedGeneration');
    if (Number.isInteger(observed) && observed !== getGeneration(object)) return unknown(`${name} outdated`);
    const status = getValue(condition, 'status');
    return status === wanted.status ? passed : failed(`${name} is ${showStatus(status)}`);
  }
  return unknown(`missing ${name}`);
}

/** Returns a status as Go formats it; for values that are no strings, an approximation. */
function showStatus(status: JsonValue | undefined): string {
  if (typeof status === 'string') return status;
  if (status === undefined || status === null) return '%!s(<nil>)';
  return `%!s(${getGoType(status)}=${showValue(status)})`;
}

function checkFieldsEqual(
  object: JsonObject,
  { fieldA, fieldB }: { fieldA: string; fieldB: string },
): ProbeResult {
  const values: JsonValue[] = [];
  for (const field of [fieldA, fieldB]) {
    const { value } = readField(object, field);
    if (value === undefined) return failed(`"${field}" missing`);
    values.push(value);
  }
  const [a = null, b = null] = values;
  if (isDeepStrictEqual(a, b)) return passed;
  return failed(`"${fieldA}" != "${fieldB}" expected: ${encodeSorted(a)} got: ${encodeSorted(b)}`);
}

function checkFieldValue(
  object: JsonObject,
  { fieldPath, value: wanted }: { fieldPath: string; value: string },
): ProbeResult {
  const { value, error } = readField(object, fieldPath);
  const key = quoteGo(fieldPath);
  if (error !== undefined) return failed(`error locating key ${key}; ${error}`);
  if (value === undefined) return failed(`missing key: ${key}`);
  if (value === wanted) return passed;
  const shown = `expected: ${encodeSorted(wanted)} got: ${encodeSorted(value)}`;
  return failed(`value at key ${key} != ${quoteGo(wanted)}; ${shown}`);
}

function encodeSorted(value: JsonValue): string {
  return encodeGoJson(sortKeysDeep(value), { escapeHtml: true });
}

/** Reads a path of keys joined by dots; a parent that is neither object nor null is an error. */
function readField(object: JsonObject, fieldPath: string): { value?: JsonValue | undefined; error?: string } {
  const keys = fieldPath.replace(/^\.+|\.+$/g, '').split('.');
  let current: JsonValue = object;
  for (const [index, key] of keys.entries()) {
    if (current === null) return {};
    if (!isJsonObject(current)) {
      const path = keys.slice(0, index + 1).join('.');
      const type = getGoType(current);
      const actual = `${showValue(current)} is of the type ${type}, expected map[string]interface{}`;
      return { error: `.${path} accessor error: ${actual}` };
    }
    if (!Object.hasOwn(current, key)) return {};
    current = current[key] as JsonValue;
  }
  return { value: current };
}

/** Returns the type that Go's unstructured objects have for a value. */
function getGoType(value: JsonValue): string {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint' || Number.isInteger(value)) return 'int64';
  if (typeof value === 'number') return 'float64';
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}';
}

/** Returns a value as Go's `%v` formats it. */
function showValue(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(showValue).join(' ')}]`;
  if (isJsonObject(value)) {
    const sorted = sortKeysDeep(value) as JsonObject;
    return `map[${Object.entries(sorted)
      .map(([key, item]) => `${key}:${showValue(item)}`)
      .join(' ')}]`;
  }
  return value === null ? '<nil>' : String(value);
}
