import { type Command, CommanderError } from 'commander';
import { addContext } from '../core/diagnostics-error.js';
import { ownVersion } from '../api/own-process.js';
import { UsageError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { CommandLine, type CommandLineEvents, findCommand, findReached } from './command/command-line.js';
import type { GlobalOptions } from './command/global-flags.js';
import { wrapExample } from './command/help-format.js';
import { wrongUsage } from './command/wrong-usage.js';
import type { CommandContext } from './context.js';
import { exitCodes } from './exit-codes.js';
import { commandPath, helpFor, helpText, unknownCommand } from './help.js';
import { writeAll } from './output.js';
import { commands } from './tree.js';

/** State that `run` needs even if a command fails. */
export interface RunState {
  debug: boolean;
  /** Exit code of wrong usage: 2, or 1 in commands that `opm` has too. */
  usageCode: number;
}

/** A command line on its way through commander. */
interface Progress {
  exitCode: number;
  /** The arguments fit the command, whose work has begun. */
  isComplete: boolean;
  /** Command whose help commander shows. */
  shown: Command | undefined;
}

/** Runs the command of the arguments and returns its exit code. Throws the errors of the command, and UsageError. */
export async function runCommandLine(
  args: readonly string[],
  context: CommandContext,
  name: string,
  state: RunState,
): Promise<number> {
  // What people try first, and `opm` does not have.
  if (args.length === 1 && args[0] === '--version') {
    await writeAll(context.stdout, `opmate ${ownVersion()}\n`);
    return exitCodes.done;
  }
  const progress: Progress = { exitCode: exitCodes.done, isComplete: false, shown: undefined };
  const commandLine = createCommandLine(context, name, {
    async run(work) {
      progress.isComplete = true;
      progress.exitCode = (await work()) ?? exitCodes.done;
    },
    onCommand(command) {
      const options = command.optsWithGlobals<GlobalOptions>();
      state.debug = options.debug === true;
      const last = command.commands.length > 0 ? named : command;
      state.usageCode = usageCode(commandLine, last, args);
    },
    print: () => undefined,
  });
  commandLine.program.addHelpText('beforeAll', ({ command }) => {
    progress.shown = command;
    return '';
  });
  const named = await commandLine.loadNamed(args);
  if (commandLine.findTool(named) !== undefined) state.usageCode = usageCode(commandLine, named, args);
  try {
    const help = await findHelp(commandLine, named, args, state);
    if (help === undefined) await parseCommand(commandLine, named, args);
    else await writeAll(context.stdout, help);
    return progress.exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw withHelp(error, named, progress);
    // A group of commands without a command shows its help, as opm does; commander takes it for a mistake.
    if (error.exitCode === 0 || error.code === 'commander.help') {
      const steps = args.length === 0 ? await describeNextSteps(context) : '';
      await writeAll(context.stdout, `${await helpText(commandLine, progress.shown ?? named)}${steps}`);
      return exitCodes.done;
    }
    state.debug = commandLine.program.opts<GlobalOptions>().debug === true;
    throw await explainUsage(error, commandLine, named, helpHint(named));
  }
}

/** Runs the command that the arguments name. Throws UsageError for a word that looks like a command and is none. */
async function parseCommand(
  commandLine: CommandLine,
  named: Command,
  args: readonly string[],
): Promise<void> {
  const mistyped = findMistypedCommand(commandLine, named, args);
  if (mistyped !== undefined) throw unknownCommand(named, mistyped, commandLine.findReferenceCommand(named));
  await commandLine.program.parseAsync([...asLongFlags(named, args)], { from: 'user' });
}

/** Adds the help of a command to an error of its arguments. */
function withHelp(error: unknown, named: Command, { isComplete }: Progress): unknown {
  return error instanceof UsageError && !isComplete ? addContext(error, { hint: helpHint(named) }) : error;
}

function helpHint(named: Command): string {
  return `see ${commandPath(named)} --help`;
}

/** Returns the help that a command line asks for, besides that of commander. */
async function findHelp(
  commandLine: CommandLine,
  named: Command,
  args: readonly string[],
  state: RunState,
): Promise<string | undefined> {
  const [first, ...words] = args;
  if (first === 'help' && words.every((word) => !word.startsWith('-'))) {
    state.usageCode = exitCodes.usage;
    return helpFor(commandLine, words);
  }
  return wantsAllHelp(args) ? helpText(commandLine, named, { all: true }) : undefined;
}

/** Returns the error of a wrong command line in the words of opmate, with the command that an option belongs to. */
async function explainUsage(
  error: CommanderError,
  commandLine: CommandLine,
  named: Command,
  help: string,
): Promise<UsageError> {
  const { program } = commandLine;
  const reached = findReached(program);
  const [word] = reached.args;
  if (error.code === 'commander.unknownCommand' && word !== undefined) {
    return unknownCommand(reached, word, commandLine.findReferenceCommand(reached));
  }
  const [, option] = /^error: unknown option '([^']*)'/.exec(error.message) ?? [];
  const owner = option === undefined || reached !== program ? undefined : await commandLine.findOwner(option);
  const instead = owner === undefined ? '' : `did you mean ${quoteGo(`${commandPath(owner)} ${option}`)}? `;
  if (error.code === 'commander.excessArguments') {
    const unexpected = named.args.slice(named.registeredArguments.length).map(quoteGo);
    const noun = unexpected.length === 1 ? 'argument' : 'arguments';
    return new UsageError(`unexpected ${noun} ${unexpected.join(', ')}`, { hint: help });
  }
  return wrongUsage(error, reached, `${instead}${help}`);
}

