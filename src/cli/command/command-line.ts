import { Argument as CommanderArgument, Command, CommanderError, Option } from 'commander';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import type { CommandContext } from '../context.js';
import { helpWidth } from './prepared-output.js';
import type { AnyCommand, Argument, CheckedCall, LoadedCommands } from './declaration.js';
import { type Flag, type Flags, flagGroups } from './flags.js';
import { helpFormat } from './help-format.js';
import { missingFlag } from './require-flag.js';
import { checkGlobalOptions, globalFlags } from './global-flags.js';
import type { CommandNode, CommandTree } from './tree.js';
import { wrongUsage } from './wrong-usage.js';

/** Commands whose first example is in the help of the program. */
const rootExamples = ['list channels', 'catalog doctor', 'mirror plan', 'view'];

/** Receives events of the command line. */
export interface CommandLineEvents {
  /** Receives text that commander prints. */
  print(text: string): void;
  /** Called with a command before its flags are read. */
  onCommand(command: Command): void;
  /** Runs a command, whose call is complete; `check` only reads and checks its values. */
  run(work: () => Promise<number | void>, check: () => CheckedCall): Promise<void>;
}

/** Command tree in commander. Names are known from the start; `load` adds flags and arguments of a command. */
export class CommandLine implements LoadedCommands {
  readonly program: Command;
  readonly #nodes = new Map<Command, CommandNode>();
  readonly #loaded = new Map<Command, AnyCommand>();
  readonly #tree: CommandTree;
  readonly #context: CommandContext;
  readonly #events: CommandLineEvents;

  constructor(name: string, tree: CommandTree, context: CommandContext, events: CommandLineEvents) {
    this.#tree = tree;
    this.#context = context;
    this.#events = events;
    this.program = new Command(name);
    this.program
      .exitOverride()
      .configureOutput({
        writeOut: (text) => events.print(text),
        writeErr: (text) => events.print(text),
        getOutHelpWidth: () => Math.min(context.stdout.columns ?? helpWidth, helpWidth),
      })
      .configureHelp(helpFormat);
    addFlags(this.program, globalFlags, this.#showsAlpha);
    this.#addTree(this.program, tree);
  }

  #addTree(parent: Command, tree: CommandTree): void {
    parent.hook('preSubcommand', async (_parent, command) => {
      await this.load(command);
      this.#events.onCommand(command);
    });
    for (const [name, node] of Object.entries(tree)) {
      const hidden = node.hidden === 'alpha' ? !this.#showsAlpha : (node.hidden ?? false);
      const command = parent.command(name, { hidden });
      if (node.aliases !== undefined) command.aliases(node.aliases);
      if (node.summary !== undefined) command.description(node.summary);
      if (node.helpGroup !== undefined) command.helpGroup(`${node.helpGroup}:`);
      this.#nodes.set(command, node);
      if (node.commands !== undefined) this.#addTree(command, node.commands);
    }
  }

