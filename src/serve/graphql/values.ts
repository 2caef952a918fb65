/** Values of blobs in GraphQL, coerced as by the library of catalogd. (Source: graphql-go, scalars.go.) */
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { formatFloat } from '../../document/yaml-scalar.js';
import type { FieldShape, ScalarName } from './catalog-shape.js';
import { toFieldName } from './names.js';

const minInt = -(2 ** 31);
const maxInt = 2 ** 31 - 1;

/** Returns the value of a field; undefined where the object has none. */
export function readField(object: JsonObject, { name, keys }: FieldShape): JsonValue | undefined {
  for (const key of keys) if (Object.hasOwn(object, key)) return object[key];
  // Only the first elements of an array are sampled: later ones may spell the key differently.
  for (const key of Object.keys(object)) if (toFieldName(key) === name) return object[key];
  return undefined;
}

/** Formats a value as Go's JSON text, with sorted keys. */
export function toJsonText(value: JsonValue): string {
  return encodeGoJson(sortKeysDeep(value), { escapeHtml: true });
}

/** Converts a value to a scalar; null where impossible. Objects and arrays become JSON text. */
export function toScalar(value: JsonValue, scalar: ScalarName): string | number | boolean | null {
  if (value === null) return null;
  const plain = isJsonObject(value) || Array.isArray(value) ? toJsonText(value) : value;
  switch (scalar) {
    case 'String':
      return toText(plain);
    case 'Boolean':
      return typeof plain === 'string' ? plain !== '' && plain !== 'false' : Boolean(plain);
    case 'Float':
      return toNumber(plain);
    case 'Int': {
      const number = toNumber(plain);
      return number === null || number < minInt || number > maxInt ? null : Math.trunc(number) + 0;
    }
  }
}

function toText(value: string | number | bigint | boolean): string {
  return typeof value === 'number' ? formatFloat(value) : String(value);
}

/** Returns null for infinite numbers and NaN. */
function toNumber(value: string | number | bigint | boolean): number | null {
  if (typeof value === 'string' && !/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value)) return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
