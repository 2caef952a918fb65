import type { Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { createCommandLine } from '../program.js';
import type { CommandLine } from './command-line.js';

/** Returns the command tree with every command loaded. */
export async function loadTree(): Promise<CommandLine> {
  // The tree reads the environment only, for HELP_ALPHA.
  const context = { environment: {} } as CommandContext;
  const none = (): void => undefined;
  const commandLine = createCommandLine(context, 'opmate', {
    print: none,
    onCommand: none,
    run: () => Promise.resolve(),
  });
  await commandLine.loadBelow(commandLine.program, { deeply: true });
  return commandLine;
}

/** Returns the visible commands directly below one. */
export function getVisibleCommands(command: Command): Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((item) => item.name() !== 'help' && command.commands.includes(item));
}

/** Returns the commands that can be run, from a command downwards, with their names. */
export function getLeaves(command: Command, path: string[]): { command: Command; path: string[] }[] {
  const below = getVisibleCommands(command);
  const isLeaf =
    below.length === 0 || command.registeredArguments.length > 0 || getOwnOptions(command).length > 0;
  return [
    ...(isLeaf ? [{ command, path }] : []),
    ...below.flatMap((item) => getLeaves(item, [...path, item.name()])),
  ];
}

/** Returns the visible options of a command, without `--help`. */
export function getOwnOptions(command: Command): Option[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter((option) => command.options.includes(option));
}

/** Returns options and arguments as the usage line shows them. */
export function getUsage(command: Command): string {
  const values = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return ['[options]', ...values].join(' ');
}

/** Returns each paragraph of a summary as a sentence. */
export function toSentences(text: string): string {
  const paragraphs = text.split('\n\n').map((paragraph) => {
    const start = paragraph.slice(0, 1).toUpperCase() + paragraph.slice(1);
    return start === '' || start.endsWith('.') ? start : `${start}.`;
  });
  return paragraphs.join('\n\n');
}
