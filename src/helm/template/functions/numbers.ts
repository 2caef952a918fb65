import { evaluationFault } from '../fault.js';
import { type GoValue, isEqual, isNumber, isTrue, toFloat, toInt, getType } from '../go-values.js';
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

function compare(a: GoValue, b: GoValue): number {
  if (isNumber(a) && isNumber(b)) return Number(a) - Number(b);
  if (typeof a === 'string' && typeof b === 'string') return a === b ? 0 : a < b ? -1 : 1;
  throw evaluationFault(`incompatible types for comparison: ${getType(a)} and ${getType(b)}`);
}

const max = define('aa*', ([first, ...rest]) => ints(rest).reduce((a, b) => (a > b ? a : b), toInt(first)));

function round(value: number, places: number): number {
  const factor = 10 ** Math.min(Math.max(places, 0), 15);
  return (value < 0 ? -1 : 1) * (Math.round(Math.abs(value) * factor) / factor);
}

/** Functions for numbers and comparisons. An int equals a float of the same value, which Go cannot compare. */
export const numberFunctions: FunctionTable = {
  int: define('a', ([value]) => toInt(value)),
  int64: define('a', ([value]) => toInt(value)),
  float64: define('a', ([value]) => toFloat(value)),
  atoi: define('s', ([text]) => toInt(text)),
  toDecimal: define('a', ([value]) => {
    const text = String(value);
    return /^[0-7]{1,21}$/.test(text) ? BigInt(`0o${text}`) : 0n;
  }),
  add1: define('a', ([value]) => wrap(toInt(value) + 1n)),
  add: define('a*', (values) => wrap(ints(values).reduce((a, b) => a + b, 0n))),
  sub: define('aa', ([a, b]) => wrap(toInt(a) - toInt(b))),
  mul: define('aa*', (values) => wrap(ints(values).reduce((a, b) => wrap(a * b), 1n))),
  div: define('aa', ([a, b]) => toInt(a) / nonZero(toInt(b))),
  mod: define('aa', ([a, b]) => toInt(a) % nonZero(toInt(b))),
  add1f: define('a', ([value]) => toFloat(value) + 1),
  addf: define('a*', (values) => values.map(toFloat).reduce((a, b) => a + b, 0)),
  subf: define('aa*', ([first, ...rest]) => rest.map(toFloat).reduce((a, b) => a - b, toFloat(first))),
  divf: define('aa*', ([first, ...rest]) => rest.map(toFloat).reduce((a, b) => a / b, toFloat(first))),
  mulf: define('aa*', (values) => values.map(toFloat).reduce((a, b) => a * b, 1)),
  ...{ max, biggest: max },
  min: define('aa*', ([first, ...rest]) => ints(rest).reduce((a, b) => (a < b ? a : b), toInt(first))),
  maxf: define('a*', (values) => Math.max(...values.map(toFloat))),
  minf: define('a*', (values) => Math.min(...values.map(toFloat))),
  ceil: define('a', ([value]) => Math.ceil(toFloat(value))),
  floor: define('a', ([value]) => Math.floor(toFloat(value))),
  round: define('aa*', ([value, places]) => round(toFloat(value), Number(places ?? 0n))),
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
    return rest.some((item) => isEqual(first, item));
  }),
  ne: define('aa', ([a, b]) => !isEqual(a, b)),
  lt: define('aa', ([a, b]) => compare(a, b) < 0),
  le: define('aa', ([a, b]) => compare(a, b) <= 0),
  gt: define('aa', ([a, b]) => compare(a, b) > 0),
  ge: define('aa', ([a, b]) => compare(a, b) >= 0),
  not: define('a', ([value]) => !isTrue(value)),
  // Both evaluate their operands lazily at the call.
  and: define('a*', (values) => values.find((item) => !isTrue(item)) ?? values.at(-1) ?? null),
  or: define('a*', (values) => values.find(isTrue) ?? values.at(-1) ?? null),
};
