import { type Command, CommanderError } from 'commander';
import { UsageError } from '../core/errors.js';
import { CommandLine, type CommandLineEvents, emptyPath } from './command/command-line.js';
import { type GlobalOptions, checkGlobalOptions } from './command/global-flags.js';
import type { CommandContext } from './context.js';
import { exitCodes } from './exit-codes.js';
import { commandPath, helpFor, helpText, unknownCommand } from './help.js';
import { addMirrorCommands } from './mirror/commands.js';
import { writeAll } from './output.js';
import type { Runner } from './runner.js';
import { commands } from './tree.js';

/** What `run` must know even when a command fails. */
export interface RunState {
  debug: boolean;
  logFormat: 'text' | 'json';
  /** Exit code of wrong usage: 2, or 1 in commands that `opm` has too. */
  usageCode: number;
}

/**
 * Runs the command that the arguments name and returns its exit code. Of the command tree only
 * names are known at first: the module of a command is imported when it is named. Throws what the command throws, and UsageError.
 */
export async function runProgram(
  args: readonly string[],
  context: CommandContext,
  name: string,
  state: RunState,
): Promise<number> {
  let exitCode: number = exitCodes.done;
  let shown: Command | undefined;
  const commandLine = createCommandLine(context, name, {
    async run(work) {
      exitCode = (await work()) ?? exitCodes.done;
    },
    onCommand(command) {
      const options = command.optsWithGlobals<GlobalOptions>();
      state.debug = options.debug === true;
      state.logFormat = options.logFormat ?? 'text';
      const last = command.commands.length > 0 ? named : command;
      state.usageCode = keepsCodes(commandLine, last) ? exitCodes.failed : exitCodes.usage;
    },
    print: () => undefined,
  });
  const { program } = commandLine;
  program.addHelpText('beforeAll', ({ command }) => {
    shown = command;
    return '';
  });
  const named = namedCommand(program, args);
  if (keepsCodes(commandLine, named)) state.usageCode = exitCodes.failed;
  try {
    const [first, ...words] = args;
    if (first === 'help' && words.every((word) => !word.startsWith('-'))) {
      state.usageCode = exitCodes.usage;
      await writeAll(context.stdout, await helpFor(commandLine, words));
      return exitCode;
    }
    // What people try first, and `opm` does not have.
    const asked = args[0] === '--version' ? ['version', ...args.slice(1)] : args;
    await program.parseAsync([...asked], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // A group of commands without a command shows its help, as opm does; commander takes it for a mistake.
    if (error.exitCode === 0 || error.code === 'commander.help') {
      await writeAll(context.stdout, await helpText(commandLine, shown ?? named));
      return exitCodes.done;
    }
    state.debug = program.opts<GlobalOptions>().debug === true;
    const word = named.args[0];
    if (error.code === 'commander.unknownCommand' && word !== undefined) throw unknownCommand(named, word);
    throw new UsageError(error.message.replace(/^error: /, ''), { hint: `see ${commandPath(named)} --help` });
  }
  return exitCode;
}

/** Returns the command line of opmate: every command by name, loaded when it is named. */
export function createCommandLine(
  context: CommandContext,
  name: string,
  events: CommandLineEvents,
): CommandLine {
  const commandLine = new CommandLine(name, commands, context, events);
  const { program } = commandLine;
  program.description('Render, check, edit, mirror and serve Kubernetes operator catalogs');
  addUnconvertedCommands(commandLine, context, events);
  return commandLine;
}

/** Commands of `opm`, `oc` and `oc-mirror`, and groups of them; to `probe`, 2 means something else. */
const opmCommands: ReadonlySet<string> = new Set([
  'alpha',
  'catalog',
  'generate',
  'index',
  'init',
  'migrate',
  'mirror',
  'probe',
  'registry',
  'render',
  'serve',
  'validate',
  'version',
]);

/** What opmate has below the groups of `opm` in addition. */
const ownCommands: ReadonlySet<string> = new Set([
  'index build',
  'index delete',
  'index delete-latest',
  'mirror diff',
  'mirror plan',
  'mirror status',
  'registry build',
  'registry bundles',
  'registry create',
  'registry delete',
  'registry delete-latest',
  'registry images',
  'registry init',
  'registry migrate',
]);

/** Whether another tool has a command too, whose exit codes for wrong usage it keeps. */
function keepsCodes(commandLine: CommandLine, command: Command): boolean {
  return commandLine.isDeclared(command) ? commandLine.toolOf(command) !== undefined : isOpmCommand(command);
}

/** Whether a command is one of those that `opm` has, whose exit codes are 0 and 1. */
function isOpmCommand(command: Command): boolean {
  if (ownCommands.has(`${command.parent?.name()} ${command.name()}`)) return false;
  for (let at: Command | null = command; at !== null; at = at.parent) {
    if (at.parent?.parent === null && opmCommands.has(at.name())) return true;
  }
  return false;
}

/** The command that the arguments name, as far as they do. */
function namedCommand(program: Command, args: readonly string[]): Command {
  let at = program;
  for (const arg of args) {
    const next = at.commands.find((command) => command.name() === arg || command.aliases().includes(arg));
    if (next !== undefined) at = next;
  }
  return at;
}

const mayBeEmpty: ReadonlySet<string | undefined> = new Set([
  '--cache-dir',
  '--database',
  '--termination-log',
]);

/** Adds the commands that are not declared in files of their own yet. */
function addUnconvertedCommands(
  { program }: CommandLine,
  context: CommandContext,
  events: CommandLineEvents,
): void {
  const runner: Runner = {
    run: (command, action) =>
      events.run(() => {
        const options = command.optsWithGlobals<GlobalOptions>();
        checkGlobalOptions(options);
        for (const option of command.options) {
          const value: unknown = command.getOptionValue(option.attributeName());
          if (
            value === '' &&
            /<(?:file|directory|path|archive)>/.test(option.flags) &&
            !mayBeEmpty.has(option.long)
          ) {
            throw emptyPath(option.long ?? option.flags);
          }
        }
        return action(options);
      }),
  };
  const find = (name: string): Command => program.commands.find((one) => one.name() === name) as Command;
  addMirrorCommands(program, find('catalog'), context, runner);
}
