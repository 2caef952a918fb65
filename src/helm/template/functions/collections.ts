import type { Budget } from '../budget.js';
import { evaluationFault } from '../fault.js';
import {
  type GoMap,
  type GoValue,
  GoStruct,
  deepCopy,
  getField,
  getMapValue,
  isEqual,
  isGoMap,
  isTrue,
  getKeys,
  getKind,
  setKey,
  toInt,
  toText,
  getType,
} from '../go-values.js';
import { type FunctionTable, define, withMust } from './define.js';

function dict(values: readonly GoValue[]): GoMap {
  const made: GoMap = {};
  for (let i = 0; i < values.length; i += 2)
    setKey(made, toText(values[i] as GoValue), i + 1 < values.length ? (values[i + 1] as GoValue) : '');
  return made;
}

/**
 * Adds missing and empty keys to a map, or with `isOverwriting` all keys; nulls only when overwriting. Maps in the source
 * become part of the target, and change with it. (Source: dario.cat/mergo 1.0.1, deepMerge.)
 */
function mergeInto(target: GoMap, source: GoMap, isOverwriting: boolean, budget: Budget): GoMap {
  for (const [key, value] of Object.entries(source)) {
    budget.countSteps(1);
    const own = getMapValue(target, key) ?? null;
    if (isGoMap(own) && isGoMap(value)) mergeInto(own, value, isOverwriting, budget);
    else if (isOverwriting || (value !== null && !isTrue(own))) setKey(target, key, value);
  }
  return target;
}

const mergeAll = (isOverwriting: boolean) =>
  define('mm*', ([target, ...sources], { budget }) =>
    sources.reduce<GoMap>((made, source) => mergeInto(made, source, isOverwriting, budget), target),
  );

const asList = (value: GoValue): GoValue[] => {
  if (Array.isArray(value)) return value;
  if (value instanceof GoStruct && Array.isArray(value.content)) return value.content;
  throw evaluationFault(`type ${getType(value)} is not a list`);
};

const push = define('aa', ([items, item]) => [...asList(items), item]);

/** Returns a part of a list; nil of an empty one. */
function slice(items: GoValue, [start = 0n, end]: readonly GoValue[]): GoValue {
  const whole = asList(items);
  if (whole.length === 0) return null;
  const [from, to] = [Number(toInt(start)), end === undefined ? whole.length : Number(toInt(end))];
  if (!(from >= 0 && to >= from && to <= whole.length)) throw evaluationFault('slice: index out of range');
  return whole.slice(from, to);
}

/** Returns the value at a path of nested maps, also nil; `otherwise` if one of its keys is missing. */
function dig(args: readonly GoValue[]): GoValue {
  const [map = null, otherwise = null] = args.slice(-2).reverse();
  const value = args.slice(0, -2).reduce<GoValue | undefined>((value, key) => {
    if (value === undefined) return undefined;
    if (!isGoMap(value)) throw evaluationFault(`a ${getType(value)} is no map`);
    return getMapValue(value, toText(key));
  }, map);
  return value === undefined ? otherwise : value;
}

function index(value: GoValue, keys: readonly GoValue[]): GoValue {
  return keys.reduce<GoValue>((value, key) => {
    if (value === null) throw evaluationFault('index of nil pointer');
    if (value instanceof GoStruct) return getField(value, toText(key));
    if (isGoMap(value)) {
      if (typeof key !== 'string') throw evaluationFault(`value has type ${getType(key)}; should be string`);
      return getMapValue(value, key) ?? null;
    }
    if (!Array.isArray(value) && typeof value !== 'string')
      throw evaluationFault(`can't index item of type ${getType(value)}`);
    if (typeof key !== 'bigint') throw evaluationFault(`cannot index slice/array with type ${getType(key)}`);
    const position = Number(key);
    const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
    if (position < 0 || position >= length) throw evaluationFault(`index out of range: ${toText(key)}`);
    return typeof value === 'string'
      ? BigInt(Buffer.from(value)[position] ?? 0)
      : (value[position] as GoValue);
  }, value);
}

