import { type Command, Help, type HelpConfiguration, type Option } from 'commander';
import { helpWidth } from './prepared-output.js';

/** Help format of commander: choices and defaults without quotes, after the summary. */
export const helpFormat: HelpConfiguration = {
  // Commands with long flags are wrapped too.
  minWidthToWrap: 24,
  subcommandTerm: (command) => command.name(),
  subcommandDescription: (command) => command.summary() || command.description(),
  optionDescription: describeOption,
  // --help is among the global options.
  visibleOptions: (command) => command.options.filter(({ hidden }) => !hidden),
  visibleCommands,
  argumentDescription(argument) {
    const { argChoices: choices, description } = argument;
    return choices === undefined ? description : `${description} (${choices.join(', ')})`.trim();
  },
};

/** Returns the commands that help lists: `help` only at the root, below the last heading. */
function visibleCommands(command: Command): Command[] {
  const visible = new Help().visibleCommands(command);
  const isHelp = (sub: Command): boolean => sub.name() === 'help';
  if (command.parent !== null) return visible.filter((sub) => !isHelp(sub));
  visible.find(isHelp)?.helpGroup(visible.findLast((sub) => !isHelp(sub))?.helpGroup() ?? '');
  return visible;
}

function describeOption(option: Option & { requirement?: string }): string {
  const { argChoices: choices, defaultValue, description, requirement } = option;
  const otherwise =
    option.defaultValueDescription ??
    (option.required && defaultValue !== undefined ? String(defaultValue) : undefined);
  const traits = [
    ...(choices === undefined ? [] : [choices.join(', ')]),
    ...(otherwise === undefined ? [] : [`default: ${otherwise}`]),
    ...(requirement === undefined ? [] : [requirement]),
  ];
  return traits.length === 0 ? description : `${description} (${traits.join('; ')})`;
}

/** Wraps an example with backslashes before flags and pipes. */
export function wrapExample(line: string): string {
  const indent = '  ';
  const isWide = (piece: string): boolean => `${indent}  ${piece} \\`.length > helpWidth;
  const pieces = line
    .split(/ (?=-|\| |&& )(?!-(?: |$))/)
    .flatMap((piece) => (isWide(piece) && !/["']/.test(piece) ? piece.split(' ') : [piece]));
  const lines: string[] = [];
  let current = `${indent}${pieces[0] ?? ''}`;
  for (const piece of pieces.slice(1)) {
    const longer = `${current} ${piece}`;
    if (longer.length + ' \\'.length <= helpWidth) current = longer;
    else {
      lines.push(current);
      current = `${indent}  ${piece}`;
    }
  }
  return [...lines, current].join(' \\\n');
}