  get #showsAlpha(): boolean {
    return this.#context.environment['HELP_ALPHA'] === 'true';
  }

  /** Loads the declaration of a command, if any. */
  async load(command: Command): Promise<AnyCommand | undefined> {
    const loaded = this.#loaded.get(command);
    if (loaded !== undefined) return loaded;
    const declaration = (await this.#nodes.get(command)?.load?.())?.command;
    if (declaration === undefined) return undefined;
    this.#loaded.set(command, declaration);
    const { summary, description } = declaration;
    command.summary(summary);
    command.description(description === undefined ? summary : `${summary}\n\n${description}`);
    for (const argument of (declaration.arguments ?? []) as readonly Argument[]) {
      const made = new CommanderArgument(argument.spec, argument.summary);
      if (argument.choices !== undefined) made.argChoices = [...argument.choices];
      command.addArgument(made);
    }
    addFlags(command, (declaration.flags ?? {}) as Flags, this.#showsAlpha);
    command.action(() => this.#run(command, declaration));
    return declaration;
  }

  async loadBelow(command: Command, { deeply = false } = {}): Promise<void> {
    await this.load(command);
    await Promise.all(
      command.commands.map((sub) => (deeply ? this.loadBelow(sub, { deeply }) : this.load(sub))),
    );
  }

  /** Returns the only command directly below the program that has an option; undefined for none or several. */
  async findOwner(option: string): Promise<Command | undefined> {
    await this.loadBelow(this.program);
    const owners = this.program.commands.filter(({ options }) =>
      options.some(({ long, short }) => [long, short].includes(option)),
    );
    return owners.length === 1 ? owners[0] : undefined;
  }

  async loadNamed(words: readonly string[]): Promise<Command> {
    let command = this.program;
    for (const word of words) {
      const next = findCommand(command, word);
      if (next === undefined) continue;
      command = next;
      await this.load(command);
    }
    return command;
  }

  /** Returns the declaration of a loaded command. */
  findDeclaration(command: Command): AnyCommand | undefined {
    return this.#loaded.get(command);
  }

  /** Returns the tool of a command: of its node, its declaration, or its group if not loaded. */
  findTool(command: Command): AnyCommand['tool'] {
    const node = this.#nodes.get(command);
    const declaration = this.findDeclaration(command);
    if (node?.tool !== undefined || declaration !== undefined) return node?.tool ?? declaration?.tool;
    const { parent } = command;
    return parent === null ? undefined : this.#nodes.get(parent)?.tool;
  }

  /** Returns the commands below a group whose first example its help shows; loads them. */
  async loadExampleCommands(group: Command): Promise<readonly AnyCommand[]> {
    const names = group.parent === null ? rootExamples : (this.#nodes.get(group)?.exampleOf ?? []);
    const commands = names.map((name) =>
      name
        .split(' ')
        .reduce<Command | undefined>((parent, word) => parent && findCommand(parent, word), group),
    );
    const loaded = await Promise.all(
      commands.filter((command) => command !== undefined).map((command) => this.load(command)),
    );
    return loaded.filter((declaration) => declaration !== undefined);
  }

  /** Returns the default command of a group for a reference. */
  findReferenceCommand(group: Command): string | undefined {
    return this.#nodes.get(group)?.referenceCommand;
  }

  async check(words: readonly string[]): Promise<CheckedCall> {
    let checked: CheckedCall = { args: [], options: {} };
    const none = (): void => undefined;
    // commander keeps the values of a parse, so that another one needs a tree of its own.
    const { program } = new CommandLine(this.program.name(), this.#tree, this.#context, {
      print: none,
      onCommand: none,
      run: async (_work, check) => void (checked = await Promise.resolve(check())),
    });
    try {
      await program.parseAsync([...words], { from: 'user' });
    } catch (error) {
      throw error instanceof CommanderError ? wrongUsage(error, findReached(program)) : error;
    }
    return checked;
  }

  #readCall(command: Command, declaration: AnyCommand) {
    const raw = command.optsWithGlobals<Record<string, unknown>>();
    const flags: Flags = { ...globalFlags, ...declaration.inherits, ...declaration.flags };
    const options = getValues(flags, raw);
    checkGlobalOptions(options);
    refuseEmptyPaths(flags, raw);
    const tool = this.findTool(command);
    const args = command.processedArgs as never;
    const names = command.registeredArguments.map((item, index) => [`<${item.name()}>`, args[index]]);
    checkCombinations(flags, options, Object.fromEntries(names), tool);
    return { context: this.#context, commands: this, tool, args, options };
  }

  #run(command: Command, declaration: AnyCommand): Promise<void> {
    const readCall = () => this.#readCall(command, declaration);
    return this.#events.run(async () => {
      const call = readCall();
      if (declaration.runInSession === undefined) return declaration.run?.(call);
      const { useSession } = await import('../session.js');
      const read = declaration.readOptions?.(call) ?? call.options;
      return useSession(this.#context, read, async (session) =>
        declaration.runInSession?.({ ...call, options: read, session }),
      );
    }, readCall);
  }
}

/** Returns the direct subcommand with a name or alias. */
export function findCommand(command: Command, word: string): Command | undefined {
  return command.commands.find((sub) => sub.name() === word || sub.aliases().includes(word));
}

/** Returns the command that commander parsed last: an argument may have the name of a command. */
export function findReached(command: Command): Command {
  const [word] = command.args;
  const next = word === undefined ? undefined : findCommand(command, word);
  return next === undefined ? command : findReached(next);
}

function addFlags(command: Command, flags: Flags, showsAlpha: boolean): void {
  const byGroup = Object.entries(flags).sort(([, a], [, b]) => groupRank(a) - groupRank(b));
  for (const [key, flag] of byGroup) {
    const long = longName(key);
    addOption(command, long, {
      ...flag,
      hidden: flag.hidden === 'alpha' ? !showsAlpha : (flag.hidden ?? false),
    });
    if (flag.value === undefined) {
      for (const value of ['true', 'false']) {
        command.addOption(inGroup(new Option(`${long}=${value}`).hideHelp(), flag));
      }
    }
    for (const alias of flag.aliases ?? []) {
      const name = alias.length === 1 ? `-${alias}` : `--${alias}`;
      const hidden = { ...flag, short: undefined, hidden: true, default: undefined };
      const isOutput = ['-o', '--output'].includes(name);
      addOption(
        command,
        name,
        isOutput ? refusingFormats(hidden, longName(flag.replacement ?? key)) : hidden,
      );
    }
  }
}

