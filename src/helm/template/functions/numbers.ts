import { evaluationFault } from '../fault.js';
import { compareBytes } from '../../../core/order.js';
import { formatGoFloat } from '../../../document/go-float.js';
import {
  type GoValue,
  GoStruct,
  getType,
  isEqual,
  isInt64,
  isNumber,
  isTrue,
  toFloat,
  toInt,
  toText,
} from '../go-values.js';
import type { Budget } from '../budget.js';
import { type FunctionTable, define } from './define.js';

const ints = (values: readonly GoValue[]): bigint[] => values.map(toInt);
const wrap = (value: bigint): bigint => BigInt.asIntN(64, value);
const nonZero = (value: bigint): bigint => {
  if (value === 0n) throw evaluationFault('division by zero');
  return value;
};

/** Returns the numbers from `start` to before `stop`. */
function counting(start: number, stop: number, step: number, budget: Budget): GoValue[] {
  if (step === 0 || (stop > start ? step < 0 : step > 0)) return [];
  const count = Math.ceil((stop - start) / step);
  budget.requireItems(count);
  return Array.from({ length: Math.max(0, count) }, (_, i) => BigInt(start + i * step));
}

function incomparable(a: GoValue, b: GoValue): Error {
  return evaluationFault(`incompatible types for comparison: ${getType(a)} and ${getType(b)}`);
}

function compare(a: GoValue, b: GoValue): number {
  if (typeof a === 'string' && typeof b === 'string') return compareBytes(a, b);
  if (!isNumber(a) || typeof a !== typeof b) throw incomparable(a, b);
  return a < (b as typeof a) ? -1 : a > (b as typeof a) ? 1 : 0;
}

/** Reports whether two values other than lists and maps are of one type and equal, or both nil. (Source: text/template, eq.) */
function isSame(a: GoValue, b: GoValue): boolean {
  if (a === null || b === null) return a === b;
  if (a instanceof GoStruct && b instanceof GoStruct) return isEqual(a, b);
  if (typeof a !== typeof b || typeof a === 'object') throw incomparable(a, b);
  return a === b;
}

const max = define('aa*', ([first, ...rest]) => ints(rest).reduce((a, b) => (a > b ? a : b), toInt(first)));

/** Rounds to decimal places, up from a fraction of `roundOn`; negative numbers always down, as sprig does. */
function round(value: number, places: number, roundOn: number): number {
  const factor = 10 ** places;
  const digits = value * factor;
  return (digits % 1 >= roundOn ? Math.ceil(digits) : Math.floor(digits)) / factor;
}

/** A decimal number, `digits` times ten to the power of `-scale`. */
interface Decimal {
  digits: bigint;
  scale: number;
}

/** Decimal places of a quotient. */
const quotientScale = 16;

function parseDecimal(value: number): Decimal {
  if (!Number.isFinite(value)) throw evaluationFault(`cannot create a decimal from ${formatGoFloat(value)}`);
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  const scale = (mantissa.split('.')[1] ?? '').length - Number(exponent);
  return { digits: BigInt(mantissa.replace('.', '')), scale };
}

/** Returns the digits of a number with a larger scale. */
const scaled = ({ digits, scale }: Decimal, to: number): bigint => digits * 10n ** BigInt(to - scale);

const addDecimals = (a: Decimal, b: Decimal, sign = 1n): Decimal => {
  const scale = Math.max(a.scale, b.scale);
  return { digits: scaled(a, scale) + sign * scaled(b, scale), scale };
};

function divideDecimals(a: Decimal, b: Decimal): Decimal {
  if (b.digits === 0n) throw evaluationFault('decimal division by 0');
  const scale = Math.max(a.scale, b.scale + quotientScale, quotientScale);
  const [dividend, divisor] = [scaled(a, scale), scaled(b, Math.max(b.scale, scale - quotientScale))];
  const isNegative = dividend < 0n !== divisor < 0n;
  const size = (value: bigint): bigint => (value < 0n ? -value : value);
  const rounded = (2n * size(dividend) + size(divisor)) / (2n * size(divisor));
  return { digits: isNegative ? -rounded : rounded, scale: scale - Math.max(b.scale, scale - quotientScale) };
}

