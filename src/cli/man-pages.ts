import type { Command, Option } from 'commander';
import type { CommandLine } from './command/command-line.js';
import {
  getLeaves,
  getOwnOptions,
  getUsage,
  getVisibleCommands,
  loadTree,
  toSentences,
} from './command/loaded-tree.js';
import type { Example } from './command/declaration.js';
import { environmentVariables } from './command/environment-variables.js';
import { exitStatus, exitStatusNote } from './exit-codes.js';

/**
 * Returns man pages by file name: `opmate.1`, and one for each command directly below it. The same tree results in the
 * same bytes; hidden commands and options are omitted.
 */
export async function manPages(version: string): Promise<Map<string, string>> {
  const commandLine = await loadTree();
  const { program } = commandLine;
  const commands = getVisibleCommands(program);
  const pages = new Map([['opmate.1', mainPage(program, commands, version)]]);
  for (const command of commands) {
    pages.set(`opmate-${command.name()}.1`, commandPage(command, commands, version, commandLine));
  }
  return pages;
}

function mainPage(program: Command, commands: readonly Command[], version: string): string {
  return page([
    ...head('opmate', version),
    '.SH NAME',
    `opmate \\- ${escape(withSmallStart(program.description()))}`,
    '.SH SYNOPSIS',
    '.B opmate',
    text('[options] command [arguments]'),
    '.SH COMMANDS',
    ...commands.flatMap((command) => [
      '.TP',
      `.BR opmate\\-${escape(command.name())} (1)`,
      text(command.description()),
    ]),
    '.SH GLOBAL OPTIONS',
    'These may stand before and after the name of a command.',
    ...optionList(program, program.createHelp().visibleOptions(program)),
    '.SH ENVIRONMENT',
    ...environmentVariables.flatMap(([names, meaning]) => ['.TP', `.B ${escape(names)}`, text(meaning)]),
    '.SH EXIT STATUS',
    ...exitStatus.flatMap(([code, meaning]) => ['.TP', `.B ${code}`, text(meaning)]),
    '.PP',
    text(exitStatusNote),
    '.SH SEE ALSO',
    seeAlso(commands.map((command) => `opmate-${command.name()}`)),
  ]);
}

function commandPage(
  command: Command,
  all: readonly Command[],
  version: string,
  commandLine: CommandLine,
): string {
  const name = `opmate-${command.name()}`;
  const leaves = getLeaves(command, [command.name()]);
  return page([
    ...head(name, version),
    '.SH NAME',
    `${escape(name)} \\- ${escape(withSmallStart(command.description()))}`,
    '.SH SYNOPSIS',
    ...leaves.flatMap(({ command: leaf, path }, index) => [
      ...(index === 0 ? [] : ['.br']),
      `.B opmate ${escape(path.join(' '))}`,
      text(getUsage(leaf)),
    ]),
    '.SH DESCRIPTION',
    text(toSentences(command.description())),
    ...(leaves.length > 1 || leaves[0]?.command !== command ? ['.SH COMMANDS'] : []),
    ...leaves.flatMap(({ command: leaf, path }) => [
      ...(leaf === command
        ? []
        : [`.SS opmate ${escape(path.join(' '))}`, text(toSentences(leaf.description()))]),
      ...argumentList(leaf),
      ...optionList(leaf, getOwnOptions(leaf)),
      ...getExamples(commandLine.findDeclaration(leaf)?.examples ?? []),
    ]),
    '.SH SEE ALSO',
    seeAlso(['opmate', ...all.filter((item) => item !== command).map((item) => `opmate-${item.name()}`)]),
    '.PP',
    'The options of every command, and what exit codes mean, are in',
    '.BR opmate (1).',
  ]);
}

function argumentList(command: Command): string[] {
  const help = command.createHelp();
  return help
    .visibleArguments(command)
    .flatMap((argument) => [
      '.TP',
      `.I ${escape(argument.name())}`,
      text(help.argumentDescription(argument)),
    ]);
}

function optionList(command: Command, options: readonly Option[]): string[] {
  const help = command.createHelp();
  return options.flatMap((option) => [
    '.TP',
    `.B ${escape(help.optionTerm(option))}`,
    text(help.optionDescription(option)),
  ]);
}

function getExamples(examples: readonly Example[]): string[] {
  if (examples.length === 0) return [];
  const lines = examples.flatMap(([purpose, line]) => [
    '.PP',
    text(`${purpose}:`),
    '.RS 4',
    '.nf',
    text(line),
    '.fi',
    '.RE',
  ]);
  return ['.PP', '.B Examples', ...lines];
}

function head(name: string, version: string): string[] {
  // No date: the same version gives the same page.
  return [
    `.TH ${quoted(name.toUpperCase())} 1 "" ${quoted(`opmate ${version}`)} "opmate manual"`,
    '.nh',
    '.ad l',
  ];
}

function seeAlso(names: readonly string[]): string {
  return names
    .map((name, index) => `.BR ${escape(name)} (1)${index === names.length - 1 ? '' : ','}`)
    .join('\n');
}

function page(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/** Returns a line of text that does not start a request of roff. */
function text(plain: string): string {
  const line = escape(plain.replace(/\s+/g, ' ').trim());
  if (line === '') return '\\&';
  return /^[.']/.test(line) ? `\\&${line}` : line;
}

function quoted(plain: string): string {
  return `"${escape(plain).replaceAll('"', '""')}"`;
}

function escape(plain: string): string {
  return plain
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('"', '\\(dq')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replaceAll('`', '\\(ga')
    .replace(/[^\x20-\x7e]/gu, (character) => {
      const code = character.codePointAt(0) as number;
      return code < 0x80 ? ' ' : `\\[u${code.toString(16).toUpperCase().padStart(4, '0')}]`;
    });
}

function withSmallStart(sentence: string): string {
  return sentence.slice(0, 1).toLowerCase() + sentence.slice(1);
}
