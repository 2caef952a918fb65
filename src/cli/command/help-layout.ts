import { type Command, Option } from 'commander';
import type { OfferedOption } from './command-line.js';
import type { Example } from './declaration.js';
import { wrapExample } from './help-format.js';

/** Lines above which a help leaves out options and examples. */
const maxLines = 40;

/** Lines that the caller adds, and that a note about what is left out takes. */
const footerLines = 2;
const noteLines = 3;

/** Minimum number of common options and examples, where a command has as many. */
const minOptions = 10;
const minExamples = 2;

/** Part of the options and examples of a command. */
interface Layout {
  /** Long names of the options; undefined for all. Required ones are shown too. */
  readonly options?: readonly string[] | undefined;
  /** Maximum number of examples. */
  readonly examples: number;
  /** Lists options below one heading instead of one for each group. */
  readonly isCompact?: boolean;
}

/** Text of a help and what it leaves out. */
interface Formatted {
  readonly text: string;
  readonly hiddenOptions: number;
  readonly hiddenExamples: number;
}

/**
 * Returns the usage, options and examples of a command: all, or unless that is short those that most people use, `common`
 * being the long names of options, most used first.
 */
export function layOutHelp(
  command: Command,
  examples: readonly Example[],
  common: readonly string[],
): Formatted {
  const whole: Layout = { examples: examples.length };
  const fewer = common.slice(minOptions).map((_, index) => common.slice(0, common.length - index - 1));
  const parts = [common, ...fewer].map((options) => (options.length === 0 ? undefined : options));
  const shorter: Layout[] = [
    { ...whole, options: parts[0] },
    ...parts.map((options) => ({ options, examples: minExamples, isCompact: true })),
  ];
  let formatted = formatLayout(command, examples, whole);
  for (const layout of shorter) {
    if (isShort(formatted)) break;
    formatted = formatLayout(command, examples, layout);
  }
  return formatted;
}

function isShort({ text, hiddenOptions, hiddenExamples }: Formatted): boolean {
  const isWhole = hiddenOptions + hiddenExamples === 0;
  return text.split('\n').length - 1 + footerLines + (isWhole ? 0 : noteLines) <= maxLines;
}

/** Returns all options and examples of a command. */
export function formatWhole(command: Command, examples: readonly Example[]): string {
  return formatLayout(command, examples, { examples: examples.length }).text;
}

function formatLayout(command: Command, examples: readonly Example[], layout: Layout): Formatted {
  const configuration = command.configureHelp();
  const help = command.createHelp();
  const visible: readonly OfferedOption[] = help.visibleOptions(command);
  const { options } = layout;
  const shown = visible.filter(
    ({ long, requirement }) =>
      options === undefined || options.includes(long ?? '') || requirement === 'required',
  );
  command.configureHelp({
    ...configuration,
    visibleOptions: () => [...shown],
    groupItems: (unsorted, items, getGroup) =>
      help.groupItems(unsorted, items, (item) =>
        layout.isCompact === true && item instanceof Option ? 'Options:' : getGroup(item),
      ),
  });
  const shownExamples = examples.slice(0, layout.examples);
  const text = `${command.helpInformation()}${formatExamples(shownExamples)}`;
  command.configureHelp(configuration);
  return {
    text,
    hiddenOptions: visible.length - shown.length,
    hiddenExamples: examples.length - shownExamples.length,
  };
}

function formatExamples(examples: readonly Example[]): string {
  if (examples.length === 0) return '';
  const texts = examples.map(([purpose, line]) => `  # ${purpose}\n${wrapExample(line)}\n`);
  return `\nExamples:\n${texts.join('\n')}`;
}
