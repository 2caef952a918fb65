import { type DocumentPath, formatPath } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { describeKind, suggestField, suggestQuotes } from '../document/field.js';
import { getGoKind } from '../document/go-json.js';
import { foldFieldName } from '../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from '../document/json.js';

/**
 * Tables that describe Go structs, and their only reader. It reads JSON as typed clients do, and returns what they
 * would write: unknown fields are dropped, missing required fields have their zero value, empty optional fields are
 * omitted, null is the zero value. `Of` is the type of the result. (Source: encoding/json, and apimachinery's
 * converter of unstructured objects.)
 */

/** A value is not of its type; `path` leads to it from the root of the document. */
export class TypeMismatchError extends OpmateError {
  declare readonly path: DocumentPath;
  constructor(path: DocumentPath, problem: string, hint?: string) {
    super('INVALID', problem, { subject: formatPath(path), path, hint });
  }
}

/** Returns the mismatch that an error is or was caused by. */
export function findMismatch(error: unknown): TypeMismatchError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof TypeMismatchError) return cause;
  }
  return undefined;
}

/** `any` and `raw` are kept unchanged: null is no value of `any` (a pointer), but one of `raw` (json.RawMessage). */
type ScalarType = 'string' | 'bool' | 'int32' | 'int64' | 'float' | 'any' | 'raw';

/** A Go type. */
export type Type =
  ScalarType | ListType | MapType | PointerType | LaterType | ChoiceType | TextType | StructType;

export interface ListType<T extends Type = Type> {
  readonly list: T;
}

interface MapType<T extends Type = Type> {
  readonly map: T;
}

/** Omitted when absent or null; otherwise kept, even if empty. */
export interface PointerType<T extends Type = Type> {
  readonly pointer: T;
}

/** A type that contains itself. */
export interface LaterType {
  readonly later: () => Type;
}

/** One of several types, depending on the value. `choose` returns undefined for other values. */
export interface ChoiceType {
  readonly choose: (value: JsonValue) => Type | undefined;
  /** Name in messages, with its article. */
  readonly expected: string;
}

/** A type with its own string or number form. */
export interface TextType<
  V extends JsonValue = JsonValue,
  Z extends JsonValue | undefined = JsonValue | undefined,
> {
  /** Returns undefined for a value without that form. */
  readonly read: (value: JsonValue) => V | undefined;
  /** Written for a missing value; undefined omits the field. */
  readonly zero: Z;
  /** Name in messages, with its article. */
  readonly expected: string;
  /** Name in Go: `v1alpha1.InstallModeType`. */
  readonly goName?: string;
  /** Returns why `read` returned undefined, in place of `expected X, got Y`. */
  readonly explain?: (value: JsonValue) => string;
}

/** Types by name; a field whose name ends in `?` is omitted when empty (Go's `omitempty`). */
export interface Fields {
  readonly [name: string]: Type;
}

export interface StructType<F extends Fields = Fields> {
  /** Fields by name, in the order of the table. */
  readonly fields: ReadonlyMap<string, Field>;
  /** Field names by their folded form. */
  readonly folded: ReadonlyMap<string, string>;
  /** Fields that are written even without a value. */
  readonly always: readonly (readonly [string, Field])[];
  /** Name in Go: `property.GVK`. */
  readonly goName: string | undefined;
  /** Exists for `Of` only. */
  readonly table?: F;
}

interface Field {
  readonly type: Type;
  readonly optional: boolean;
}

/** Value of a type. */
export type Of<T extends Type> = T extends 'string'
  ? string
  : T extends 'bool'
    ? boolean
    : T extends 'int32' | 'float'
      ? number
      : T extends 'int64'
        ? number | bigint
        : T extends ListType<infer I>
          ? Of<I>[]
          : T extends MapType<infer I>
            ? Record<string, Of<I>>
            : T extends PointerType<infer P>
              ? Of<P>
              : T extends TextType<infer V>
                ? V
                : T extends StructType<infer F>
                  ? StructValue<F>
                  : T extends LaterType
                    ? JsonObject
                    : JsonValue;

/** Value of a type that may be null. */
export type Nullable<T extends Type> = T extends
  ListType<Type> | MapType<Type> | PointerType<Type> | TextType<JsonValue, undefined>
  ? Of<T> | null
  : Of<T>;