const outputFormats: readonly string[] = ['json', 'yaml', 'text', 'table'];

/** Makes an older `-o` or `--output` for paths or names refuse output formats: `-o yaml` would write a file `yaml`. */
function refusingFormats<T>(item: Omit<Flag<T>, 'short'>, long: string): Omit<Flag<T>, 'short'> {
  return {
    ...item,
    parse(word, previous, name) {
      if (outputFormats.includes(word)) {
        const problem = `expected ${item.value ?? 'a value'}, got the output format ${quoteGo(word)}`;
        throw new UsageError(`${name}: ${problem}`, {
          hint: `remove ${name} ${word}, or use ${long} ${word} if it is a name`,
        });
      }
      return item.parse === undefined ? (word as T) : item.parse(word, previous, name);
    },
  };
}

function groupRank({ group }: Flag<unknown>): number {
  return group === undefined ? -1 : flagGroups.indexOf(group);
}

/** Option with list items that shells offer, and `required`, with a condition, for help. */
export type OfferedOption = Option & { offered?: readonly string[]; requirement?: string };

function addOption(
  command: Command,
  long: string,
  item: Omit<Flag<unknown>, 'short'> & { short?: string | undefined },
): void {
  const { short, value, summary, parse, choices, hidden } = item;
  const flags = [short && `-${short},`, long, value].filter((part) => part !== undefined);
  const option: OfferedOption = new Option(flags.join(' '), summary);
  if (item.offered !== undefined) option.offered = item.offered;
  if (choices !== undefined) option.argChoices = [...choices];
  const { requiredUnless = [] } = item;
  const unless = requiredUnless.length === 0 ? '' : ` unless ${joinOr(requiredUnless.map(shownName))}`;
  if (item.isRequired === true) option.requirement = `required${unless}`;
  // A default is set when the value is read, so that a repeatable flag does not begin with it.
  if (value !== undefined) {
    const shown = item.defaultText ?? item.default;
    if (shown !== undefined) option.defaultValueDescription = String(shown);
  }
  if (parse !== undefined) option.argParser((word, previous) => parse(word, previous, long));
  if (hidden === true) option.hideHelp();
  inGroup(option, item);
  if (item.otherwise === undefined || short === undefined) {
    command.addOption(option);
    return;
  }
  // The first option of a name is the one that takes its values, which are sorted when all are known.
  const shared = inGroup(new Option(`-${short} <value>`).hideHelp(), item);
  command.addOption(shared.argParser((word, previous?: string[]) => [...(previous ?? []), word]));
  const shown = `-${short}`;
  command.addOption(Object.assign(option, { short: undefined }));
  option.short = shown;
}

/** Sets the heading of an option; also of hidden ones, since headings are in the order of their first option. */
function inGroup(option: Option, { group }: Pick<Flag<unknown>, 'group'>): Option {
  return group === undefined ? option : option.helpGroup(`${group}:`);
}

/** `maxEntries` → `--max-entries`; a key that is quoted because of other characters stays as it is. */
export function longName(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Reads flag values parsed by commander, under their current or deprecated names. */
function getValues(flags: Flags, raw: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [key, flag] of Object.entries(flags)) {
    values[key] = getValue([key, ...(flag.aliases ?? []).map(attributeName)], flag, raw);
  }
  for (const [key, { short, otherwise, choices = [] }] of Object.entries(flags)) {
    if (short === undefined || otherwise === undefined) continue;
    // Of the values of a shared short name, choices are for the first flag, all others for the second.
    const other = flags[otherwise] as Flag<unknown>;
    const isSet = values[otherwise] !== undefined;
    for (const word of (raw[short] ?? []) as string[]) {
      if (choices.includes(word)) {
        values[key] = word;
        continue;
      }
      if (word === '' && isPath(other)) throw emptyPath(longName(otherwise));
      if (isSet && other.parse === undefined) {
        throw new UsageError(`invalid -${short} value ${quoteGo(word)}, expected (${choices.join('|')})`);
      }
      values[otherwise] = other.parse?.(word, values[otherwise], `-${short}`) ?? word;
    }
  }
  return values;
}