/** Functions for lists, maps and types. (Source: Masterminds/sprig v3, text/template.) */
export const collectionFunctions: FunctionTable = {
  list: define('a*', (values) => values),
  tuple: define('a*', (values) => values),
  dict: define('a*', (values) => dict(values)),
  get: define('ms', ([map, key]) => getMapValue(map, key) ?? ''),
  set: define('msa', ([map, key, value]) => {
    setKey(map, key, value);
    return map;
  }),
  unset: define('ms', ([map, key]) => {
    delete map[key];
    return map;
  }),
  hasKey: define('ms', ([map, key]) => Object.hasOwn(map, key)),
  pluck: define('sm*', ([key, ...maps]) =>
    maps.flatMap((map) => (Object.hasOwn(map, key) ? [map[key] as GoValue] : [])),
  ),
  keys: define('m*', (maps) => maps.flatMap(getKeys)),
  values: define('m', ([map]) => getKeys(map).map((key) => map[key] as GoValue)),
  pick: define('ma*', ([map, ...keys]) =>
    dict(keys.map(toText).flatMap((key) => (Object.hasOwn(map, key) ? [key, map[key] as GoValue] : []))),
  ),
  omit: define('ma*', ([map, ...keys]) => {
    const left = new Set(keys.map(toText));
    return dict(Object.entries(map).flatMap(([key, value]) => (left.has(key) ? [] : [key, value])));
  }),
  dig: define('aaa*', dig),
  ...withMust({
    merge: mergeAll(false),
    mergeOverwrite: mergeAll(true),
    deepCopy: define('a', ([value]) => deepCopy(value)),
    push: push,
    append: push,
    prepend: define('aa', ([items, item]) => [item, ...asList(items)]),
    first: define('a', ([items]) => asList(items)[0] ?? null),
    last: define('a', ([items]) => asList(items).at(-1) ?? null),
    rest: define('a', ([items]) => asList(items).slice(1)),
    initial: define('a', ([items]) => asList(items).slice(0, -1)),
    reverse: define('a', ([items]) => [...asList(items)].reverse()),
    uniq: define('a', ([items], { budget }) => {
      const kept: GoValue[] = [];
      for (const item of asList(items)) {
        budget.countSteps(kept.length + 1);
        if (!kept.some((entry) => isEqual(entry, item))) kept.push(item);
      }
      return kept;
    }),
    without: define('aa*', ([items, ...gone]) =>
      asList(items).filter((item) => !gone.some((entry) => isEqual(entry, item))),
    ),
    has: define(
      'aa',
      ([item, items]) => items !== null && asList(items).some((entry) => isEqual(entry, item)),
    ),
    compact: define('a', ([items]) => asList(items).filter(isTrue)),
    slice: define('aa*', ([items, ...indexes]) => slice(items, indexes)),
    chunk: define('ia', ([size, items]) => {
      const all = asList(items);
      if (size < 1) throw evaluationFault('chunk: size out of range');
      const chunks: GoValue[] = [];
      for (let i = 0; i < all.length; i += size) chunks.push(all.slice(i, i + size));
      return chunks;
    }),
  }),
  concat: define('a*', (lists, { budget }) => {
    budget.requireItems(lists.reduce<number>((sum, item) => sum + asList(item).length, 0));
    return lists.flatMap(asList);
  }),
  index: define('aa*', ([value, ...keys]) => index(value, keys)),
  len: define('a', ([value]) => {
    if (typeof value === 'string') return BigInt(Buffer.byteLength(value));
    const content = value instanceof GoStruct ? value.content : value;
    if (Array.isArray(content)) return BigInt(content.length);
    if (isGoMap(content)) return BigInt(Object.keys(content).length);
    throw evaluationFault(`len of type ${getType(content)}`);
  }),
  typeOf: define('a', ([value]) => getType(value)),
  kindOf: define('a', ([value]) => getKind(value)),
  typeIs: define('sa', ([type, value]) => getType(value) === type),
  typeIsLike: define('sa', ([type, value]) => getType(value).replace(/^\*/, '') === type.replace(/^\*/, '')),
  kindIs: define('sa', ([kind, value]) => getKind(value) === kind),
  deepEqual: define('aa', ([a, b]) => isEqual(a, b)),
};
