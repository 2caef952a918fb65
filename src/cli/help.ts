import { type Command, Option } from 'commander';
import { UsageError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { NameIndex } from '../core/suggest.js';
import { readOwnFile } from '../files/own-files.js';
import { type CommandLine, findCommand, longName } from './command/command-line.js';
import type { Example } from './command/declaration.js';
import { formatWhole, layOutHelp } from './command/help-layout.js';
import { helpTopics } from './help-topics.js';
import { helpWidth } from './command/prepared-output.js';
import { countMore, shellWord } from './printable.js';
import { findReflex, isDestructive } from './command/reflexes.js';

/** Returns the full name of a command: `opmate catalog filter`. */
export function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;
}

/** Returns the text of `help WORDS`: a command, the global options or a topic. Throws UsageError. */
export async function helpFor(commandLine: CommandLine, words: readonly string[]): Promise<string> {
  const { program } = commandLine;
  if (words.length === 1 && words[0] === 'options') return globalOptionsText(program);
  const topic = words.length === 1 ? helpTopics[words[0] as string] : undefined;
  if (topic !== undefined) return topic;
  let command = program;
  for (const word of words[0] === 'help' ? words.slice(1) : words) {
    const next = findCommand(command, word);
    if (next === undefined) {
      const near = words.length === 1 ? nearestTopic(program, word) : undefined;
      if (near === undefined) throw unknownCommand(command, word);
      const hint = `did you mean ${quoteGo(`${program.name()} help ${near}`)}? see ${program.name()} --help`;
      throw new UsageError(`unknown help topic ${quoteGo(word)}`, { hint });
    }
    command = next;
  }
  return helpText(commandLine, command);
}

/** Returns the help topic that a misspelled word stands for, if no command is nearer. */
function nearestTopic(program: Command, word: string): string | undefined {
  const topics = ['options', ...Object.keys(helpTopics)];
  const near = new NameIndex([...program.commands.map((sub) => sub.name()), ...topics]).nearest(word);
  return topics.find((topic) => topic === near);
}

/** Options of `helpText`. */
interface HelpTextOptions {
  /** Show all flags however many there are. */
  all?: boolean;
}

/** Returns the help of a command, as `--help` prints it, or `--help-all`. */
export async function helpText(
  commandLine: CommandLine,
  command: Command,
  { all = false }: HelpTextOptions = {},
): Promise<string> {
  await commandLine.load(command);
  const collected = readCollectedHelp();
  const path = ['opmate', ...commandPath(command).split(' ').slice(1)].join(' ');
  for (const sub of command.commands) {
    const summary = collected.summaries?.[`${path} ${sub.name()}`];
    if (summary === undefined) await commandLine.load(sub);
    else sub.summary(summary);
  }
  const examples = collected.examples?.[path] ?? (await loadExamples(commandLine, command));
  const isRoot = command.parent === null;
  // Its options are those of every command, which have a page of their own.
  if (isRoot) command.configureHelp({ ...command.configureHelp(), visibleOptions: () => [] });
  const name = commandLine.program.name();
  const topics = isRoot ? `,\n"${name} help versions" for version ranges and "${name} help exit-codes"` : '';
  const footer = `\nSee "${name} help options" for global options${topics}.\n`;
  if (all || isRoot) return `${formatWhole(command, examples)}${footer}`;
  const common = (commandLine.findDeclaration(command)?.commonFlags ?? []).map(longName);
  const { text, hiddenOptions, hiddenExamples } = layOutHelp(command, examples, common);
  const left = [
    ...(hiddenOptions === 0 ? [] : [countMore(hiddenOptions, 'option')]),
    ...(hiddenExamples === 0 ? [] : [countMore(hiddenExamples, 'example')]),
  ];
  return `${text}${formatLeft(path, left)}${footer}`;
}

/** Returns the line about what a help leaves out, or two lines where one is too long. */
function formatLeft(path: string, left: readonly string[]): string {
  if (left.length === 0) return '';
  const [command, parts] = [`See "${path} --help-all"`, `for ${left.join(' and ')}.`];
  return `\n${command}${command.length + parts.length < helpWidth ? ' ' : '\n'}${parts}\n`;
}

/** Returns the examples of a command; for a group, the first of some of its commands, or two of a single one. */
export async function loadExamples(commandLine: CommandLine, command: Command): Promise<readonly Example[]> {
  const declaration = commandLine.findDeclaration(command);
  if (declaration !== undefined) return Object.entries(declaration.examples ?? {});
  const commands = await commandLine.loadExampleCommands(command);
  return commands.flatMap(({ examples = {} }) =>
    Object.entries(examples).slice(0, commands.length === 1 ? 2 : 1),
  );
}

