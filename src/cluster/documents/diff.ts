import { isDeepStrictEqual } from 'node:util';
import { type PlainObject, compareObjects, getGroup } from '../../kube/object.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { sortKeysDeep } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { diffLines } from '../../core/text/line-diff.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';
import { getObject, getValue } from '../../document/json-fields.js';
import type { ObjectId } from '../objects.js';

/** A changed field; missing values are undefined. */
export interface FieldChange {
  /** Path: `spec.template.spec.containers[name=manager].image`. */
  path: string;
  old?: JsonValue;
  new?: JsonValue;
}

/** A changed object. */
export interface ChangedObject extends ObjectId {
  action: 'added' | 'removed' | 'changed';
  /** A definition is removed, and with it all objects of its kind. */
  removesDefinition: boolean;
  /** Changed fields of a changed object. */
  fields: FieldChange[];
  /** Change of its YAML, as hunks of a unified diff. */
  diff: string;
}

/** Returns the differences between objects, sorted by kind, namespace and name. */
export function diffObjects(
  older: readonly PlainObject[],
  newer: readonly PlainObject[],
  options: CancelOptions = {},
): ChangedObject[] {
  const [before, after] = [byKey(older), byKey(newer)];
  const changes: ChangedObject[] = [];
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    throwIfCancelled(options.signal);
    const change = compare(before.get(key), after.get(key));
    if (change !== undefined) changes.push(change);
  }
  return changes.sort((a, b) => compareObjects(a, b) || compareBytes(a.apiVersion, b.apiVersion));
}

/** Returns objects by identity, independent of API version. */
function byKey(objects: readonly PlainObject[]): Map<string, PlainObject> {
  const result = new Map<string, PlainObject>();
  for (const object of objects) {
    const { apiVersion, kind, namespace, name } = object;
    const key = [getGroup(apiVersion), kind, namespace, name];
    // Objects with generated names, and duplicates, are distinguished by order.
    for (let index = 0; ; index++) {
      const text = JSON.stringify([...key, index]);
      if (result.has(text)) continue;
      result.set(text, object);
      break;
    }
  }
  return result;
}

function compare(older: PlainObject | undefined, newer: PlainObject | undefined): ChangedObject | undefined {
  const object = newer ?? older;
  if (object === undefined) return undefined;
  const loaded = [older?.load(), newer?.load()] as const;
  if (isDeepStrictEqual(...loaded)) return undefined;
  const [before, after] = maskSecrets(...loaded);
  const { apiVersion, kind, namespace, name } = object;
  const action = older === undefined ? 'added' : newer === undefined ? 'removed' : 'changed';
  return {
    action,
    apiVersion,
    kind,
    namespace,
    name,
    removesDefinition: action === 'removed' && kind === 'CustomResourceDefinition',
    fields: before !== undefined && after !== undefined ? diffFields(before, after) : [],
    diff: diffLines(toYaml(before), toYaml(after)).text,
  };
}

const secretFields = ['data', 'stringData'] as const;
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Masks the values of two versions of a Secret, so that changed ones still differ. (Source: kubectl diff.) */
export function maskSecrets(
  older: JsonObject | undefined,
  newer: JsonObject | undefined,
): [JsonObject | undefined, JsonObject | undefined] {
  const mask = (object: JsonObject | undefined, other: JsonObject | undefined, note: string) => {
    if (object === undefined || object['kind'] !== 'Secret') return object;
    const maskValues = (values: JsonValue | undefined, others: JsonValue | undefined): JsonObject =>
      Object.fromEntries(
        Object.entries(isJsonObject(values) ? values : {}).map(([key, value]) => {
          const twin = getValue(others, key);
          return [key, twin === undefined || isDeepStrictEqual(twin, value) ? '***' : `*** (${note})`];
        }),
      );
    const masked = { ...object };
    for (const field of secretFields)
      if (masked[field] !== undefined) masked[field] = maskValues(object[field], other?.[field]);
    const annotations = getValue(object, 'metadata', 'annotations');
    if (!isJsonObject(annotations) || annotations[lastApplied] === undefined) return masked;
    const metadata = {
      ...getObject(object, 'metadata'),
      annotations: { ...annotations, [lastApplied]: '***' },
    };
    return { ...masked, metadata };
  };
  return [mask(older, newer, 'before'), mask(newer, older, 'after')];
}

/** Returns the fields in which two versions of an object differ. */
export function diffFields(older: JsonObject, newer: JsonObject): FieldChange[] {
  const fields: FieldChange[] = [];
  addFields(older, newer, '', fields);
  return fields;
}

function toYaml(object: JsonObject | undefined): string {
  return object === undefined ? '' : encodeYamlDocument(sortKeysDeep(object));
}

function addFields(older: JsonValue, newer: JsonValue, path: string, fields: FieldChange[]): void {
  if (isDeepStrictEqual(older, newer)) return;
  const [before, after] = [findParts(older), findParts(newer)];
  if (before === undefined || after === undefined || before.kind !== after.kind) {
    fields.push({ path, old: older, new: newer });
    return;
  }
  const keys = new Set([...before.parts.keys(), ...after.parts.keys()]);
  const ordered = before.kind === 'object' ? sortedByBytes(keys) : [...keys];
  const count = fields.length;
  for (const key of ordered) {
    const [old, now] = [before.parts.get(key), after.parts.get(key)];
    const where =
      before.kind === 'object' ? `${path === '' ? '' : `${path}.`}${shown(key)}` : `${path}[${key}]`;
    if (old === undefined) fields.push({ path: where, new: now as JsonValue });
    else if (now === undefined) fields.push({ path: where, old });
    else addFields(old, now, where, fields);
  }
  // Named items that differ in order only.
  if (fields.length === count) fields.push({ path, old: older, new: newer });
}

/** Returns a key for a path, in quotes if it could be read as several. */
function shown(key: string): string {
  return /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
}

/** Returns the fields of an object, or the items of a list: by name if all names are unique. */
function findParts(value: JsonValue): { kind: string; parts: Map<string, JsonValue> } | undefined {
  if (isJsonObject(value)) return { kind: 'object', parts: new Map(Object.entries(value)) };
  if (!Array.isArray(value)) return undefined;
  const names = value.map((item) => getValue(item, 'name'));
  const isNamed =
    value.length > 0 &&
    names.every((name) => typeof name === 'string') &&
    new Set(names).size === names.length;
  const parts = value.map((item, index): [string, JsonValue] => [
    isNamed ? `name=${names[index] as string}` : String(index),
    item,
  ]);
  return { kind: isNamed ? 'named' : 'list', parts: new Map(parts) };
}
