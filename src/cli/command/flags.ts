import { invalidValue, readValue, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { NameIndex } from '../../core/suggest.js';
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
  /** Key of the flag without which this one is refused; of several, one is enough. */
  readonly needs?: string | readonly string[];
  /** Keys of the flags with which this one is refused; `output=json` for a value, `<name>` for an argument. */
  readonly excludes?: readonly string[];
  readonly isRequired?: boolean;
  /** Flags in place of a required one, as in `excludes`. */
  readonly requiredUnless?: readonly string[];
}

/** Declaration of a flag with values `T`; its long name is its key in a record. */
export interface Flag<T> extends FlagTraits {
  readonly summary: string;
  /** Placeholder of the value with brackets; undefined for a switch. */
  readonly value?: string;
  /** Values for help and completion. */
  readonly choices?: readonly string[];
  /** List items; others are refused. */
  readonly offered?: readonly string[];
  readonly default?: T | undefined;
  /**
   * Reads a value; repeatable flags add to `previous`. `name` is the flag as typed. Throws UsageError.
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

/** Returns a flag without which the command is refused. */
export function required<T>(item: Flag<T | undefined>): Flag<T> {
  return { ...(item as Flag<T>), isRequired: true };
}

/** Returns a flag that is required unless others are set; they are named as in `excludes`. */
export function requiredUnless<T>(others: readonly string[], item: Flag<T>): Flag<T> {
  return { ...item, isRequired: true, requiredUnless: others };
}

/** Returns flags that `--help` lists below one heading. */
export function grouped<const F extends Flags>(group: FlagGroup, flags: F): F {
  return Object.fromEntries(Object.entries(flags).map(([key, item]) => [key, { ...item, group }])) as F;
}

/** Declares a switch, false by default; also accepts `=true` and `=false`, as Go programs do. */
export function flag(summary: string, traits: FlagTraits & { default?: boolean } = {}): Flag<boolean> {
  return { default: false, ...traits, summary };
}

/** Declares a flag with a text; undefined unless it has a default. */
export function text<D extends string | undefined = undefined>(
  value: string,
  summary: string,
  traits: FlagTraits & { default?: D; choices?: readonly string[] } = {},
): Flag<string | D> {
  return { ...traits, value: `<${value}>`, summary };
}

/** Declares a flag whose value is read by `parse`; undefined unless it has a default. */
export function parsed<T, D extends T | undefined = undefined>(
  value: string,
  summary: string,
  parse: (text: string) => T,
  traits: FlagTraits & { default?: D; choices?: readonly string[] } = {},
): Flag<T | D> {
  return {
    ...traits,
    value: `<${value}>`,
    summary,
    parse: (text, _previous, name) => readValue(name, text, parse),
  };
}

/** Declares a flag with a fixed set of values; undefined unless it has a default. */
export function choice<const C extends string, D extends C | undefined = undefined>(
  value: string,
  choices: readonly C[],
  summary: string,
  traits: FlagTraits & { default?: D } = {},
): Flag<C | D> {
  const parse = (text: string, _: unknown, name: string): C => {
    const match = choices.find((item) => item === text);
    if (match !== undefined) return match;
    throw invalidChoice(name, text, choices);
  };
  return { ...traits, value: `<${value}>`, summary, choices, parse };
}

function requireOffered(name: string, item: string, offered: readonly string[]): void {
  if (offered.includes(item)) return;
  const near = new NameIndex(offered).nearest(item.toLowerCase());
  throw invalidChoice(name, item, offered, near && `did you mean ${quoteGo(near)}?`);
}

function invalidChoice(name: string, text: string, choices: readonly string[], hint?: string): UsageError {
  const problem = `invalid ${name} value ${quoteGo(text)}, expected (${choices.join('|')})`;
  return new UsageError(problem, { hint });
}

/** Declares a flag with an optional value; true without one. */
export function optionalValue(
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
export function list<const C extends string = string>(
  value: string,
  summary: string,
  { mayBeNone = false, ...traits }: FlagTraits & { mayBeNone?: boolean; offered?: readonly C[] } = {},
): Flag<C[] | undefined> {
  const { offered } = traits;
  return {
    ...traits,
    value: `<${value},…>`,
    summary: `${summary}, repeatable`,
    parse: (value, previous, name) => {
      const items = getItems(value);
      if (items.length === 0 && !mayBeNone) throw invalidValue(name, value, 'expected at least one item');
      if (offered !== undefined) for (const item of items) requireOffered(name, item, offered);
      return [...(previous ?? []), ...(items as C[])];
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
