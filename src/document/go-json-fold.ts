import { sortedByBytes } from '../core/order.js';
import type { JsonObject, JsonValue } from './json.js';

/**
 * The form in which Go's JSON decoder compares a key with the ASCII name of a field: two that have the same
 * are the same field. Folding is by single characters: beside capitals only the long s and the Kelvin sign
 * stand for ASCII letters; `ß` is not `ss`. (Source: encoding/json, foldName.)
 */
export function foldFieldName(key: string): string {
  return key.toLowerCase().replaceAll('ſ', 's');
}

/** Returns the keys of an object that Go's decoder takes for one field, in byte order: the last takes precedence. */
export function findFieldKeys(object: JsonObject, field: string): string[] {
  const folded = foldFieldName(field);
  const keys = Object.keys(object).filter(
    (key) => key === field || (key.length === field.length && foldFieldName(key) === folded),
  );
  return keys.length > 1 ? sortedByBytes(keys) : keys;
}

/** Returns the value that Go's decoder reads for a field, whatever the case of its key; undefined where no key matches. */
export function findField(object: JsonObject, field: string): JsonValue | undefined {
  const key = findFieldKeys(object, field).at(-1);
  return key === undefined ? undefined : object[key];
}