/** Applies a decimal operation to floats, without the errors of binary fractions. (Source: sprig, execDecimalOp.) */
function calculate(
  [first, ...rest]: readonly GoValue[],
  operate: (a: Decimal, b: Decimal) => Decimal,
): number {
  const toDecimal = (value: GoValue): Decimal => parseDecimal(toFloat(value));
  const { digits, scale } = rest.map(toDecimal).reduce(operate, toDecimal(first ?? 0n));
  return Number(`${digits}e${-scale}`);
}

/** Functions for numbers and comparisons; an int and a float cannot be compared, as in Go. */
export const numberFunctions: FunctionTable = {
  int: define('a', ([value]) => toInt(value)),
  int64: define('a', ([value]) => toInt(value)),
  float64: define('a', ([value]) => toFloat(value)),
  atoi: define('s', ([text]) => {
    const value = /^[+-]?\d+$/.test(text) ? BigInt(text.replace('+', '')) : 0n;
    return isInt64(value) ? value : 0n;
  }),
  toDecimal: define('a', ([value]) => {
    const [, sign, digits] = /^([+-]?)([0-7]{1,21})$/.exec(toText(value)) ?? [];
    return digits === undefined ? 0n : BigInt(`0o${digits}`) * (sign === '-' ? -1n : 1n);
  }),
  add1: define('a', ([value]) => wrap(toInt(value) + 1n)),
  add: define('a*', (values) => wrap(ints(values).reduce((a, b) => a + b, 0n))),
  sub: define('aa', ([a, b]) => wrap(toInt(a) - toInt(b))),
  mul: define('aa*', (values) => wrap(ints(values).reduce((a, b) => wrap(a * b), 1n))),
  div: define('aa', ([a, b]) => toInt(a) / nonZero(toInt(b))),
  mod: define('aa', ([a, b]) => toInt(a) % nonZero(toInt(b))),
  add1f: define('a', ([value]) => toFloat(value) + 1),
  addf: define('a*', (values) => calculate(values, (a, b) => addDecimals(a, b))),
  subf: define('aa*', (values) => calculate(values, (a, b) => addDecimals(a, b, -1n))),
  divf: define('aa*', (values) => calculate(values, divideDecimals)),
  mulf: define('aa*', (values) =>
    calculate(values, (a, b) => ({ digits: a.digits * b.digits, scale: a.scale + b.scale })),
  ),
  max,
  biggest: max,
  min: define('aa*', ([first, ...rest]) => ints(rest).reduce((a, b) => (a < b ? a : b), toInt(first))),
  maxf: define('a*', (values) => Math.max(...values.map(toFloat))),
  minf: define('a*', (values) => Math.min(...values.map(toFloat))),
  ceil: define('a', ([value]) => Math.ceil(toFloat(value))),
  floor: define('a', ([value]) => Math.floor(toFloat(value))),
  round: define('aia*', ([value, places, roundOn = 0.5]) => round(toFloat(value), places, toFloat(roundOn))),
  randInt: define('ii', ([from]) => BigInt(from)),
  until: define('i', ([count], { budget }) => counting(0, count, count < 0 ? -1 : 1, budget)),
  untilStep: define('iii', ([start, stop, step], { budget }) => counting(start, stop, step, budget)),
  seq: define('i*', (values, { budget }) => {
    const [start, step, stop] =
      values.length === 1
        ? [1, (values[0] as number) < 1 ? -1 : 1, values[0] as number]
        : values.length === 2
          ? [values[0] as number, (values[1] as number) < (values[0] as number) ? -1 : 1, values[1] as number]
          : [values[0] ?? 0, values[1] ?? 0, values[2] ?? 0];
    if (values.length === 0 || values.length > 3) return '';
    return counting(start, stop + Math.sign(step), step, budget).join(' ');
  }),
  eq: define('aa*', ([first, ...rest]) => {
    if (rest.length === 0) throw evaluationFault('missing argument for comparison');
    return rest.some((item) => isSame(first, item));
  }),
  ne: define('aa', ([a, b]) => !isSame(a, b)),
  lt: define('aa', ([a, b]) => compare(a, b) < 0),
  le: define('aa', ([a, b]) => compare(a, b) <= 0),
  gt: define('aa', ([a, b]) => compare(a, b) > 0),
  ge: define('aa', ([a, b]) => compare(a, b) >= 0),
  not: define('a', ([value]) => !isTrue(value)),
  // Both evaluate their operands lazily at the call.
  and: define('a*', (values) => values.find((item) => !isTrue(item)) ?? values.at(-1) ?? null),
  or: define('a*', (values) => values.find(isTrue) ?? values.at(-1) ?? null),
};
