/** JSON values in memory. */

/**
 * A JSON value. Integers beyond 2^53 are bigints, so that no digit is lost. Object keys are in output order, except
 * index-like keys, which JavaScript moves to the front: writers sort objects with such keys.
 */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;

/** A JSON object. May have an own property `__proto__`; never read it with a dot. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/**
 * A JSON value kept as text. Writers change its white space only. The text is always valid JSON: its creator has
 * parsed it.
 */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A JSON value to encode, of which any part may be text. */
export type EncodableJson = JsonValue | RawJson | EncodableJson[] | { [key: string]: EncodableJson };

/** Maps a type of declared fields to its JSON form. */
type Encodable<T> = T extends JsonValue | undefined
  ? T
  : T extends readonly (infer I)[]
    ? readonly Encodable<I>[]
    : T extends RawJson | ((...args: never[]) => unknown)
      ? never
      : { [K in keyof T]: Encodable<T[K]> };

/** Returns a value of declared fields as JSON; undefined fields are not written. */
export function asJson<const T extends object>(value: T & Encodable<T>): JsonObject {
  return value as unknown as JsonObject;
}

/** Reports whether a value is a JSON object, neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawJson);
}

/** Sets a key; `__proto__` becomes an ordinary own property. */
export function setJsonKey<V>(object: { [key: string]: V }, key: string, value: V): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    object[key] = value;
  }
}
