import type { Argument, Command, Option } from 'commander';
import { type OfferedOption, findCommand } from '../command/command-line.js';
import { helpTopics } from '../help-topics.js';

type NameKind = 'package' | 'channel';

/** Incomplete name of a package or channel. */
export interface WantedName {
  kind: NameKind;
  /** References of catalogs in the line. */
  catalogs: string[];
  /** Packages in the line. */
  packages: string[];
  /** Earlier names of a comma-separated list, with the last comma. */
  before: string;
  /** Start of the name. */
  typed: string;
}

interface OfferedWord {
  word: string;
  description: string;
}

/** Completions of the last word of a line. */
interface Offer {
  /** Commands, flags or values of a closed set with the typed prefix. */
  words: OfferedWord[];
  /** A name from a catalog. */
  name?: WantedName | undefined;
  paths?: PathKind | undefined;
}

type PathKind = 'files' | 'directories';

/** Kinds of paths by placeholder; most references may be a directory or a file. */
const pathsOfPlaceholders: Readonly<Record<string, PathKind | undefined>> = {
  archive: 'files',
  catalog: 'files',
  database: 'files',
  directory: 'directories',
  file: 'files',
  lock: 'files',
  path: 'files',
  place: 'files',
  reference: 'files',
  source: 'files',
};

/** Further arguments that are paths; an input directory may be an archive. */
const pathArguments: ReadonlySet<string> = new Set([
  'bundles',
  'directory',
  'from',
  'new',
  'old',
  'ref',
  'to',
]);
const pathOptions: ReadonlySet<string> = new Set(['batch', 'bundleImages', 'bundles']);

/** Kinds of names by option and argument. */
const kindsOfNames: Readonly<Record<string, NameKind | undefined>> = {
  package: 'package',
  packages: 'package',
  packageName: 'package',
  channel: 'channel',
  channels: 'channel',
  defaultChannel: 'channel',
  dropChannel: 'channel',
  dropPackage: 'package',
};
const catalogArguments: ReadonlySet<string> = new Set([
  'catalog',
  'database',
  'directory',
  'from',
  'ref',
  'reference',
  'source',
  'to',
]);

/** Completes the last word of a line after the command name; words have quotes as typed. */
export function offerFor(program: Command, words: readonly string[], homeDirectory: string): Offer {
  const plain = words.map((word) => unquote(word, homeDirectory));
  if (plain[0] === 'help') return offerHelp(program, plain.slice(1));
  const last = plain.at(-1) ?? '';
  const read = readWords(program, plain.slice(0, -1));
  const { command, waiting, positionals, onlyOperands } = read;
  const isFlag = !onlyOperands && last.startsWith('-');
  const assigned = isFlag ? /^(--[^=]+)=(.*)$/s.exec(last) : null;
  // A value may be left out of some options: then a flag may follow.
  const isValue = waiting !== undefined && (waiting.required || !isFlag);
  const option = isValue
    ? waiting
    : assigned === null
      ? undefined
      : findOption(command, assigned[1] as string);
  if (option !== undefined && (option.required || option.optional)) {
    return offerValue(option, assigned === null || isValue ? last : (assigned[2] as string), read);
  }
  if (isFlag) return { words: assigned === null ? startingWith(last, getFlags(command)) : [] };
  const commands = positionals.length > 0 || onlyOperands ? [] : getCommands(command);
  const argument = argumentAt(command, positionals.length);
  const choices = toWords(argument?.argChoices ?? []);
  const offered = startingWith(last, [...commands, ...choices]);
  if (argument === undefined || choices.length > 0) return { words: offered };
  const kind = kindsOfNames[argument.name()];
  const isPath = pathArguments.has(argument.name()) || pathsOfPlaceholders[argument.name()] !== undefined;
  return {
    words: offered,
    name: kind === undefined ? undefined : nameFrom(kind, last, 0, read),
    paths: isPath && kind === undefined ? 'files' : undefined,
  };
}

function offerValue(option: OfferedOption, value: string, read: ReadWords): Offer {
  const { offered, argChoices } = option;
  const before = offered === undefined ? '' : value.slice(0, value.lastIndexOf(',') + 1);
  const choices = offered?.filter((item) => !before.split(',').includes(item)) ?? argChoices;
  if (choices !== undefined) {
    return { words: startingWith(value, toWords(choices.map((item) => before + item))) };
  }
  const kind = kindsOfNames[option.attributeName()];
  if (kind !== undefined) return { words: [], name: nameFrom(kind, value, value.lastIndexOf(',') + 1, read) };
  if (pathOptions.has(option.attributeName())) return { words: [], paths: 'files' };
  const placeholders = (/[<[](.*)[>\]]/.exec(option.flags)?.[1] ?? '').split('|');
  const paths = placeholders.flatMap((name) => pathsOfPlaceholders[name] ?? []);
  return { words: [], paths: paths.find((item) => item === 'files') ?? paths[0] };
}