function getValue(
  names: readonly string[],
  flag: Flag<unknown>,
  raw: Readonly<Record<string, unknown>>,
): unknown {
  if (flag.value === undefined) {
    if (names.some((name) => raw[`${name}=false`] === true)) return false;
    const isOn = names.some((name) => raw[name] === true || raw[`${name}=true`] === true);
    return isOn ? true : flag.default;
  }
  const present = names.map((name) => raw[name]).filter((value) => value !== undefined);
  if (present.every(Array.isArray) && present.length > 1) return present.flat();
  return present[0] ?? flag.default;
}

/** Returns the attribute name that commander derives from an option. */
function attributeName(name: string): string {
  return name.replace(/-(.)/g, (_all, letter: string) => letter.toUpperCase());
}

/** Refuses empty paths, as of unset variables: they would name the working directory. */
function refuseEmptyPaths(flags: Flags, raw: Readonly<Record<string, unknown>>): void {
  for (const [key, flag] of Object.entries(flags)) {
    if (!isPath(flag)) continue;
    for (const name of [key, ...(flag.aliases ?? [])]) {
      const value = raw[attributeName(name)];
      if (value !== '' && !(Array.isArray(value) && value.includes(''))) continue;
      throw emptyPath(name.length === 1 ? `-${name}` : longName(name));
    }
  }
}

/**
 * Throws UsageError for missing flags, and for flags without those that they need or beside those that they exclude.
 * `args` are the values of arguments by name: `<catalog>`.
 */
function checkCombinations(
  flags: Flags,
  values: Readonly<Record<string, unknown>>,
  args: Readonly<Record<string, unknown>>,
  tool: AnyCommand['tool'],
): void {
  // A flag with its default is as good as none, so that scripts may spell it out.
  const isGiven = (name: string): boolean => {
    const [key = '', wanted] = name.split('=');
    const value = args[key] ?? values[key];
    if (name in args && Array.isArray(value) && value.length === 0) return false;
    if (wanted !== undefined) return value === wanted;
    return value !== undefined && value !== (flags[key]?.default ?? false);
  };
  const withValue = (key: string): string => `${shownName(key)} ${getPlaceholder(flags[key])}`.trim();
  for (const [key, { needs = [], excludes = [] }] of Object.entries(flags)) {
    if (!isGiven(key)) continue;
    const other = excludes.find(isGiven);
    if (other !== undefined) {
      const problem = `${longName(key)} and ${shownName(other)} cannot be used together`;
      throw new UsageError(problem, { hint: 'keep one of them' });
    }
    const needed = [needs].flat();
    if (needed.length === 0 || needed.some(isGiven)) continue;
    const problem = `${longName(key)}: needs ${joinOr(needed.map(shownName))}`;
    throw new UsageError(problem, { hint: `add ${joinOr(needed.map(withValue))}` });
  }
  for (const [key, { isRequired = false, requiredUnless = [] }] of Object.entries(flags)) {
    // An empty value, as of an unset variable, is refused beside flags that exclude it.
    const isSet = [key, ...requiredUnless].some((name) => isGiven(name) && values[name] !== '');
    if (!isRequired || isSet) continue;
    const ways = [key, ...requiredUnless.filter((name) => !name.includes('='))];
    const hint = `add ${joinOr(ways.map(withValue))}`;
    throw missingFlag(joinOr(ways.map(shownName)), hint, ways.length === 1 ? tool : undefined);
  }
}

/** Returns a flag, `--output json` for `output=json`, or the name of an argument. */
function shownName(name: string): string {
  return name.startsWith('<') ? name : longName(name).replace('=', ' ');
}

function joinOr(words: readonly string[]): string {
  return [words.slice(0, -1).join(', '), ...words.slice(-1)].filter((part) => part !== '').join(' or ');
}

/** Returns the value of a flag for hints: `DIRECTORY`; empty for a switch. */
export function getPlaceholder({ value = '' }: Partial<Flag<unknown>> = {}): string {
  return value.replace(/^<(.*)>$/, '$1').toUpperCase();
}

/** Reports whether a flag takes a path that must not be empty. */
function isPath({ mayBeEmpty, value = '' }: Flag<unknown>): boolean {
  return mayBeEmpty !== true && /^<(?:file|directory|path|archive)>$/.test(value);
}

function emptyPath(name: string): UsageError {
  return new UsageError(`${name}: expected a path, got ""`, { hint: 'specify a path, or remove the flag' });
}
