import { sortedByBytes } from '../../core/order.js';
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
export function getKey(map: GoMap, key: string): GoValue | undefined {
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

/** Returns a copy that shares nothing. Throws as `toJsonValue`. */
export function deepCopy(value: GoValue): GoValue {
  let nodes = 0;
  const copy = (entry: GoValue, depth: number): GoValue => {
    if (++nodes > maxNodes || depth > maxDepth) throw limitFault('a value too large to copy');
    if (Array.isArray(entry)) return entry.map((item) => copy(item, depth + 1));
    if (!isGoMap(entry)) return entry;
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

/** Returns a float as Go's `%v` prints it: with an exponent below 1e-4 and from 1e6. */
export function formatFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power < -4 || power >= 6) {
    const digits = String(Math.abs(power)).padStart(2, '0');
    return `${mantissa}e${power < 0 ? '-' : '+'}${digits}`;
  }
  return plainDigits(mantissa, power);
}

function plainDigits(mantissa: string, power: number): string {
  const sign = mantissa.startsWith('-') ? '-' : '';
  const digits = mantissa.replace(/[-.]/g, '');
  if (power < 0) return `${sign}0.${'0'.repeat(-power - 1)}${digits}`;
  if (digits.length <= power + 1) return sign + digits.padEnd(power + 1, '0');
  return `${sign}${digits.slice(0, power + 1)}.${digits.slice(power + 1)}`;
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
    const text = typeof entry === 'number' ? formatFloat(entry) : String(entry);
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

/** Returns a value as int64, like cast.ToInt64: 0 unless numeric. */
export function toInt(value: GoValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (typeof value !== 'string' || !/^[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)$/.test(value)) return 0n;
  const [, sign, digits = '0'] = /^([+-]?)(.*)$/.exec(value) as RegExpExecArray;
  const number = BigInt(/^0x/i.test(digits) ? digits : digits.replace(/^0+(?=\d)/, ''));
  return sign === '-' ? -number : number;
}

export function toFloat(value: GoValue): number {
  if (typeof value === 'string') return /^[+-]?[\d.]+(?:[eE][+-]?\d+)?$/.test(value) ? Number(value) : 0;
  if (typeof value === 'bigint' || typeof value === 'number') return Number(value);
  return value === true ? 1 : 0;
}

/** Reports whether two values are deeply equal; an int equals a float of the same value. */
export function isEqual(a: GoValue, b: GoValue): boolean {
  if (isNumber(a) && isNumber(b)) return Number(a) === Number(b);
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  return JSON.stringify(toJsonValue(a)) === JSON.stringify(toJsonValue(b));
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
    if (member === undefined && isGoMap(value.content)) return getKey(value.content, name) ?? null;
    throw evaluationFault(`can't evaluate field ${name} in type ${value.type}`);
  }
  if (value === null) throw evaluationFault(`nil pointer evaluating interface {}.${name}`);
  if (!isGoMap(value)) throw evaluationFault(`can't evaluate field ${name} in type ${getType(value)}`);
  if (args.length > 0) throw evaluationFault(`${name} is not a method but has arguments`);
  return getKey(value, name) ?? null;
}