/** Summaries and examples that the build collects: the help of a group then loads no command. */
export interface CollectedHelp {
  /** Summaries of commands by path. */
  summaries: Record<string, string>;
  /** Examples of groups by path. */
  examples: Record<string, readonly Example[]>;
}

function readCollectedHelp(): Partial<CollectedHelp> {
  try {
    return JSON.parse(readOwnFile('dist/collected-help.json').toString()) as Partial<CollectedHelp>;
  } catch {
    // The build collects it by calling this.
    return {};
  }
}

/** Returns the error for an unknown command, with the nearest command or `referenceCommand` as hint. */
export function unknownCommand(command: Command, word: string, referenceCommand?: string): UsageError {
  const path = commandPath(command);
  const [program, ...group] = path.split(' ') as [string, ...string[]];
  const reflex = findReflex(group, word);
  if (reflex !== undefined) {
    const hint = `did you mean ${quoteGo(`${program} ${reflex}`)}? see ${path} --help`;
    return new UsageError(`unknown command ${quoteGo(word)}`, { hint });
  }
  const visible = command.commands.map((sub) => sub.name());
  const isRoot = command.parent === null;
  // A command of this name in a group takes precedence over a similar name.
  const near =
    isRoot && findInGroup(command, word) !== undefined ? undefined : new NameIndex(visible).nearest(word);
  const elsewhere = isRoot ? findElsewhere(command, word) : findOutside(command, word);
  const withReference =
    referenceCommand === undefined ? undefined : `${path} ${referenceCommand} ${shellWord(word)}`;
  const best =
    near === undefined ? (findNested(command, word) ?? withReference ?? elsewhere) : `${path} ${near}`;
  return new UsageError(`unknown command ${quoteGo(word)}`, {
    hint: best === undefined ? `see ${path} --help` : `did you mean ${quoteGo(best)}? see ${path} --help`,
  });
}

/** Returns the command of this name in a group of the same name below another, as `list` in `mirror list`. */
function findNested(group: Command, word: string): string | undefined {
  for (const parent of group.parent?.commands ?? []) {
    const nested = parent.commands.find((sub) => sub.name() === group.name());
    const exact = nested?.commands.find((sub) => sub.name() === word);
    if (exact !== undefined) return commandPath(exact);
  }
  return undefined;
}

/** Words up to this length are similar to too many others. */
const maxShort = 4;

/** Returns the command of this name directly below `opmate` or in another group, else the nearest directly below. */
function findOutside(group: Command, word: string): string | undefined {
  if (isDestructive(word)) return undefined;
  let program = group;
  while (program.parent !== null) program = program.parent;
  for (const parent of [program, ...program.commands]) {
    const exact = parent.commands.find((sub) => sub.name() === word && sub !== group);
    if (exact !== undefined && parent !== group) return commandPath(exact);
  }
  return word.length > maxShort ? findNearest(program, word, group) : undefined;
}

/** Returns the command below a group whose name is nearest, but for one. */
function findNearest(group: Command, word: string, except?: Command): string | undefined {
  const names = group.commands
    .filter((sub) => sub !== except && !isDestructive(sub.name()))
    .map((sub) => sub.name());
  const near = new NameIndex(names).nearest(word);
  return near === undefined ? undefined : `${commandPath(group)} ${near}`;
}

/** Returns the commands directly below the program, `catalog` first. */
function listGroups(program: Command): Command[] {
  return [...program.commands].sort(
    (a, b) => Number(b.name() === 'catalog') - Number(a.name() === 'catalog'),
  );
}

/** Returns the command of this name in a group; `catalog` takes precedence. */
function findInGroup(program: Command, word: string): string | undefined {
  if (isDestructive(word)) return undefined;
  for (const group of listGroups(program)) {
    const exact = findCommand(group, word);
    if (exact !== undefined) return commandPath(exact);
  }
  return undefined;
}

/** Returns the command of this name in a group, else the nearest; `catalog` takes precedence. */
function findElsewhere(program: Command, word: string): string | undefined {
  const exact = findInGroup(program, word);
  if (exact !== undefined) return exact;
  for (const group of word.length > maxShort ? listGroups(program) : []) {
    const near = findNearest(group, word);
    if (near !== undefined) return near;
  }
  return undefined;
}

function globalOptionsText(program: Command): string {
  const help = program.createHelp();
  help.prepareContext({});
  const options = [
    ...program.options.filter((option) => !option.hidden),
    new Option('-h, --help', 'display help for command'),
  ];
  const terms = options.map((option) => help.optionTerm(option));
  const width = Math.max(...terms.map((term) => term.length));
  const items = options.map((option, index) =>
    help.formatItem(terms[index] as string, width, help.optionDescription(option), help),
  );
  return `Global options can be placed before or after the command:\n\n${items.join('\n')}\n`;
}
