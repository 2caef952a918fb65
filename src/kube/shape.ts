import { OpmateError } from '../core/errors.js';
import { foldFieldName } from '../document/go-json-fold.js';
import { describeKind } from '../document/field.js';
import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from '../document/json.js';

/**
 * Tables that describe Go structs, and one reader for all of them. It reads JSON as Go's decoder does:
 * field names match whatever their case, `null` is the zero value, unknown fields are dropped, a value of
 * the wrong kind is an error; and it answers in the form in which Go would write the struct again: fields
 * in table order, optional ones left out when empty. (Source: encoding/json.)
 */

/** A value that does not have its shape; `path` leads to it from the root of the document. */
export class ShapeError extends OpmateError {
  readonly path: readonly (string | number)[];
  constructor(path: readonly (string | number)[], problem: string) {
    super('INVALID', `${pathText(path)}: ${problem}`);
    this.path = path;
  }
}

/** What a value must be. `any` is kept as it is; `map` has string keys, written in byte order by callers. */
export type Shape =
  | 'string'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'any'
  | { readonly list: Shape }
  | { readonly map: Shape }
  | { readonly check: (value: JsonValue) => string | undefined }
  | StructShape;

/** Fields of a struct in the order in which they are written. */
export interface StructShape {
  readonly fields: readonly Field[];
  readonly exact: ReadonlyMap<string, number>;
  readonly folded: ReadonlyMap<string, number>;
}

interface Field {
  name: string;
  optional: boolean;
  shape: Shape;
}

/** Makes a struct of `name: shape`; a name that ends in `?` is left out when empty (Go's `omitempty`). */
export function struct(fields: Record<string, Shape>): StructShape {
  const list = Object.entries(fields).map(([key, shape]) => {
    const optional = key.endsWith('?');
    return { name: optional ? key.slice(0, -1) : key, optional, shape };
  });
  return {
    fields: list,
    exact: new Map(list.map((field, index) => [field.name, index])),
    folded: new Map(list.map((field, index) => [foldFieldName(field.name), index])),
  };
}

/** The same for readers that tell keys apart by case, as the one of Kubernetes does. */
export function exactStruct(fields: Record<string, Shape>): StructShape {
  return { ...struct(fields), folded: new Map() };
}

/**
 * Reads `value` as `shape`. `path` says where it stands, with dots between keys, for messages such as
 * `spec.replaces: expected a string, found the number 1`. Throws ShapeError.
 */
export function readShape(value: JsonValue, shape: Shape, path: string): JsonValue {
  return read(value, shape, { text: path, parent: undefined });
}

/** A place, put together only when a message needs it. */
interface Place {
  text: string | number;
  parent: Place | undefined;
}

function read(value: JsonValue, shape: Shape, at: Place): JsonValue {
  if (shape === 'any') return value;
  if (typeof shape === 'string') return readScalar(value, shape, at);
  if ('check' in shape) {
    const fault = value === null ? undefined : shape.check(value);
    if (fault !== undefined) throw new ShapeError(pathOf(at), fault);
    return value;
  }
  if (value === null) return zeroOf(shape);
  if ('list' in shape) {
    if (!Array.isArray(value)) throw mismatch(value, 'a list', at);
    return value.map((item, index) => read(item, shape.list, { text: index, parent: at }));
  }
  if (!isJsonObject(value)) throw mismatch(value, 'an object', at);
  if ('map' in shape) {
    const out: JsonObject = {};
    for (const key of Object.keys(value)) {
      setJsonKey(out, key, read(value[key] as JsonValue, shape.map, { text: key, parent: at }));
    }
    return out;
  }
  return readStruct(value, shape, at);
}

function readStruct(value: JsonObject, shape: StructShape, at: Place): JsonObject {
  const found = new Array<JsonValue | undefined>(shape.fields.length);
  for (const key of Object.keys(value)) {
    const index = shape.exact.get(key) ?? shape.folded.get(foldFieldName(key));
    if (index === undefined) continue;
    const item = value[key] as JsonValue;
    const field = shape.fields[index] as Field;
    // Null leaves what an earlier spelling of the same field gave, but counts as a value of `any`.
    if (item === null && field.shape !== 'any') continue;
    found[index] = read(item, field.shape, { text: key, parent: at });
  }
  const out: JsonObject = {};
  shape.fields.forEach((field, index) => {
    const item = found[index];
    if (field.optional && (item === undefined || isEmpty(item, field.shape))) return;
    out[field.name] = item === undefined ? zeroOf(field.shape) : item;
  });
  return out;
}

function readScalar(value: JsonValue, shape: 'string' | 'bool' | 'int32' | 'int64', at: Place): JsonValue {
  if (value === null) return zeroOf(shape);
  if (shape === 'string') {
    if (typeof value !== 'string') throw mismatch(value, 'a string', at);
  } else if (shape === 'bool') {
    if (typeof value !== 'boolean') throw mismatch(value, 'true or false', at);
  } else if (!isInteger(value, shape)) {
    throw mismatch(value, `a whole number of ${shape.slice(3)} bits`, at);
  }
  return value;
}

function isInteger(value: JsonValue, shape: 'int32' | 'int64'): boolean {
  if (typeof value === 'bigint') return shape === 'int64' && BigInt.asIntN(64, value) === value;
  if (typeof value !== 'number' || !Number.isInteger(value)) return false;
  return shape === 'int32' ? (value | 0) === value : Number.isSafeInteger(value);
}

function zeroOf(shape: Shape): JsonValue {
  if (shape === 'string') return '';
  if (shape === 'bool') return false;
  if (shape === 'int32' || shape === 'int64') return 0;
  if (typeof shape === 'object' && 'fields' in shape)
    return readStruct({}, shape, { text: '', parent: undefined });
  return null;
}

/** Go leaves out zero scalars and empty lists and maps, never a struct. */
function isEmpty(value: JsonValue, shape: Shape): boolean {
  if (typeof shape === 'object') {
    if ('fields' in shape) return false;
    if (Array.isArray(value)) return value.length === 0;
    return value === null || (isJsonObject(value) && Object.keys(value).length === 0);
  }
  return shape !== 'any' && (value === '' || value === 0 || value === false);
}

function mismatch(value: JsonValue, expected: string, at: Place): ShapeError {
  return new ShapeError(pathOf(at), `expected ${expected}, found ${describeKind(value)}`);
}

function pathOf(at: Place): (string | number)[] {
  if (at.parent !== undefined) return [...pathOf(at.parent), at.text];
  return String(at.text) === '' ? [] : String(at.text).split('.');
}

function pathText(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (!/^[\w-]+$/.test(part)) text += `[${JSON.stringify(part)}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text;
}