type StructValue<F extends Fields> = {
  -readonly [K in keyof F as WrittenName<K, F[K]>]: Nullable<F[K]>;
} & { -readonly [K in keyof F as OmittedName<K, F[K]>]?: Of<F[K]> };

/** Structs and texts with a zero form are written even if optional. */
type IsWritten<T extends Type> = T extends StructType
  ? true
  : T extends TextType<JsonValue, infer Z>
    ? undefined extends Z
      ? false
      : true
    : false;

type WrittenName<K, T extends Type> = K extends `${infer N}?` ? (IsWritten<T> extends true ? N : never) : K;

type OmittedName<K, T extends Type> = K extends `${infer N}?`
  ? IsWritten<T> extends true
    ? never
    : N
  : never;

/** Creates a struct from a table of its fields. */
export function struct<const F extends Fields>(table: F, goName?: string): StructType<F> {
  const entries = Object.entries(table).map(([key, type]): [string, Field] => {
    const optional = key.endsWith('?');
    return [optional ? key.slice(0, -1) : key, { type, optional }];
  });
  const always = entries.filter(([, { type, optional }]) => {
    return !optional || (typeof type === 'object' && ('fields' in type || 'zero' in type));
  });
  return {
    fields: new Map(entries),
    folded: new Map(entries.map(([name]) => [foldFieldName(name), name])),
    always,
    goName,
  };
}

/** Creates a string type with its own name. */
export function namedString(goName: string): TextType<string, string> {
  return {
    read: (value) => (typeof value === 'string' ? value : undefined),
    zero: '',
    expected: 'a string',
    goName,
  };
}

/** Returns fields of one type for a table, in this order. */
export function fields<const T extends Type, const N extends string>(type: T, ...names: N[]): Record<N, T> {
  return Object.fromEntries(names.map((name) => [name, type])) as Record<N, T>;
}

export const strings = { list: 'string' } as const satisfies Type;
export const stringMap = { map: 'string' } as const satisfies Type;

/** Creates a list of structs. */
export function structList<const F extends Fields>(table: F, goName?: string): ListType<StructType<F>> {
  return { list: struct(table, goName) };
}

/** Creates a pointer. */
export function pointerTo<const T extends Type>(type: T): PointerType<T> {
  return { pointer: type };
}

/** Creates a pointer to a struct. */
export function optionalStruct<const F extends Fields>(table: F): PointerType<StructType<F>> {
  return { pointer: struct(table) };
}

interface ReadOptions {
  /** Path of the value in its document. */
  path?: readonly (string | number)[] | undefined;
  /** Match field names in any case, as encoding/json does, except within the struct `except`. */
  foldNames?: boolean | { except: StructType } | undefined;
  /** Order fields as in the table, as Go writes them, instead of the document. */
  inTableOrder?: boolean | undefined;
}

/** A value read as a type. */
export interface Conformed<V = JsonValue> {
  /** Of its type only if there are no faults. */
  value: V;
  faults: TypeMismatchError[];
  dropped: UnknownField[];
}

/** An unknown field, which was dropped. */
interface UnknownField {
  path: DocumentPath;
  /** Known fields of its object. */
  known: readonly string[];
}

/** Returns the hint for an unknown field. */
export function suggestKnownField({ path, known }: UnknownField): string | undefined {
  return suggestField(String(path.at(-1)), known);
}

/** Reads `value` as `type` and collects all faults. Never throws. */
export function conform<T extends Type>(
  value: JsonValue | undefined,
  type: T,
  options: ReadOptions = {},
): Conformed<Nullable<T>> {
  const faults: TypeMismatchError[] = [];
  const dropped: UnknownField[] = [];
  const read = readRoot(value, type, options, { fail: (fault) => void faults.push(fault), dropped });
  return { value: read as Nullable<T>, faults, dropped };
}

/**
 * Reads `value` as `type`. Throws TypeMismatchError for the first value of the wrong type: `spec.replaces: expected a
 * string, got the number 1`.
 */
export function readTyped<T extends Type>(
  value: JsonValue | undefined,
  type: T,
  options: ReadOptions = {},
): Nullable<T> {
  const fail = (fault: TypeMismatchError): never => {
    throw fault;
  };
  return readRoot(value, type, options, { fail }) as Nullable<T>;
}

/**
 * Returns the first value of the wrong type, with folded names, or undefined. Builds no value, and so takes half the
 * time of `conform`.
 */
