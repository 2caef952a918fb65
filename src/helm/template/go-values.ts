import { sortedByBytes } from '../../core/order.js';
import { formatGoFloat } from '../../document/go-float.js';
import { type JsonValue, setJsonKey } from '../../document/json.js';
import { evaluationFault, limitFault } from './fault.js';

/**
 * A template value: null is nil, number is float, bigint is int; bytes are strings. Numbers of values files are
 * floats, as in Helm.
 */
export type GoValue = null | boolean | number | bigint | string | GoValue[] | GoMap | GoStruct;

export interface GoMap {
  [key: string]: GoValue;
}

/** A method, which receives the arguments of the template. */
export type GoMethod = (args: readonly GoValue[]) => GoValue;

/** A Go value with fields and methods. */
export class GoStruct {
  readonly type: string;
  readonly members: ReadonlyMap<string, GoValue | GoMethod>;
  /** Content as JSON, and for ranges. */
  readonly content: GoValue;

  constructor(type: string, members: Readonly<Record<string, GoValue | GoMethod>>, content: GoValue = null) {
    this.type = type;
    this.members = new Map(Object.entries(members));
    this.content = content;
  }
}

export function isGoMap(value: GoValue | undefined): value is GoMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof GoStruct);
}

/** Returns the value of a key; undefined if missing. */
export function getMapValue(map: GoMap, key: string): GoValue | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

export const setKey: (map: GoMap, key: string, value: GoValue) => void = setJsonKey;

export function getKeys(map: GoMap): string[] {
  return sortedByBytes(Object.keys(map));
}

/** Reports whether a value is true in a condition. (Source: text/template, IsTrue.) */
export function isTrue(value: GoValue): boolean {
  if (value === null || value === false || value === '') return false;
  if (typeof value === 'number') return value !== 0;
  if (typeof value === 'bigint') return value !== 0n;
  if (Array.isArray(value)) return value.length > 0;
  return !isGoMap(value) || Object.keys(value).length > 0;
}

/** Maximum values visited per conversion: shared parts could grow without bound. */
const maxNodes = 1_000_000;
const maxDepth = 500;

/** Returns a copy as JSON that shares nothing. Throws TemplateFault for exceeded limits, as for a circular value. */
export function toJsonValue(value: GoValue): JsonValue {
  let nodes = 0;
  const copy = (entry: GoValue, depth: number): JsonValue => {
    if (++nodes > maxNodes || depth > maxDepth)
      throw limitFault(`a value of more than ${maxNodes} parts, or nested deeper than ${maxDepth}`);
    if (Array.isArray(entry)) return entry.map((item) => copy(item, depth + 1));
    if (entry instanceof GoStruct) return copy(entry.content, depth + 1);
    if (isGoMap(entry)) {
      const made: { [key: string]: JsonValue } = {};
      for (const key of getKeys(entry)) setJsonKey(made, key, copy(entry[key] as GoValue, depth + 1));
      return made;
    }
    if (typeof entry === 'bigint' && entry >= -(2n ** 53n) && entry <= 2n ** 53n) return Number(entry);
    return entry;
  };
  return copy(value, 0);
}

/** Returns parsed JSON or YAML as values that share nothing with it; all numbers are floats. Throws as `toJsonValue`. */
export function fromJsonValue(value: JsonValue): GoValue {
  return deepCopy(value as GoValue, (entry) => (typeof entry === 'bigint' ? Number(entry) : entry));
}

/** Returns a copy that shares nothing, with `convert` applied to what is no list or map. Throws as `toJsonValue`. */
export function deepCopy(value: GoValue, convert = (entry: GoValue): GoValue => entry): GoValue {
  let nodes = 0;
  const copy = (entry: GoValue, depth: number): GoValue => {
    if (++nodes > maxNodes || depth > maxDepth) throw limitFault('a value too large to copy');
    if (Array.isArray(entry)) return entry.map((item) => copy(item, depth + 1));
    if (!isGoMap(entry)) return convert(entry);
    const made: GoMap = {};
    for (const [key, item] of Object.entries(entry)) setKey(made, key, copy(item, depth + 1));
    return made;
  };
  return copy(value, 0);
}

/** Returns the type of a value as `%T` prints it. */
export function getType(value: GoValue): string {
  if (value === null) return '<nil>';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'float64';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return 'string';
  if (Array.isArray(value)) return '[]interface {}';
  return value instanceof GoStruct ? value.type : 'map[string]interface {}';
}

export function getKind(value: GoValue): string {
  if (value === null) return 'invalid';
  if (Array.isArray(value)) return 'slice';
  if (value instanceof GoStruct) return value.type.startsWith('*') ? 'ptr' : 'struct';
  return isGoMap(value) ? 'map' : getType(value);
}

/** Maximum characters of a printed value. */
const maxTextLength = 16 * 1024 * 1024;

/** Throws TemplateFault for a text that is too long. */
export function requireTextLength(length: number): void {
  if (length > maxTextLength) throw limitFault(`a text of more than ${maxTextLength} characters`);
}

