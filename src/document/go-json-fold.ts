import { sortedByBytes } from '../core/order.js';
import type { JsonObject, JsonValue } from './json.js';

/**
 * Returns the form in which Go's JSON decoder compares a key with an ASCII field name: keys with the same form are
 * the same field. Folds single characters: apart from capitals only the long s and the Kelvin sign map to ASCII letters;
 * `ß` is not `ss`. (Source: encoding/json, foldName.)
 */
export function foldFieldName(key: string): string {
  return key.toLowerCase().replaceAll('ſ', 's');
}

/** Returns the keys that Go's decoder reads as one field, in byte order; the last takes precedence. */
export function findFieldKeys(object: JsonObject, field: string): string[] {
  const folded = foldFieldName(field);
  const keys = Object.keys(object).filter(
    (key) => key === field || (key.length === field.length && foldFieldName(key) === folded),
  );
  return keys.length > 1 ? sortedByBytes(keys) : keys;
}

/** Returns the value that Go's decoder reads for a field, case-insensitively; undefined if no key matches. */
export function findField(object: JsonObject, field: string): JsonValue | undefined {
  const key = findFieldKeys(object, field).at(-1);
  return key === undefined ? undefined : object[key];
}