/** Returns the commands that fit the working directory, for a call without arguments. */
async function describeNextSteps(context: CommandContext): Promise<string> {
  const { suggestNextSteps } = await import('./root/next-steps.js');
  const steps = await suggestNextSteps(context.workingDirectory);
  const lines = steps.map(([purpose, line]) => `  # ${purpose}\n${wrapExample(line)}\n`);
  return `\nNext, in this directory:\n${lines.join('\n')}`;
}

function wantsAllHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).includes('--help-all');
}

/** Returns arguments of `probe` with long flags: those of grpc_health_probe have one dash, as the flags of Go. */
function asLongFlags(command: Command, args: readonly string[]): readonly string[] {
  if (command.name() !== 'probe') return args;
  return args.map((arg) => arg.replace(/^-(?=[a-z][a-z-]+(?:=|$))/, '--'));
}

/**
 * Returns a word after a group that looks like a command and is none: it never becomes an argument, and is reported
 * before later flags.
 */
function findMistypedCommand(
  commandLine: CommandLine,
  group: Command,
  args: readonly string[],
): string | undefined {
  if (group.commands.length === 0 || group === commandLine.program) return undefined;
  const { options } = commandLine.program;
  const isValue = (index: number): boolean =>
    index > 0 &&
    options.some(({ long, short, required }) => required && [long, short].includes(args[index - 1]));
  const place = args.findIndex((arg, index) => arg === group.name() && !isValue(index));
  const word = place < 0 ? undefined : args[place + 1];
  const isName = word !== undefined && /^[a-z][a-z0-9-]*$/.test(word);
  return isName && findCommand(group, word) === undefined ? word : undefined;
}

/** Returns the exit code of wrong usage: that of the tool with the same command, unless the usage is opmate's own. */
function usageCode(commandLine: CommandLine, command: Command, args: readonly string[]): number {
  if (commandLine.findTool(command) === undefined) return exitCodes.usage;
  const own = commandLine.findDeclaration(command)?.ownOptions ?? [];
  return args.some((arg) => own.includes(arg)) ? exitCodes.usage : exitCodes.failed;
}

/** Returns the command line of opmate: every command by name, loaded when it is named. */
export function createCommandLine(
  context: CommandContext,
  name: string,
  events: CommandLineEvents,
): CommandLine {
  const commandLine = new CommandLine(name, commands, context, events);
  const { program } = commandLine;
  program.description('render, check, edit, mirror and serve Kubernetes operator catalogs');
  return commandLine;
}