/** Returns a value as `%v` prints it. Throws TemplateFault for exceeded limits. */
export function printValue(value: GoValue): string {
  let nodes = 0;
  let length = 0;
  const print = (entry: GoValue, depth: number): string => {
    if (++nodes > maxNodes || depth > maxDepth) throw limitFault('a value too large to print');
    if (entry === null) return depth === 0 ? '<no value>' : '<nil>';
    if (Array.isArray(entry)) return `[${entry.map((item) => print(item, depth + 1)).join(' ')}]`;
    if (entry instanceof GoStruct) {
      const own = entry.members.get('String');
      return typeof own === 'function' ? print(own([]), depth + 1) : `{${print(entry.content, depth + 1)}}`;
    }
    if (isGoMap(entry))
      return `map[${getKeys(entry)
        .map((key) => `${key}:${print(entry[key] as GoValue, depth + 1)}`)
        .join(' ')}]`;
    const text = typeof entry === 'number' ? formatGoFloat(entry) : String(entry);
    length += text.length;
    requireTextLength(length);
    return text;
  };
  return print(value, 0);
}

/** Returns a value as text, like sprig's `toString`. */
export function toText(value: GoValue): string {
  if (typeof value === 'string') return value;
  return value === null ? '<nil>' : printValue(value);
}

const minInt = -(2n ** 63n);

export function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

/** Returns a value as int64, like cast.ToInt64: 0 unless numeric, the minimum for floats beyond its range. */
export function toInt(value: GoValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') {
    const whole = Number.isFinite(value) ? BigInt(Math.trunc(value)) : minInt;
    return isInt64(whole) ? whole : minInt;
  }
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return typeof value === 'string' ? (parseInt64(value.replace(/\.0+$/, '')) ?? 0n) : 0n;
}

/** Parses an integer with the prefixes and underscores of Go literals. (Source: strconv.ParseInt with base 0.) */
function parseInt64(text: string): bigint | undefined {
  const pattern =
    /^([+-]?)(0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0(?:_?[0-7])*|[1-9](?:_?\d)*)$/;
  const [, sign, digits = ''] = pattern.exec(text) ?? [];
  if (sign === undefined) return undefined;
  const plain = digits.replaceAll('_', '');
  const number = BigInt(/^0\d/.test(plain) ? `0o${plain}` : plain.toLowerCase());
  const signed = sign === '-' ? -number : number;
  return isInt64(signed) ? signed : undefined;
}

/** Returns a value as float64, like cast.ToFloat64: 0 unless numeric. */
export function toFloat(value: GoValue): number {
  if (typeof value === 'string')
    return /^[+-]?(?:\d(?:_?\d)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value)
      ? Number(value.replaceAll('_', ''))
      : 0;
  if (typeof value === 'bigint' || typeof value === 'number') return Number(value);
  return value === true ? 1 : 0;
}

/** Reports whether two values are deeply equal, with the same types. (Source: reflect.DeepEqual.) */
export function isEqual(a: GoValue, b: GoValue): boolean {
  let nodes = 0;
  const areEqual = (x: GoValue, y: GoValue, depth: number): boolean => {
    if (++nodes > maxNodes || depth > maxDepth) throw limitFault('values too large to compare');
    if (Array.isArray(x) && Array.isArray(y))
      return x.length === y.length && x.every((item, i) => areEqual(item, y[i] as GoValue, depth + 1));
    if (x instanceof GoStruct && y instanceof GoStruct)
      return x.type === y.type && areEqual(x.content, y.content, depth + 1);
    if (!isGoMap(x) || !isGoMap(y)) return x === y;
    const keys = Object.keys(x);
    return (
      keys.length === Object.keys(y).length &&
      keys.every((key) => Object.hasOwn(y, key) && areEqual(x[key] as GoValue, y[key] as GoValue, depth + 1))
    );
  };
  return areEqual(a, b, 0);
}

export function isNumber(value: GoValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Returns the field or key of a value. Throws TemplateFault. */
export function getField(value: GoValue, name: string, args: readonly GoValue[] = []): GoValue {
  if (value instanceof GoStruct) {
    const member = value.members.get(name);
    if (typeof member === 'function') return member(args);
    if (member !== undefined && args.length === 0) return member;
    if (member === undefined && isGoMap(value.content)) return getMapValue(value.content, name) ?? null;
    throw evaluationFault(`can't evaluate field ${name} in type ${value.type}`);
  }
  if (value === null) throw evaluationFault(`nil pointer evaluating interface {}.${name}`);
  if (!isGoMap(value)) throw evaluationFault(`can't evaluate field ${name} in type ${getType(value)}`);
  if (args.length > 0) throw evaluationFault(`${name} is not a method but has arguments`);
  // A method of chartutil.Values, for functions that accept only plain maps.
  if (name === 'AsMap' && !Object.hasOwn(value, name)) return value;
  return getMapValue(value, name) ?? null;
}
