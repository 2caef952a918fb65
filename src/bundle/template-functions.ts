import { quoteGo } from '../document/go-json.js';
import { formatShortest } from '../model/csv.js';

/** Values and functions of the template language; see `image-template.ts`. */

/** What a template may say of a bundle. */
export interface ImageTemplateData {
  Package: string;
  Name: string;
  Version: string;
}

/** An integer is a number; other numbers are wrapped, since Go tells them apart. */
export type Value = string | number | boolean | Float | ImageTemplateData | Nil;

/** A number that is not an `int` in Go, such as `1.0`. */
export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** The untyped `nil`. */
export class Nil {}
export const nil = new Nil();

/** Whether a value is the bundle itself, which is what `.` and `$` stand for at first. */
export function isData(value: Value): value is ImageTemplateData {
  return typeof value === 'object' && !(value instanceof Float) && !(value instanceof Nil);
}

/** Go's name of the type of a value. */
export function typeName(value: Value): string {
  if (value instanceof Float) return 'float64';
  if (value instanceof Nil) return 'nil';
  return { string: 'string', number: 'int', boolean: 'bool' }[typeof value as string] ?? 'struct';
}

/** Whether `if` and `with` take a value for true: it is not empty. */
export function isTrue(value: Value): boolean {
  if (value instanceof Float) return value.value !== 0;
  if (value instanceof Nil) return false;
  return typeof value === 'object' || Boolean(value);
}

/** A value as Go's `%v` prints it. */
export function show(value: Value): string {
  if (value instanceof Float) return formatShortest(value.value);
  if (value instanceof Nil) return '<nil>';
  if (isData(value)) return `{${value.Package} ${value.Name} ${value.Version}}`;
  return String(value);
}

/** Arguments are evaluated when they are asked for: `and` and `or` stop at the first that decides. */
type TemplateFunction = (args: (() => Value)[]) => Value;

/** Thrown by functions; becomes a message with the place. */
export class CallFault extends Error {}

/** A function with the number of arguments that it takes. */
export interface FunctionEntry {
  atLeast: number;
  atMost: number;
  call: TemplateFunction;
}

function entry(atLeast: number, atMost: number, call: (...values: Value[]) => Value): FunctionEntry {
  return { atLeast, atMost, call: (args) => call(...args.map((arg) => arg())) };
}

function shortCircuit(stopsAt: boolean): FunctionEntry {
  return {
    atLeast: 1,
    atMost: Infinity,
    call: (args) => {
      let value: Value = nil;
      for (const arg of args) {
        value = arg();
        if (isTrue(value) === stopsAt) break;
      }
      return value;
    },
  };
}

/** The functions by name. They throw CallFault. */
export const functions: Record<string, FunctionEntry> = {
  and: shortCircuit(false),
  or: shortCircuit(true),
  not: entry(1, 1, (value) => !isTrue(value as Value)),
  eq: entry(1, Infinity, (first, ...others) => {
    if (others.length === 0) throw new CallFault('missing argument for comparison');
    return others.some((other) => compare(first as Value, other, true) === 0);
  }),
  ne: entry(2, 2, (a, b) => compare(a as Value, b as Value, true) !== 0),
  lt: entry(2, 2, (a, b) => compare(a as Value, b as Value) < 0),
  le: entry(2, 2, (a, b) => compare(a as Value, b as Value) <= 0),
  gt: entry(2, 2, (a, b) => compare(a as Value, b as Value) > 0),
  ge: entry(2, 2, (a, b) => compare(a as Value, b as Value) >= 0),
  len: entry(1, 1, (value) => {
    if (typeof value !== 'string') throw new CallFault(`len of type ${typeName(value as Value)}`);
    return Buffer.byteLength(value);
  }),
  slice: entry(1, 3, (value, ...bounds) => {
    if (typeof value !== 'string')
      throw new CallFault(`can't slice item of type ${typeName(value as Value)}`);
    const bytes = Buffer.from(value);
    const [from = 0, to = bytes.length] = bounds;
    for (const bound of [from, to]) {
      if (typeof bound !== 'number')
        throw new CallFault(`cannot index slice/array with type ${typeName(bound)}`);
      if (bound < 0 || bound > bytes.length) throw new CallFault(`index out of range: ${bound}`);
    }
    if (from > to) throw new CallFault(`invalid slice index: ${show(from)} > ${show(to)}`);
    return bytes.subarray(from as number, to as number).toString();
  }),
  print: entry(0, Infinity, (...values) => joinOperands(values)),
  println: entry(0, Infinity, (...values) => `${values.map(show).join(' ')}\n`),
  printf: entry(1, Infinity, (format, ...values) => {
    if (typeof format !== 'string')
      throw new CallFault(`wrong type for value; expected string; got ${typeName(format as Value)}`);
    return formatText(format, values);
  }),
  html: entry(0, Infinity, (...values) => replaceEach(joinOperands(values), htmlEscapes)),
  js: entry(0, Infinity, (...values) =>
    replaceEach(joinOperands(values), jsEscapes).replace(
      /[\x00-\x1f\x7f]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
    ),
  ),
  urlquery: entry(0, Infinity, (...values) =>
    encodeURIComponent(joinOperands(values))
      .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%20', '+'),
  ),
};