export function findTypeFault(value: JsonValue, type: Type): TypeMismatchError | undefined {
  let first: TypeMismatchError | undefined;
  const fail = (fault: TypeMismatchError): void => void (first ??= fault);
  read(value, type, undefined, { fail, foldNames: true, checksOnly: true });
  return first;
}

interface State extends Omit<ReadOptions, 'path'> {
  fail: (fault: TypeMismatchError) => void;
  /** Builds no lists, maps and structs. */
  checksOnly?: boolean;
  dropped?: UnknownField[];
}

function readRoot(
  value: JsonValue | undefined,
  type: Type,
  { path = [], ...options }: ReadOptions,
  report: State,
): JsonValue {
  let root: Place | undefined;
  for (const key of path) root = { key, parent: root };
  return read(value ?? null, type, root, { ...options, ...report }) ?? null;
}

/** A place whose path is built on demand. */
interface Place {
  key: string | number;
  parent: Place | undefined;
}

function getPath(place: Place | undefined): (string | number)[] {
  const path: (string | number)[] = [];
  for (let location = place; location !== undefined; location = location.parent) path.push(location.key);
  return path.reverse();
}

/** Reads a value; undefined if it is to be omitted wherever possible. */
function read(value: JsonValue, type: Type, place: Place | undefined, state: State): JsonValue | undefined {
  if (typeof type === 'string') return readScalar(value, type, place, state);
  if ('later' in type) return read(value, type.later(), place, state);
  if ('choose' in type) {
    const chosen = value === null ? 'any' : type.choose(value);
    return chosen === undefined
      ? fail(value, type.expected, place, state)
      : read(value, chosen, place, state);
  }
  if ('pointer' in type) return value === null ? undefined : read(value, type.pointer, place, state);
  if (value === null) return findZero(type);
  if ('read' in type) {
    const text = type.read(value);
    if (text !== undefined) return text;
    if (type.explain === undefined) return fail(value, type.expected, place, state);
    state.fail(new TypeMismatchError(getPath(place), type.explain(value)));
    return undefined;
  }
  if ('list' in type) {
    if (!Array.isArray(value)) return fail(value, 'a list', place, state);
    if (state.checksOnly) {
      for (const [index, item] of value.entries())
        read(item, type.list, { key: index, parent: place }, state);
      return undefined;
    }
    return value.map((item, index) => read(item, type.list, { key: index, parent: place }, state) ?? null);
  }
  if (!isJsonObject(value)) return fail(value, 'an object', place, state);
  return 'map' in type ? readMap(value, type.map, place, state) : readStruct(value, type, place, state);
}

function readMap(value: JsonObject, type: Type, place: Place | undefined, state: State): JsonObject {
  const out: JsonObject = {};
  for (const key of Object.keys(value)) {
    const item = read(value[key] as JsonValue, type, { key, parent: place }, state);
    if (state.checksOnly) continue;
    setJsonKey(out, key, item ?? findZero(type) ?? null);
  }
  return out;
}

function readStruct(value: JsonObject, type: StructType, place: Place | undefined, state: State): JsonObject {
  const out: JsonObject = {};
  const isExcept = typeof state.foldNames === 'object' && state.foldNames.except === type;
  const inner = isExcept ? { ...state, foldNames: false } : state;
  for (const key of Object.keys(value)) {
    const item = value[key] as JsonValue;
    let name = key;
    let field = type.fields.get(key);
    if (field === undefined && inner.foldNames) {
      name = type.folded.get(foldFieldName(key)) ?? key;
      field = type.fields.get(name);
    }
    if (field === undefined) {
      if (item !== null)
        state.dropped?.push({ path: getPath({ key, parent: place }), known: [...type.fields.keys()] });
      continue;
    }
    // Null keeps the value of another spelling of the field.
    if (item === null && field.type !== 'raw' && inner.foldNames && Object.hasOwn(out, name)) continue;
    const conformed = read(item, field.type, { key, parent: place }, inner);
    if (state.checksOnly) continue;
    if (!field.optional || (conformed !== undefined && !isEmpty(conformed, field.type))) {
      out[name] = conformed ?? null;
    } else if (inner.foldNames) delete out[name];
  }
  if (state.checksOnly) return out;
  for (const [name, field] of type.always) {
    if (Object.hasOwn(out, name)) continue;
    const zero = findZero(field.type);
    if (zero !== undefined || !field.optional) out[name] = zero ?? null;
  }
  return state.inTableOrder ? ordered(out, type) : out;
}

