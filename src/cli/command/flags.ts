import { InvalidArgumentError } from 'commander';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { getItems } from './values.js';

/** The headings below which `--help` lists options, in this order. */
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
/** One of `flagGroups`. */
type FlagGroup = (typeof flagGroups)[number];

/** What every flag may say of itself. */
export interface FlagTraits {
  /** One letter. */
  readonly short?: string;
  readonly group?: FlagGroup;
  /** Works, and is neither shown in help nor offered by shells; `alpha` where `HELP_ALPHA=true` does not show it. */
  readonly hidden?: boolean | 'alpha';
  /** Older names, which go on working unseen; without dashes, one letter for a short one. */
  readonly aliases?: readonly string[];
  /** The key of the flag that is used instead of a hidden one. */
  readonly replacement?: string;
  /**
   * The key of the flag that takes what is none of `choices`: `-o DIR` of scripts, where `-o` is a format and `--to` is
   * the directory.
   */
  readonly otherwise?: string;
  /** The default as it is typed, for help, where `default` has none or another form: `1h`. */
  readonly defaultText?: string;
  /** An empty path means none, as in `opm`, or the command refuses it in words of its own. */
  readonly mayBeEmpty?: boolean;
}

/** The declaration of one flag, whose value is a `T`. Its long name is its key in a record of flags. */
export interface Flag<T> extends FlagTraits {
  readonly summary: string;
  /** The placeholder of the value with its brackets; undefined for a switch. */
  readonly value?: string;
  /** Named in help and offered by shells. */
  readonly choices?: readonly string[];
  /** Items of a list that shells offer; the command checks them. */
  readonly offered?: readonly string[];
  readonly default?: T | undefined;
  /**
   * Makes the value of the text, and for repeatable flags of the values before it. `name` is the flag as it is
   * typed, for messages. Throws InvalidArgumentError or UsageError.
   */
  parse?(text: string, previous: T | undefined, name: string): T;
}

/** Flags by the camel-case form of their names. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- flags of every type of value
export type Flags = Readonly<Record<string, Flag<any>>>;
/** The values of flags, by the same keys. */
export type FlagValues<F extends Flags> = {
  -readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never;
};

/** Returns flags that `--help` lists below one heading. */
export function grouped<const F extends Flags>(group: FlagGroup, flags: F): F {
  return Object.fromEntries(Object.entries(flags).map(([key, item]) => [key, { ...item, group }])) as F;
}

/** Declares a switch: false unless given; also takes `=true` and `=false`, as in Go programs. */
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

/** Declares a flag with one of a few values. */
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

/** Declares a flag whose value may be left out: then it is true. */
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
 * Declares a repeatable flag whose values are lists separated by commas. A list has at least one item: an empty
 * variable of a script is not "all" or "none", except with `mayBeNone`.
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

/** Declares a repeatable flag with a list separated by commas, which may be left out: then it is true. */
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
