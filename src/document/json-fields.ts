import { isJsonObject, type JsonObject, type JsonValue } from './json.js';

/*
 * Readers for JSON of unknown shape: objects of a cluster, responses of other programs, blobs with foreign fields.
 * Values of another type read as absent. Documents that opmate checks are read with Field instead.
 */

/** Returns the value at a path of keys; undefined if a key is missing or its parent is no object. */
export function getValue(value: unknown, ...path: readonly string[]): JsonValue | undefined {
  let current = value;
  for (const key of path)
    current = isJsonObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  return current as JsonValue | undefined;
}

/** Returns the string at a path; empty for any other value. */
export function getText(value: unknown, ...path: readonly string[]): string {
  const text = getValue(value, ...path);
  return typeof text === 'string' ? text : '';
}

/** Returns the object at a path; an empty one for any other value. */
export function getObject(value: unknown, ...path: readonly string[]): JsonObject {
  const object = getValue(value, ...path);
  return isJsonObject(object) ? object : {};
}

/** Returns the items of the array at a path; none for any other value. */
export function getList(value: unknown, ...path: readonly string[]): JsonValue[] {
  const list = getValue(value, ...path);
  return Array.isArray(list) ? list : [];
}

/** Returns the objects in the array at a path; other items are omitted. */
export function getObjects(value: unknown, ...path: readonly string[]): JsonObject[] {
  return getList(value, ...path).filter(isJsonObject);
}

/** Returns the strings in the array at a path; other items are omitted. */
export function getTexts(value: unknown, ...path: readonly string[]): string[] {
  return getList(value, ...path).filter((item) => typeof item === 'string');
}
