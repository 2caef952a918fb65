import type { Command, Option } from 'commander';
import type { CommandLine } from './command/command-line.js';
import type { Example } from './command/declaration.js';
import type { CommandContext } from './context.js';
import { exitStatus, exitStatusNote } from './exit-codes.js';
import { commandPath } from './help.js';
import { createCommandLine } from './program.js';

/** Returns the summaries of the commands below each command by its path, for help that loads none of them. */
export async function commandSummaries(): Promise<Record<string, string>> {
  const { program } = await loadedTree();
  const summaries: Record<string, string> = {};
  const add = (command: Command): void => {
    for (const sub of command.commands) {
      summaries[commandPath(sub)] = sub.summary() || sub.description();
      add(sub);
    }
  };
  add(program);
  return summaries;
}

/**
 * The man pages of the command tree, by file name: `opmate.1`, and one for each command that stands directly below,
 * with all that is below it. The same tree gives the same bytes. Hidden commands and options have no place in them.
 */
export async function manPages(version: string): Promise<Map<string, string>> {
  const commandLine = await loadedTree();
  const { program } = commandLine;
  const commands = getCommands(program);
  const pages = new Map([['opmate.1', mainPage(program, commands, version)]]);
  for (const command of commands) {
    pages.set(`opmate-${command.name()}.1`, commandPage(command, commands, version, commandLine));
  }
  return pages;
}

/** Returns the command tree with every command loaded. */
export async function loadedTree(): Promise<CommandLine> {
  // Of the world the tree asks for the environment only, and only in order to show what is hidden.
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
export function getCommands(command: Command): Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((item) => item.name() !== 'help' && command.commands.includes(item));
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
    ...environment.flatMap(([names, meaning]) => ['.TP', `.B ${escape(names)}`, text(meaning)]),
    '.SH EXIT STATUS',
    ...exitStatus.flatMap(([code, meaning]) => ['.TP', `.B ${code}`, text(meaning)]),
    '.PP',
    text(exitStatusNote),
    '.SH SEE ALSO',
    seeAlso(commands.map((command) => `opmate-${command.name()}`)),
  ]);
}

/** Environment variables by name, with what they do. */
export const environment: readonly (readonly [string, string])[] = [
  ['REGISTRY_AUTH_FILE, DOCKER_CONFIG, XDG_RUNTIME_DIR', 'Where credentials files are, after --authfile.'],
  ['CONTAINERS_REGISTRIES_CONF', 'registries.conf with mirrors, rewrites, blocked and insecure registries.'],
  ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'Proxies, also in lower case.'],
  ['SSL_CERT_FILE, NODE_EXTRA_CA_CERTS', 'Certificate authorities to trust in addition.'],
  ['OPMATE_CACHE_DIR, OLM_CACHE_DIR', 'Cache of downloaded blobs.'],
  ['OPMATE_CATALOG_CACHE', 'Directory that keeps layers of catalogs, or "none".'],
  ['TMPDIR', 'Temporary directory.'],
  ['NO_COLOR, CI', 'No colors; no spinner.'],
  ['HELP_ALPHA', 'true shows alpha commands and flags in help.'],
];

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
    text(withGreatStart(command.description())),
    ...(leaves.length > 1 || leaves[0]?.command !== command ? ['.SH COMMANDS'] : []),
    ...leaves.flatMap(({ command: leaf, path }) => [
      ...(leaf === command
        ? []
        : [`.SS opmate ${escape(path.join(' '))}`, text(withGreatStart(leaf.description()))]),
      ...argumentList(leaf),
      ...getOptions(leaf),
      ...getExamples(commandLine.findDeclaration(leaf)?.examples ?? []),
    ]),
    '.SH SEE ALSO',
    seeAlso(['opmate', ...all.filter((item) => item !== command).map((item) => `opmate-${item.name()}`)]),
    '.PP',
    'The options of every command, and what exit codes mean, are in',
    '.BR opmate (1).',
  ]);
}

/** The commands below one that do something themselves, and the command itself where it does. */
export function getLeaves(command: Command, path: string[]): { command: Command; path: string[] }[] {
  const below = getCommands(command);
  const isLeaf =
    below.length === 0 || command.registeredArguments.length > 0 || ownOptions(command).length > 0;
  return [
    ...(isLeaf ? [{ command, path }] : []),
    ...below.flatMap((item) => getLeaves(item, [...path, item.name()])),
  ];
}

/** All but `--help`. */
export function ownOptions(command: Command): Option[] {
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

function getOptions(command: Command): string[] {
  return optionList(command, ownOptions(command));
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

/** A line of text: what roff would take for a request at its beginning is none. */
function text(plain: string): string {
  const line = escape(plain.replace(/\s+/g, ' ').trim());
  if (line === '') return '\\&';
  return /^[.']/.test(line) ? `\\&${line}` : line;
}

/** An argument of a request. */
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

/** Returns a summary as a sentence. */
export function withGreatStart(text: string): string {
  const paragraphs = text.split('\n\n').map((paragraph) => {
    const start = paragraph.slice(0, 1).toUpperCase() + paragraph.slice(1);
    return start === '' || start.endsWith('.') ? start : `${start}.`;
  });
  return paragraphs.join('\n\n');
}
