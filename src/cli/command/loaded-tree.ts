import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { ownVersion } from '../../api/own-process.js';
import { completionScript, shells } from '../completion/scripts.js';
import { type CollectedHelp, commandPath, helpFor, helpText, loadExamples } from '../help.js';
import { helpTopics } from '../help-topics.js';
import { createCommandLine } from '../program.js';
import type { CommandLine } from './command-line.js';

/** Environment variables with their meaning, as man pages and the reference list them. */
export const environmentVariables: readonly (readonly [string, string])[] = [
  ['REGISTRY_AUTH_FILE, DOCKER_CONFIG, XDG_RUNTIME_DIR', 'Locations of credentials files, after --authfile.'],
  ['CONTAINERS_REGISTRIES_CONF', 'registries.conf with mirrors, rewrites, blocked and insecure registries.'],
  ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'Proxies, also in lower case.'],
  ['SSL_CERT_FILE, NODE_EXTRA_CA_CERTS', 'Certificate authorities to trust in addition.'],
  ['OPMATE_CACHE_DIR, OLM_CACHE_DIR', 'Cache of downloaded blobs.'],
  ['OPMATE_CATALOG_CACHE', 'Directory that keeps layers of catalogs, or "none".'],
  ['TMPDIR', 'Temporary directory.'],
  ['NO_COLOR, CI', 'No colors; no spinner.'],
  ['HELP_ALPHA', '"true" shows alpha commands and flags in help.'],
];

/** Returns the command tree with every command loaded. */
export async function loadTree(): Promise<CommandLine> {
  // The tree reads the environment only, for HELP_ALPHA, and the width of a terminal.
  const context = { environment: {}, stdout: {} } as CommandContext;
  const none = (): void => undefined;
  const commandLine = createCommandLine(context, 'opmate', {
    print: none,
    onCommand: none,
    run: () => Promise.resolve(),
  });
  await commandLine.loadBelow(commandLine.program, { deeply: true });
  return commandLine;
}

/** Returns what the help of groups shows, so that it loads no command. */
export async function collectHelp(): Promise<CollectedHelp> {
  const commandLine = await loadTree();
  const collected: CollectedHelp = { summaries: {}, examples: {} };
  const add = async (command: Command): Promise<void> => {
    if (command.commands.length > 0) {
      collected.examples[commandPath(command)] = await loadExamples(commandLine, command);
    }
    for (const sub of command.commands) {
      collected.summaries[commandPath(sub)] = sub.summary() || sub.description();
      await add(sub);
    }
  };
  await add(commandLine.program);
  return collected;
}

/** Returns the outputs that depend on nothing but the command line, by that, for the file of prepared ones. */
export async function collectOutputs(): Promise<Map<string, string>> {
  const commandLine = await loadTree();
  const { program } = commandLine;
  const outputs = new Map([['--version', `opmate ${ownVersion()}\n`]]);
  for (const topic of ['options', ...Object.keys(helpTopics)]) {
    outputs.set(`help ${topic}`, await helpFor(commandLine, [topic]));
  }
  for (const shell of shells) outputs.set(`completion ${shell}`, completionScript(shell, program.name()));
  const addHelp = async (command: Command, words: readonly string[]): Promise<void> => {
    const help = await helpText(commandLine, command);
    const runs = commandLine.findDeclaration(command) !== undefined || words.length === 0;
    const lines = [['help', ...words], [...words, '--help'], [...words, '-h'], ...(runs ? [] : [words])];
    for (const line of lines) outputs.set(line.join(' '), help);
    outputs.set([...words, '--help-all'].join(' '), await helpText(commandLine, command, { all: true }));
    for (const sub of command.commands) await addHelp(sub, [...words, sub.name()]);
  };
  await addHelp(program, []);
  return outputs;
}

/** Returns the texts of all visible commands, for man pages and the reference: a page for each directly below `opmate`. */
export async function describeTree() {
  const commandLine = await loadTree();
  const { program } = commandLine;
  const help = program.createHelp();
  // `help` is no part of the tree.
  const getVisible = (command: Command): Command[] =>
    help.visibleCommands(command).filter((sub) => command.commands.includes(sub));
  const getOptions = (command: Command): string[][] =>
    help.visibleOptions(command).map((option) => [help.optionTerm(option), help.optionDescription(option)]);
  const describeCommand = (command: Command, name: string) => ({
    name,
    usage: getUsage(command),
    description: toSentences(command.description()),
    arguments: help.visibleArguments(command).map((item) => [item.name(), help.argumentDescription(item)]),
    options: getOptions(command),
    examples: Object.entries(commandLine.findDeclaration(command)?.examples ?? {}),
  });
  /** Returns the commands that can be run, from a command downwards. */
  const describeAll = (command: Command, name: string): ReturnType<typeof describeCommand>[] => {
    const below = getVisible(command);
    const own = describeCommand(command, name);
    const runs = below.length === 0 || command.registeredArguments.length > 0 || own.options.length > 0;
    return [...(runs ? [own] : []), ...below.flatMap((sub) => describeAll(sub, `${name} ${sub.name()}`))];
  };
  const pages = getVisible(program).map((command) => ({
    name: command.name(),
    description: command.description(),
    commands: describeAll(command, `opmate ${command.name()}`),
  }));
  return { description: program.description(), options: getOptions(program), pages };
}

function getUsage(command: Command): string {
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
