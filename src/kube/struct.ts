import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from '../document/json.js';
import { ShapeError } from './shape.js';
import { describeKind } from '../document/field.js';

/**
 * Reads objects of Kubernetes as its typed clients do, and gives them back as those would write them: fields
 * that a type does not have are dropped, required fields that are missing appear with their zero value,
 * optional ones that are empty disappear. Names of fields match exactly. (Source: apimachinery's converter
 * of unstructured objects, and encoding/json.)
 */

/** What a value is in Go. `any` is kept as it is. */
export type GoType =
  | 'string'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'float'
  | 'any'
  | { readonly list: GoType }
  | { readonly map: GoType }
  | { readonly pointer: GoType }
  | { readonly later: () => GoType }
  | { readonly choose: (value: JsonValue) => GoType | undefined; readonly expected: string }
  | GoText
  | GoStruct;

/** A type with a text or number form of its own. `read` gives undefined where the value has not that form. */
export interface GoText {
  readonly read: (value: JsonValue) => JsonValue | undefined;
  /** What is written where there is none; undefined leaves the field out. */
  readonly zero: JsonValue | undefined;
  /** What messages call it, with its article. */
  readonly expected: string;
}

export interface GoStruct {
  readonly fields: ReadonlyMap<string, GoField>;
  /** Fields that are written even where nothing is given for them. */
  readonly always: readonly (readonly [string, GoField])[];
}

interface GoField {
  readonly type: GoType;
  readonly optional: boolean;
}

/** Makes a struct of `name: type`; a name that ends in `?` is left out when empty (Go's `omitempty`). */
export function goStruct(fields: Readonly<Record<string, GoType>>): GoStruct {
  const entries = Object.entries(fields).map(([key, type]): [string, GoField] => {
    const optional = key.endsWith('?');
    return [optional ? key.slice(0, -1) : key, { type, optional }];
  });
  const always = entries.filter(([, { type, optional }]) => {
    return !optional || (typeof type === 'object' && ('fields' in type || 'zero' in type));
  });
  return { fields: new Map(entries), always };
}

export const strings: GoType = { list: 'string' };
export const stringMap: GoType = { map: 'string' };

/** A list of structs of these fields. */
export function listOf(fields: Readonly<Record<string, GoType>>): GoType {
  return { list: goStruct(fields) };
}

/** A pointer: what is not there is left out, and what is there is kept, however empty. */
export function pointerTo(type: GoType): GoType {
  return { pointer: type };
}

/** What reading as a type found. */
export interface Conformed {
  value: JsonValue;
  /** Values that are not of their type. */
  faults: ShapeError[];
  /** Paths of the fields that no type has, and that were dropped. */
  dropped: (string | number)[][];
}

/** Reads `value` as `type`; `path` is where it stands in its document. Never throws. */
export function conform(
  value: JsonValue | undefined,
  type: GoType,
  path: readonly (string | number)[] = [],
): Conformed {
  const state: State = { faults: [], dropped: [] };
  let root: Place | undefined;
  for (const key of path) root = { key, parent: root };
  return { value: read(value ?? null, type, root, state) ?? null, ...state };
}

interface State {
  faults: ShapeError[];
  dropped: (string | number)[][];
}

/** A place, put together only when it is needed. */
interface Place {
  key: string | number;
  parent: Place | undefined;
}

function pathOf(place: Place | undefined): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at = place; at !== undefined; at = at.parent) path.push(at.key);
  return path.reverse();
}

/** Undefined stands for what is left out wherever it may be. */
function read(value: JsonValue, type: GoType, at: Place | undefined, state: State): JsonValue | undefined {
  if (typeof type === 'string') return readScalar(value, type, at, state);
  if ('later' in type) return read(value, type.later(), at, state);
  if ('choose' in type) {
    const chosen = value === null ? 'any' : type.choose(value);
    return chosen === undefined ? fail(value, type.expected, at, state) : read(value, chosen, at, state);
  }
  if ('pointer' in type) return value === null ? undefined : read(value, type.pointer, at, state);
  if (value === null) return zeroOf(type);
  if ('read' in type) {
    const text = type.read(value);
    if (text === undefined) state.faults.push(mismatch(value, type.expected, at));
    return text;
  }
  if ('list' in type) {
    if (!Array.isArray(value)) return fail(value, 'a list', at, state);
    return value.map((item, index) => read(item, type.list, { key: index, parent: at }, state) ?? null);
  }
  if (!isJsonObject(value)) return fail(value, 'an object', at, state);
  const out: JsonObject = {};
  if ('map' in type) {
    for (const key of Object.keys(value)) {
      setJsonKey(
        out,
        key,
        read(value[key] as JsonValue, type.map, { key, parent: at }, state) ?? zeroOf(type.map) ?? null,
      );
    }
    return out;
  }
  for (const key of Object.keys(value)) {
    const item = value[key] as JsonValue;
    const field = type.fields.get(key);
    if (field === undefined) {
      if (item !== null) state.dropped.push(pathOf({ key, parent: at }));
      continue;
    }
    const conformed = read(item, field.type, { key, parent: at }, state);
    if (field.optional && (conformed === undefined || isEmpty(conformed, field.type))) continue;
    out[key] = conformed ?? null;
  }
  for (const [key, field] of type.always) {
    if (Object.hasOwn(value, key)) continue;
    const zero = zeroOf(field.type);
    if (zero !== undefined || !field.optional) out[key] = zero ?? null;
  }
  return out;
}

function readScalar(
  value: JsonValue,
  type: 'string' | 'bool' | 'int32' | 'int64' | 'float' | 'any',
  at: Place | undefined,
  state: State,
): JsonValue | undefined {
  if (type === 'any') return value ?? undefined;
  if (value === null) return zeroOf(type);
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : fail(value, 'a string', at, state);
    case 'bool':
      return typeof value === 'boolean' ? value : fail(value, 'true or false', at, state);
    case 'float':
      if (typeof value === 'bigint') return Number(value);
      return typeof value === 'number' ? value : fail(value, 'a number', at, state);
    default: {
      const bits = type === 'int32' ? 32 : 64;
      const whole =
        typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))
          ? BigInt(value)
          : undefined;
      if (whole === undefined || BigInt.asIntN(bits, whole) !== whole) {
        return fail(value, `a whole number of ${bits} bits`, at, state);
      }
      return value;
    }
  }
}

function zeroOf(type: GoType): JsonValue | undefined {
  switch (type) {
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'int32':
    case 'int64':
    case 'float':
      return 0;
    case 'any':
      return undefined;
  }
  if ('later' in type) return zeroOf(type.later());
  if ('choose' in type) return undefined;
  if ('read' in type) return type.zero;
  if ('fields' in type) return conform({}, type).value;
  return undefined;
}

/** Go leaves out zero scalars and empty lists and maps, never a struct, nor what a pointer leads to. */
function isEmpty(value: JsonValue, type: GoType): boolean {
  // Whatever is there of a value that is kept as it is, is kept.
  if (type === 'any') return false;
  if (typeof type === 'string') return value === '' || value === 0 || value === false;
  if ('later' in type) return isEmpty(value, type.later());
  if ('list' in type) return Array.isArray(value) && value.length === 0;
  if ('map' in type) return isJsonObject(value) && Object.keys(value).length === 0;
  return false;
}

function fail(value: JsonValue, expected: string, at: Place | undefined, state: State): undefined {
  state.faults.push(mismatch(value, expected, at));
  return undefined;
}

function mismatch(value: JsonValue, expected: string, at: Place | undefined): ShapeError {
  return new ShapeError(pathOf(at), `expected ${expected}, found ${describeKind(value)}`);
}
