import type { CallContext, TemplateFunction } from '../evaluate.js';
import { TemplateFault, evaluationFault } from '../fault.js';
import { type GoMap, type GoValue, isGoMap, getType } from '../go-values.js';

/** Types of the letters of a signature. */
interface Kinds {
  /** A string. */
  s: string;
  /** An int; floats are no ints. */
  i: number;
  l: GoValue[];
  m: GoMap;
  b: boolean;
  a: GoValue;
}

type Arguments<S extends string> = S extends `${infer K extends keyof Kinds}*`
  ? Kinds[K][]
  : S extends `${infer K extends keyof Kinds}${infer Rest}`
    ? [Kinds[K], ...Arguments<Rest>]
    : [];

/**
 * Creates a function whose arguments are checked against a signature: one letter each, the last optionally followed
 * by `*` for any number. Failures are TemplateFaults of the kind `evaluation`.
 */
export function define<const S extends string>(
  signature: S,
  call: (args: Arguments<S>, context: CallContext) => GoValue,
): TemplateFunction {
  const isVariadic = signature.endsWith('*');
  const kinds = [...signature.replace('*', '')] as (keyof Kinds)[];
  const required = isVariadic ? kinds.length - 1 : kinds.length;
  return (args, context) => {
    if (args.length < required || (!isVariadic && args.length > required))
      throw evaluationFault(
        `wrong number of args: want ${isVariadic ? 'at least ' : ''}${required} got ${args.length}`,
      );
    const checked = args.map((value, i) =>
      convert(value, kinds[Math.min(i, kinds.length - 1)] as keyof Kinds),
    );
    return call(checked as Arguments<S>, context);
  };
}

function convert(value: GoValue, kind: keyof Kinds): unknown {
  if (kind === 'a') return value;
  if (kind === 'i' && typeof value === 'bigint') return Number(value);
  // Nil is an empty map where one is expected.
  if (value === null && kind === 'm') return {};
  const isOfKind =
    (kind === 's' && typeof value === 'string') ||
    (kind === 'b' && typeof value === 'boolean') ||
    (kind === 'l' && Array.isArray(value)) ||
    (kind === 'm' && isGoMap(value));
  if (isOfKind) return value;
  const expected = { s: 'string', i: 'int', l: 'list', m: 'map', b: 'bool' }[kind];
  throw evaluationFault(
    value === null
      ? `invalid value; expected ${expected}`
      : `wrong type for value; expected ${expected}; got ${getType(value)}`,
  );
}

/** Returns a Helm function that is not supported, with the reason. */
export function lacking(name: string, why: string): TemplateFunction {
  return () => {
    throw new TemplateFault('unsupported', `function ${name}: ${why}`);
  };
}

export type FunctionTable = Readonly<Record<string, TemplateFunction>>;

/** Adds the `must` variants of functions, which are the same here: all functions fail for wrong arguments. */
export function withMust(functions: FunctionTable): FunctionTable {
  const variants = Object.entries(functions).map(
    ([name, call]) => [`must${name.slice(0, 1).toUpperCase()}${name.slice(1)}`, call] as const,
  );
  return { ...functions, ...Object.fromEntries(variants) };
}