function ordered(value: JsonObject, { fields }: StructType): JsonObject {
  const out: JsonObject = {};
  for (const name of fields.keys()) if (Object.hasOwn(value, name)) out[name] = value[name] as JsonValue;
  return out;
}

function readScalar(
  value: JsonValue,
  type: ScalarType,
  place: Place | undefined,
  state: State,
): JsonValue | undefined {
  if (type === 'raw') return value;
  if (type === 'any') return value ?? undefined;
  if (value === null) return findZero(type);
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : fail(value, 'a string', place, state);
    case 'bool':
      return typeof value === 'boolean' ? value : fail(value, 'true or false', place, state);
    case 'float':
      if (typeof value === 'bigint') return Number(value);
      return typeof value === 'number' ? value : fail(value, 'a number', place, state);
    default: {
      const bits = type === 'int32' ? 32 : 64;
      const whole =
        typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))
          ? BigInt(value)
          : undefined;
      if (whole === undefined || BigInt.asIntN(bits, whole) !== whole) {
        return fail(value, `a ${bits}-bit integer`, place, state);
      }
      return value;
    }
  }
}

function findZero(type: Type): JsonValue | undefined {
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
    case 'raw':
      return undefined;
  }
  if ('later' in type) return findZero(type.later());
  if ('choose' in type) return undefined;
  if ('read' in type) return type.zero;
  if ('fields' in type) return readStruct({}, type, undefined, zeroState);
  return undefined;
}

/** An empty struct has no faults. */
const zeroState: State = { fail: () => undefined, inTableOrder: true };

/**
 * Reports whether Go omits a value: zero scalars, empty lists and maps, but never a struct or the target of a
 * pointer.
 */
function isEmpty(value: JsonValue, type: Type): boolean {
  if (type === 'any' || type === 'raw') return false;
  if (typeof type === 'string') return value === '' || value === 0 || value === false;
  if ('later' in type) return isEmpty(value, type.later());
  if ('list' in type) return Array.isArray(value) && value.length === 0;
  if ('map' in type) return isJsonObject(value) && Object.keys(value).length === 0;
  return false;
}

function fail(value: JsonValue, expected: string, place: Place | undefined, state: State): undefined {
  const hint = expected === 'a string' ? suggestQuotes(value) : undefined;
  state.fail(new TypeMismatchError(getPath(place), `expected ${expected}, got ${describeKind(value)}`, hint));
  return undefined;
}

/**
 * Returns the message of Go's decoder for the value at `path` of `root`, read as `type`: `json: cannot unmarshal
 * number into Go struct field GVK.group of type string`. (Source: encoding/json, UnmarshalTypeError.)
 */
export function describeGoMismatch(root: JsonValue, type: Type, path: DocumentPath): string {
  let value = root;
  let place = type;
  let owner: StructType | undefined;
  const fields: string[] = [];
  for (const key of path) {
    value = (value as JsonObject)[key] as JsonValue;
    place = innerType(place);
    if (typeof place === 'string') break;
    if ('list' in place) place = place.list;
    else if ('map' in place) place = place.map;
    else if ('fields' in place) {
      owner = place;
      const name = place.fields.has(String(key))
        ? String(key)
        : (place.folded.get(foldFieldName(String(key))) ?? '');
      fields.push(name);
      place = place.fields.get(name)?.type ?? 'any';
    }
  }
  const isNumber = place === 'int32' && (typeof value === 'number' || typeof value === 'bigint');
  const kind = isNumber ? `number ${String(value)}` : getGoKind(value);
  const target =
    owner === undefined
      ? `value of type ${getGoName(place)}`
      : `struct field ${owner.goName?.replace(/^.*\./, '')}.${fields.join('.')} of type ${getGoName(place)}`;
  return `json: cannot unmarshal ${kind} into Go ${target}`;
}

function innerType(type: Type): Type {
  if (typeof type === 'string') return type;
  if ('later' in type) return innerType(type.later());
  return 'pointer' in type ? innerType(type.pointer) : type;
}

function getGoName(type: Type): string {
  const inner = innerType(type);
  if (typeof inner === 'string') return inner;
  if ('list' in inner) return `[]${getGoName(inner.list)}`;
  if ('map' in inner) return `map[string]${getGoName(inner.map)}`;
  return 'goName' in inner ? (inner.goName ?? 'any') : 'any';
}