const htmlEscapes: Record<string, string> = {
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\ufffd',
};
const jsEscapes: Record<string, string> = {
  '\\': '\\\\',
  "'": "\\'",
  '"': '\\"',
  '<': '\\u003C',
  '>': '\\u003E',
  '&': '\\u0026',
  '=': '\\u003D',
};

function replaceEach(text: string, escapes: Record<string, string>): string {
  return Array.from(text, (character) => escapes[character] ?? character).join('');
}

function compare(a: Value, b: Value, equality = false): number {
  const [left, right] = [typeName(a), typeName(b)];
  if (left !== right) throw new CallFault(`incompatible types for comparison: ${left} and ${right}`);
  if (left === 'struct' || left === 'nil' || (left === 'bool' && !equality)) {
    throw new CallFault('invalid type for comparison');
  }
  const x = a instanceof Float ? a.value : a;
  const y = b instanceof Float ? b.value : b;
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Go's Sprint: a space stands between two operands of which neither is text. */
function joinOperands(values: Value[]): string {
  let out = '';
  values.forEach((value, index) => {
    if (index > 0 && typeof value !== 'string' && typeof values[index - 1] !== 'string') out += ' ';
    out += show(value);
  });
  return out;
}

/** Width and precision beyond this make no image reference, only a long text. */
const maxWidth = 1000;

function formatText(format: string, values: Value[]): string {
  let next = 0;
  const out = format.replace(
    /%([-+# 0]*)(\d*)(?:\.(\d*))?(.?)/gsu,
    (_, flags: string, width: string, precision: string | undefined, verb: string) => {
      if (verb === '%') return '%';
      if (verb === '') return '%!(NOVERB)';
      if (next >= values.length) return `%!${verb}(MISSING)`;
      const value = values[next++] as Value;
      const limit = precision === undefined ? undefined : Math.min(Number(precision), maxWidth);
      const text = formatOne(verb, value, flags, limit);
      if (text === undefined)
        return `%!${verb}(${value instanceof Nil ? '<nil>' : `${typeName(value)}=${show(value)}`})`;
      const columns = Math.min(Number(width), maxWidth);
      if (flags.includes('-')) return padded(text, columns, false);
      if (flags.includes('0') && typeof value !== 'object' && verb !== 'v') {
        const sign = typeof value === 'number' && /^[+-]/.test(text) ? (text[0] as string) : '';
        return sign + text.slice(sign.length).padStart(columns - sign.length, '0');
      }
      return padded(text, columns, true);
    },
  );
  const extra = values.slice(next).map((value) => `${typeName(value)}=${show(value)}`);
  return extra.length === 0 ? out : `${out}%!(EXTRA ${extra.join(', ')})`;
}

function padded(text: string, width: number, left: boolean): string {
  const fill = ' '.repeat(Math.max(0, width - Array.from(text).length));
  return left ? fill + text : text + fill;
}

function formatOne(
  verb: string,
  value: Value,
  flags: string,
  precision: number | undefined,
): string | undefined {
  if (verb === 'v') return show(value);
  if (verb === 'T') return isData(value) ? 'action.imageReferenceTemplateData' : typeName(value);
  if (typeof value === 'string') {
    const text = precision === undefined ? value : Array.from(value).slice(0, precision).join('');
    if (verb === 's') return text;
    if (verb === 'q') return quoteGo(text);
    if (verb === 'x') return Buffer.from(text).toString('hex');
    if (verb === 'X') return Buffer.from(text).toString('hex').toUpperCase();
    return undefined;
  }
  if (typeof value === 'boolean') return verb === 't' ? String(value) : undefined;
  if (typeof value === 'number') {
    const sign = flags.includes('+') && value >= 0 ? '+' : '';
    if (verb === 'd') return sign + String(value);
    if (verb === 'x' || verb === 'X') {
      const digits = value.toString(16);
      return verb === 'x' ? digits : digits.toUpperCase();
    }
    if (verb === 'o') return value.toString(8);
    if (verb === 'b') return value.toString(2);
    if (verb === 'c' && value >= 0 && value <= 0x10ffff) return String.fromCodePoint(value);
    return undefined;
  }
  if (value instanceof Float && (verb === 'f' || verb === 'g')) {
    return verb === 'g' ? formatShortest(value.value) : value.value.toFixed(Math.min(precision ?? 6, 100));
  }
  return undefined;
}
