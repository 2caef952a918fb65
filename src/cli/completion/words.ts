import type { Argument, Command, Option } from 'commander';
import { findCommand } from '../command/command-line.js';

/** What a name is the name of. */
type NameKind = 'package' | 'channel';

/** A name that is being typed. */
export interface WantedName {
  kind: NameKind;
  /** References of the catalogs that the line names so far. */
  catalogs: string[];
  /** Packages that the line names so far. */
  packages: string[];
  /** What comes before the name in its word: the names of a list that are there already, with their comma. */
  before: string;
  /** As much of the name as is there. */
  typed: string;
}

const kindsOfOptions: Readonly<Record<string, NameKind | undefined>> = {
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
  'directory',
  'from',
  'ref',
  'reference',
  'source',
  'to',
]);

/** What the value of an option names, where that is something of a catalog. */
export function kindOfOption(option: Option): NameKind | undefined {
  return option.required || option.optional ? kindsOfOptions[option.attributeName()] : undefined;
}

/** What an argument names, where that is something of a catalog. */
export function kindOfArgument(argument: Argument): NameKind | undefined {
  return kindsOfOptions[argument.name()];
}

/**
 * The name that the last of these words begins, by the command tree; undefined where it is none, or where none of
 * the words is a catalog. The words are those after the command's own, as they were typed, with their quotes.
 */
export function wantedName(
  program: Command,
  words: readonly string[],
  homeDirectory: string,
): WantedName | undefined {
  const read = readWords(
    program,
    words.slice(0, -1).map((word) => unquote(word, homeDirectory)),
  );
  const last = unquote(words.at(-1) ?? '', homeDirectory);
  const { command, waiting, positionals, onlyOperands } = read;
  let kind: NameKind | undefined;
  let value = last;
  let isList = true;
  const assigned = /^(--[^=]+)=(.*)$/s.exec(last);
  if (waiting !== undefined) kind = kindOfOption(waiting);
  else if (!onlyOperands && assigned !== null) {
    const option = findOption(command, assigned[1] as string);
    kind = option === undefined ? undefined : kindOfOption(option);
    value = assigned[2] as string;
  } else if (onlyOperands || !last.startsWith('-')) {
    const argument = argumentAt(command, positionals.length);
    kind = argument === undefined ? undefined : kindOfArgument(argument);
    isList = false;
  }
  if (kind === undefined) return undefined;
  const catalogs = [...read.values('catalog'), ...read.operands((name) => catalogArguments.has(name))];
  if (catalogs.length === 0) return undefined;
  const packages = [
    ...read.values('package', 'packages', 'packageName').flatMap((text) => text.split(',')),
    ...read.operands((name) => name === 'package'),
  ];
  const start = isList ? value.lastIndexOf(',') + 1 : 0;
  return { kind, catalogs, packages, before: value.slice(0, start), typed: value.slice(start) };
}

function readWords(program: Command, words: readonly string[]) {
  let command = program;
  let waiting: Option | undefined;
  let onlyOperands = false;
  const positionals: string[] = [];
  const given: { name: string; value: string }[] = [];
  for (const word of words) {
    if (waiting !== undefined) {
      // A value may be left out of some options; another option cannot be one of these.
      const isValue = waiting.required || !word.startsWith('-');
      if (isValue) given.push({ name: waiting.attributeName(), value: word });
      waiting = undefined;
      if (isValue) continue;
    }
    if (onlyOperands) positionals.push(word);
    else if (word === '--') onlyOperands = true;
    else if (word.startsWith('-') && word !== '-') {
      const assigned = /^(--[^=]+)=(.*)$/s.exec(word);
      const option = findOption(command, assigned?.[1] ?? word);
      if (assigned !== null && option !== undefined) {
        given.push({ name: option.attributeName(), value: assigned[2] as string });
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
      given.filter(({ name }) => names.includes(name)).map(({ value }) => value),
    operands: (isWanted: (name: string) => boolean) =>
      positionals.filter((_, at) => isWanted(argumentAt(command, at)?.name() ?? '')),
  };
}

/** The argument that the operand at a place is for; the last one may take several. */
function argumentAt(command: Command, at: number): Argument | undefined {
  const known = command.registeredArguments;
  const last = known.at(-1);
  return known[at] ?? (last?.variadic === true ? last : undefined);
}

function findOption(command: Command, flag: string): Option | undefined {
  for (let at: Command | null = command; at !== null; at = at.parent) {
    const found = at.options.find((option) => option.long === flag || option.short === flag);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A word as the shell would hand it over, if nothing in it is expanded but `~/`. */
function unquote(word: string, homeDirectory: string): string {
  const text = word.startsWith('~/') ? homeDirectory + word.slice(1) : word;
  return text.replace(/'([^']*)'?|"((?:[^"\\]|\\.)*)"?|\\(.)/gs, (_, single, double, escaped) => {
    const inside = (single ?? (double as string | undefined)?.replace(/\\(["\\$`])/g, '$1')) as string;
    return inside ?? (escaped as string);
  });
}
