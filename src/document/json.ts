/** Values of JSON as opmate holds them. */

/**
 * A JSON value. An integer beyond 2^53 is a bigint, so no digit is lost; every other number is a number.
 * An object's keys are in the order in which they are to be written; keys that look like array indexes
 * are the exception (JavaScript moves them to the front), and writers sort an object that has any.
 */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;

/** A JSON object. May have a key named `__proto__` as an own property; never read it with a dot. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/**
 * A JSON value kept as the text it came in. Writers change its white space only. Its text is always
 * valid JSON: whoever makes one has parsed it.
 */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A value to be written: JSON, in which any part may be given as text. */
export type EncodableJson = JsonValue | RawJson | EncodableJson[] | { [key: string]: EncodableJson };

/** What a value of declared fields must be made of to be JSON. */
type Encodable<T> = T extends JsonValue | undefined
  ? T
  : T extends readonly (infer I)[]
    ? readonly Encodable<I>[]
    : T extends RawJson | ((...args: never[]) => unknown)
      ? never
      : { [K in keyof T]: Encodable<T[K]> };

/** Returns a value of declared fields as JSON; fields that are undefined are not written. */
export function asJson<const T extends object>(value: T & Encodable<T>): JsonObject {
  return value as unknown as JsonObject;
}

/** Whether a value is a JSON object (neither null nor an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawJson);
}

/** Sets a key so that `__proto__` becomes an ordinary own property. */
export function setJsonKey<V>(object: { [key: string]: V }, key: string, value: V): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    object[key] = value;
  }
}