function nameFrom(kind: NameKind, value: string, start: number, read: ReadWords): WantedName | undefined {
  const catalogs = [
    ...read.values('catalog', 'database', 'fromDb'),
    ...read.operands((name) => catalogArguments.has(name)),
  ];
  if (catalogs.length === 0) return undefined;
  const packages = [
    ...read.values('package', 'packages', 'packageName').flatMap((text) => text.split(',')),
    ...read.operands((name) => name === 'package'),
  ];
  return { kind, catalogs, packages, before: value.slice(0, start), typed: value.slice(start) };
}

function offerHelp(program: Command, words: readonly string[]): Offer {
  let command = program;
  for (const word of words.slice(0, -1)) {
    const next = findCommand(command, word);
    if (next === undefined) return { words: [] };
    command = next;
  }
  const topics = command === program ? toWords(Object.keys(helpTopics)) : [];
  const offered = [...getCommands(command), ...topics];
  return { words: startingWith(words.at(-1) ?? '', offered) };
}

function toWords(words: readonly string[]): OfferedWord[] {
  return words.map((word) => ({ word, description: '' }));
}

function startingWith(typed: string, words: readonly OfferedWord[]): OfferedWord[] {
  return words.filter(({ word }) => word.startsWith(typed));
}

function getCommands(command: Command): OfferedWord[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((sub) => ({ word: sub.name(), description: sub.summary() || sub.description() }));
}

function getFlags(command: Command): OfferedWord[] {
  const help = command.createHelp();
  help.showGlobalOptions = true;
  const global = command.parent === null ? [] : help.visibleGlobalOptions(command);
  return [...help.visibleOptions(command), ...global].map((option) => ({
    word: option.long ?? option.short ?? option.flags,
    description: option.description,
  }));
}

type ReadWords = ReturnType<typeof readWords>;

function readWords(program: Command, words: readonly string[]) {
  let command = program;
  let waiting: Option | undefined;
  let onlyOperands = false;
  const positionals: string[] = [];
  const typed: { name: string; value: string }[] = [];
  for (const word of words) {
    if (waiting !== undefined) {
      // A value may be left out of some options; another option cannot be one of these.
      const isValue = waiting.required || !word.startsWith('-');
      if (isValue) typed.push({ name: waiting.attributeName(), value: word });
      waiting = undefined;
      if (isValue) continue;
    }
    if (onlyOperands) positionals.push(word);
    else if (word === '--') onlyOperands = true;
    else if (word.startsWith('-') && word !== '-') {
      const assigned = /^(--[^=]+)=(.*)$/s.exec(word);
      const option = findOption(command, assigned?.[1] ?? word);
      if (assigned !== null && option !== undefined) {
        typed.push({ name: option.attributeName(), value: assigned[2] as string });
      } else if (option?.required === true || option?.optional === true) waiting = option;
    } else {
      const below = positionals.length > 0 ? undefined : findCommand(command, word);
      if (below === undefined) positionals.push(word);
      else command = below;
    }
  }
  return {
    command,
    waiting,
    onlyOperands,
    positionals,
    values: (...names: string[]) =>
      typed.filter(({ name }) => names.includes(name)).map(({ value }) => value),
    operands: (isWanted: (name: string) => boolean) =>
      positionals.filter((_, index) => isWanted(argumentAt(command, index)?.name() ?? '')),
  };
}

/** Returns the argument at a position; the last one may be variadic. */
function argumentAt(command: Command, position: number): Argument | undefined {
  const known = command.registeredArguments;
  const last = known.at(-1);
  return known[position] ?? (last?.variadic === true ? last : undefined);
}

function findOption(command: Command, flag: string): Option | undefined {
  for (let place: Command | null = command; place !== null; place = place.parent) {
    const match = place.options.find((option) => option.long === flag || option.short === flag);
    if (match !== undefined) return match;
  }
  return undefined;
}

/** Removes the quotes of a shell word and expands `~/`. */
function unquote(word: string, homeDirectory: string): string {
  const text = word.startsWith('~/') ? homeDirectory + word.slice(1) : word;
  return text.replace(/'([^']*)'?|"((?:[^"\\]|\\.)*)"?|\\(.)/gs, (_, single, double, escaped) => {
    const inside = (single ?? (double as string | undefined)?.replace(/\\(["\\$`])/g, '$1')) as string;
    return inside ?? (escaped as string);
  });
}
