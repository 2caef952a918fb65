import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import type { FlagValues, Flags } from './flags.js';
import type { CommandSession } from '../session.js';
import type { GlobalOptions } from './global-flags.js';

/** A positional argument: `<name>`, `[name]`, `<name...>` or `[name...]`. */
export interface Argument<S extends string = string> {
  readonly spec: S;
  readonly summary: string;
  readonly choices?: readonly string[];
}

/** Declares a positional argument. */
export function argument<const S extends string>(
  spec: S,
  summary = '',
  traits: { choices?: readonly string[] } = {},
): Argument<S> {
  return { spec, summary, ...traits };
}

type ArgumentValue<S extends string> = S extends `${string}...${string}`
  ? string[]
  : S extends `[${string}`
    ? string | undefined
    : string;

type ArgumentValues<A extends readonly Argument[]> = {
  [I in keyof A]: A[I] extends Argument<infer S> ? ArgumentValue<S> : never;
};

/** Other tool with some of the commands. */
type Tool = 'opm' | 'oc' | 'oc-mirror';

/** Command tree, for completion. */
export interface LoadedCommands {
  readonly program: Command;
  /** Loads a command and those directly below it; with `deeply` all below it. */
  loadBelow(command: Command, options?: { deeply?: boolean }): Promise<void>;
  /** Loads the commands of a line and returns the last one. */
  loadNamed(words: readonly string[]): Promise<Command>;
  /** Reads a command line without running its command. Throws UsageError for one that is refused. */
  check(words: readonly string[]): Promise<CheckedCall>;
}

/** Values of a command line whose command was not run. */
export interface CheckedCall {
  readonly args: readonly unknown[];
  readonly options: Readonly<Record<string, unknown>>;
}

interface Call<A extends readonly Argument[], F extends Flags, G extends Flags> {
  readonly context: CommandContext;
  readonly commands: LoadedCommands;
  /** Tool whose command is called; see `CommandDeclaration.tool`. */
  readonly tool: Tool | undefined;
  readonly args: ArgumentValues<A>;
  /** Values of own, inherited and global flags. */
  readonly options: FlagValues<F> & FlagValues<Omit<G, keyof F>> & GlobalOptions;
}

/** An example as help shows it. */
export type Example = readonly [purpose: string, line: string];

/** Declaration of a command, for running it, help, man pages, completion and the reference. */
export interface CommandDeclaration<A extends readonly Argument[], F extends Flags, G extends Flags> {
  /** One line: an imperative, without a full stop. */
  readonly summary: string;
  /** Further sentences for help. */
  readonly description?: string;
  /** Tool that also has this command; its exit codes are kept, with 1 for wrong usage. */
  readonly tool?: Tool;
  /** Options that the tool lacks, e.g. `--locked`: with them, the exit code of wrong usage is 2. */
  readonly ownOptions?: readonly string[];
  readonly arguments?: A;
  readonly flags?: F;
  /** Keys of the flags that most people use: a long help shows only these, `--help-all` all. */
  readonly commonFlags?: readonly string[];
  /** Flags of the parent command, accepted before and after the name; not shown in help. */
  readonly inherits?: G;
  /** Lines of `--help` that work as written, by purpose: `'Check a catalog directory': 'opmate validate catalog'`. */
  readonly examples?: Readonly<Record<string, string>>;
  /** Returns the exit code; 0 if undefined. A command has this method or the next one. */
  run?(call: Call<A, F, G>): Promise<number | void>;
  /** Turns flags of other tools into global options before `runInSession`. Throws UsageError. */
  readOptions?(call: Call<A, F, G>): Call<A, F, G>['options'];
  /** The same, with a session made from the global options, which is closed afterwards. */
  runInSession?(call: Call<A, F, G> & { readonly session: CommandSession }): Promise<number | void>;
}

/** Command with any arguments and flags. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- commands of every shape
export type AnyCommand = CommandDeclaration<any, any, any>;

/** Declares a command; the types of `run`'s call come from the declaration. */
export function defineCommand<
  const A extends readonly Argument[] = [],
  F extends Flags = Record<never, never>,
  G extends Flags = Record<never, never>,
>(declaration: CommandDeclaration<A, F, G>): CommandDeclaration<A, F, G> {
  return declaration;
}
