import { InvalidArgumentError } from 'commander';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { getItems } from './values.js';

/** Headings of options in `--help`, in this order. */
export const flagGroups = [
  'Selection',
  'Input',
  'Output',
  'Behavior',
  'Cluster',
  'Server',
  'Registry',
  'Limits',
] as const;
type FlagGroup = (typeof flagGroups)[number];

/** Traits of every flag. */
export interface FlagTraits {
  /** One letter. */
  readonly short?: string;
  readonly group?: FlagGroup;
  /** Omitted from help and completion; `alpha` unless `HELP_ALPHA=true`. */
  readonly hidden?: boolean | 'alpha';
  /** Hidden older names, without dashes; one letter for a short name. */
  readonly aliases?: readonly string[];
  /** Key of the flag that replaces a hidden one. */
  readonly replacement?: string;
  /** Key of the flag for values beyond `choices`: `-o DIR` of older scripts sets `--to`. */
  readonly otherwise?: string;
  /** Default for help, if `default` is unset or has another form, e.g. `1h`. */
  readonly defaultText?: string;
  /** Accepts an empty path, which means none as in `opm`, or is rejected by the command. */
  readonly mayBeEmpty?: boolean;
}

/** Declaration of a flag with values `T`; its long name is its key in a record. */
export interface Flag<T> extends FlagTraits {
  readonly summary: string;
  /** Placeholder of the value with brackets; undefined for a switch. */
  readonly value?: string;
  /** Values for help and completion. */
  readonly choices?: readonly string[];
  /** List items for completion; the command checks them. */
  readonly offered?: readonly string[];
  readonly default?: T | undefined;
  /**
   * Reads a value; repeatable flags add to `previous`. `name` is the flag as typed. Throws InvalidArgumentError or
   * UsageError.
   */
  parse?(text: string, previous: T | undefined, name: string): T;
}

/** Flags by the camel-case form of their names. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- flags of every type of value
export type Flags = Readonly<Record<string, Flag<any>>>;
/** Values of flags by key. */
export type FlagValues<F extends Flags> = {
  -readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never;
};

/** Returns flags that `--help` lists below one heading. */
export function grouped<const F extends Flags>(group: FlagGroup, flags: F): F {
  return Object.fromEntries(Object.entries(flags).map(([key, item]) => [key, { ...item, group }])) as F;
}

/** Declares a switch, false by default; also accepts `=true` and `=false`, as Go programs do. */
export function flag(summary: string, traits: FlagTraits & { default?: boolean } = {}): Flag<boolean> {
  return { default: false, ...traits, summary };
}

/** Declares a flag with a text. */
export function text(
  value: string,
  summary: string,
  traits: FlagTraits & { default: string; choices?: readonly string[] },
): Flag<string>;
export function text(
  value: string,
  summary: string,
  traits?: FlagTraits & { choices?: readonly string[] },
): Flag<string | undefined>;
export function text(
  value: string,
  summary: string,
  traits: FlagTraits & { default?: string; choices?: readonly string[] } = {},
): Flag<string | undefined> {
  return { ...traits, value: `<${value}>`, summary };
}

/** Declares a flag whose value is read by `parse`. */
export function parsed<T>(
  value: string,
  summary: string,
  parse: (text: string) => T,
  traits?: FlagTraits & { choices?: readonly string[] },
): Flag<T | undefined>;
export function parsed<T>(
  value: string,
  summary: string,
  parse: (text: string) => T,
  traits: FlagTraits & { default: T; choices?: readonly string[] },
): Flag<T>;
export function parsed<T>(
  value: string,
  summary: string,
  parse: (text: string) => T,
  traits: FlagTraits & { default?: T | undefined; choices?: readonly string[] } = {},
): Flag<T | undefined> {
  return { ...traits, value: `<${value}>`, summary, parse: (value) => parse(value) };
}

/** Declares a flag with a fixed set of values. */
export function choice<const C extends string>(
  value: string,
  choices: readonly C[],
  summary: string,
  traits: FlagTraits & { default: NoInfer<C> },
): Flag<C>;
export function choice<const C extends string>(
  value: string,
  choices: readonly C[],
  summary: string,
  traits?: FlagTraits,
): Flag<C | undefined>;
export function choice<const C extends string>(
  value: string,
  choices: readonly C[],
  summary: string,
  traits: FlagTraits & { default?: C } = {},
): Flag<C | undefined> {
  return {
    ...traits,
    value: `<${value}>`,
    summary,
    choices,
    parse: (value, _, name) => checkChoice(name, value, choices),
  };
}

/** Declares a flag with an optional value; true without one. */
export function optional(
  value: string,
  summary: string,
  traits: FlagTraits = {},
): Flag<string | true | undefined> {
  return { ...traits, value: `[${value}]`, summary };
}

/** Declares a repeatable flag, one value each time. */
export function repeated(
  value: string,
  summary: string,
  traits: FlagTraits = {},
): Flag<string[] | undefined> {
  return {
    ...traits,
    value: `<${value}>`,
    summary: `${summary}, repeatable`,
    parse: (value, previous) => [...(previous ?? []), value],
  };
}

/**
 * Declares a repeatable flag with comma-separated lists. An empty list, as of an unset variable, is refused unless
 * `mayBeNone`.
 */
export function list(
  value: string,
  summary: string,
  { mayBeNone = false, ...traits }: FlagTraits & { mayBeNone?: boolean; offered?: readonly string[] } = {},
): Flag<string[] | undefined> {
  return {
    ...traits,
    value: `<${value},…>`,
    summary: `${summary}, repeatable`,
    parse: (value, previous) => {
      const items = getItems(value);
      if (items.length === 0 && !mayBeNone) throw new InvalidArgumentError('expected at least one item');
      return [...(previous ?? []), ...items];
    },
  };
}

/** Declares a repeatable flag with an optional comma-separated list; true without one. */
export function optionalList(
  value: string,
  summary: string,
  traits: FlagTraits = {},
): Flag<string[] | true | undefined> {
  const { parse } = list(value, summary, traits);
  return {
    ...traits,
    value: `[${value},…]`,
    summary,
    parse: (value, previous, name) => parse?.(value, previous === true ? undefined : previous, name) ?? [],
  };
}

function checkChoice<C extends string>(name: string, value: string, choices: readonly C[]): C {
  const match = choices.find((item) => item === value);
  if (match !== undefined) return match;
  throw new UsageError(`invalid ${name} value ${quoteGo(value)}, expected (${choices.join('|')})`);
}
