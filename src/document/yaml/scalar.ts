/** Scalars of YAML 1.1 as go-yaml 2 resolves them. */
import { formatGoFloat } from '../go-float.js';

/** Type of an unquoted text with its value; timestamps keep their text. */
export type ResolvedScalar =
  | { type: 'null'; value: null }
  | { type: 'bool'; value: boolean }
  | { type: 'int'; value: number | bigint }
  | { type: 'float'; value: number }
  | { type: 'timestamp'; value: string }
  | { type: 'str'; value: string };

const WORDS = new Map<string, ResolvedScalar>();
for (const text of ['', '~', 'null', 'Null', 'NULL']) WORDS.set(text, { type: 'null', value: null });
for (const text of ['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON']) {
  WORDS.set(text, { type: 'bool', value: true });
}
for (const text of ['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF']) {
  WORDS.set(text, { type: 'bool', value: false });
}
for (const text of ['.nan', '.NaN', '.NAN']) WORDS.set(text, { type: 'float', value: NaN });
for (const text of ['.inf', '.Inf', '.INF']) {
  WORDS.set(text, { type: 'float', value: Infinity });
  WORDS.set(`+${text}`, { type: 'float', value: Infinity });
  WORDS.set(`-${text}`, { type: 'float', value: -Infinity });
}

const MAX_INT64 = 2n ** 63n - 1n;
const MAX_UINT64 = 2n ** 64n - 1n;
const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]+)|(0|[1-9][0-9]*))$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const DOT_FLOAT = /^\.[0-9]+(?:[eE][-+]?[0-9]+)?$/;
const TIMESTAMP = new RegExp(
  '^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})' +
    '(?:(?:[Tt]| +)([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?$',
);

/** Reports whether text starting with this character (code unit) can be anything but a string. */
export function mayResolve(first: number): boolean {
  return first < 128 && FIRST[first] === 1;
}

const FIRST = new Uint8Array(128);
for (const char of '+-.0123456789yYnNtTfFoO~') FIRST[char.charCodeAt(0)] = 1;

/** Resolves the text of an unquoted scalar without a tag. */
export function resolveScalar(text: string): ResolvedScalar {
  const first = text.charCodeAt(0);
  if (text.length > 0 && !mayResolve(first)) return { type: 'str', value: text };
  if (text.length <= 5) {
    const word = WORDS.get(text);
    if (word !== undefined) return word;
  }
  if (first === 0x2e) {
    const value = DOT_FLOAT.test(text) ? Number(text) : NaN;
    return Number.isFinite(value) ? { type: 'float', value } : { type: 'str', value: text };
  }
  if ((first >= 0x30 && first <= 0x39) || first === 0x2d || first === 0x2b) return resolveNumber(text);
  return { type: 'str', value: text };
}

function resolveNumber(text: string): ResolvedScalar {
  if (isTimestamp(text)) return { type: 'timestamp', value: text };
  const plain = text.includes('_') ? text.replaceAll('_', '') : text;
  const integer = parseInteger(plain);
  if (integer !== undefined) return { type: 'int', value: integer };
  if (FLOAT.test(plain)) {
    const value = Number(plain);
    if (Number.isFinite(value)) return { type: 'float', value };
  }
  // A bug of Go's: it accepts a sign after the binary prefix.
  const binary = /^0b([-+])([01]+)$/.exec(plain);
  if (binary !== null) {
    const value = signed(binary[1] === '-', BigInt(`0b${binary[2] as string}`));
    if (value !== undefined) return { type: 'int', value };
  }
  return { type: 'str', value: text };
}

function parseInteger(text: string): number | bigint | undefined {
  const match = INTEGER.exec(text);
  if (match === null) return undefined;
  const decimal = match[6];
  if (decimal !== undefined && decimal.length < 16) return Number(text) || 0;
  const digits =
    decimal ??
    (match[2] !== undefined
      ? `0x${match[2]}`
      : match[3] !== undefined
        ? `0b${match[3]}`
        : `0o${match[4] ?? (match[5] as string)}`);
  // 2^64 has 20 digits; longer ones are out of range.
  if (decimal !== undefined && digits.length > 20) return undefined;
  const value = BigInt(digits);
  if (match[1] === '') return value <= MAX_UINT64 ? narrow(value) : undefined;
  return signed(match[1] === '-', value);
}

function signed(negative: boolean, value: bigint): number | bigint | undefined {
  const result = negative ? -value : value;
  return result <= MAX_INT64 && result >= -MAX_INT64 - 1n ? narrow(result) : undefined;
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Reports whether go-yaml reads the text as a date or timestamp. */
function isTimestamp(text: string): boolean {
  if (text.charCodeAt(4) !== 0x2d) return false;
  const match = TIMESTAMP.exec(text);
  if (match === null) return false;
  const [, year, month, day, hour, minute, second, zone] = match;
  // Only the form with T has a zone, and requires it.
  if (hour !== undefined && (zone === undefined) !== text.includes(' ')) return false;
  if (zone !== undefined && zone !== 'Z') {
    if (Number(zone.slice(1, 3)) > 24 || Number(zone.slice(4)) > 60) return false;
  }
  if (Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59 || Number(second ?? 0) > 59) return false;
  const m = Number(month);
  const d = Number(day);
  return m >= 1 && m <= 12 && d >= 1 && d <= daysIn(Number(year), m);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Returns a float as Go writes it in YAML: `1e+06`, `1.5`, `.nan`. */
export function formatFloat(value: number): string {
  if (Number.isFinite(value)) return formatGoFloat(value);
  return Number.isNaN(value) ? '.nan' : value > 0 ? '.inf' : '-.inf';
}

/** Returns the text of a numeric mapping key, which Go formats with 32-bit precision. */
export function formatFloatKey(value: number): string {
  const single = Math.fround(value);
  if (!Number.isFinite(single) || single === 0) return formatFloat(single);
  for (let digits = 1; digits < 9; digits++) {
    const text = Number(single.toPrecision(digits));
    if (Math.fround(text) === single) return formatFloat(text);
  }
  return formatFloat(Number(single.toPrecision(9)));
}

const SURROGATE = /[\ud800-\udfff]/;

/** Reports whether all surrogates of a text are paired. */
export function isWellFormed(text: string): boolean {
  return !SURROGATE.test(text) || !/\p{Surrogate}/u.test(text);
}

/** Returns the number of line feeds from one position to another (exclusive). */
export function countBreaks(text: string, from: number, to: number): number {
  let breaks = 0;
  for (
    let position = text.indexOf('\n', from);
    position >= 0 && position < to;
    position = text.indexOf('\n', position + 1)
  )
    breaks++;
  return breaks;
}

/** Meanings of single characters after a backslash in double quotes. Go rejects `\/`, which JSON allows. */
export const SINGLE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['0', '\0'],
  ['a', '\x07'],
  ['b', '\b'],
  ['t', '\t'],
  ['n', '\n'],
  ['v', '\v'],
  ['f', '\f'],
  ['r', '\r'],
  ['e', '\x1b'],
  [' ', ' '],
  ['"', '"'],
  ["'", "'"],
  ['\\', '\\'],
  ['/', '/'],
  ['N', '\x85'],
  ['_', '\xa0'],
  ['L', '\u2028'],
  ['P', '\u2029'],
]);
