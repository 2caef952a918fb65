import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import type { FlagValues, Flags } from './flags.js';
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

/** A tool that has some of the commands too. */
type Tool = 'opm' | 'oc' | 'oc-mirror';

/** The command tree, for commands that speak about it. */
export interface LoadedCommands {
  readonly program: Command;
  /** Loads a command and those directly below it; with `deeply` all below it. */
  loadBelow(command: Command, options?: { deeply?: boolean }): Promise<void>;
  /** Loads the commands that a line names, as far as it does, and returns the last one. */
  loadNamed(words: readonly string[]): Promise<Command>;
}

/** One call of a command. */
interface Call<A extends readonly Argument[], F extends Flags, G extends Flags> {
  readonly context: CommandContext;
  readonly commands: LoadedCommands;
  /** The tool whose command this is called as; see `CommandDeclaration.tool`. */
  readonly tool: Tool | undefined;
  /** The values of the arguments, in their order. */
  readonly args: ArgumentValues<A>;
  /** The values of the command's own flags, those of the group that it inherits, and the global ones. */
  readonly options: FlagValues<F> & FlagValues<Omit<G, keyof F>> & GlobalOptions;
}

/** A line of `--help` that works as written, and what it does: `['Check a catalog directory', 'opmate validate catalog']`. */
export type Example = readonly [purpose: string, line: string];

/** What `--help`, man pages, completion and the reference tell of a command, and what runs it. */
export interface CommandDeclaration<A extends readonly Argument[], F extends Flags, G extends Flags> {
  /** One line: an imperative, without a full stop. */
  readonly summary: string;
  /** What else a reader must know, in a few sentences. */
  readonly description?: string;
  /** The tool that has this command too, and whose exit codes it keeps: wrong usage ends with 1. */
  readonly tool?: Tool;
  /** Options, as `--locked`, with which it does what the tool cannot do: wrong usage then ends with 2. */
  readonly ownOptions?: readonly string[];
  readonly arguments?: A;
  readonly flags?: F;
  /** The flags of the command above it, which may stand before and after its name too; not shown in its help. */
  readonly inherits?: G;
  readonly examples?: readonly Example[];
  /** Returns the exit code; 0 unless it returns one. */
  run(call: Call<A, F, G>): Promise<number | void>;
}

/** A declared command of any arguments and flags. */
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
