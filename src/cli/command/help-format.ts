import type { HelpConfiguration, Option } from 'commander';

/** How commander words help: choices and defaults without quotes, after the summary. */
export const helpFormat: HelpConfiguration = {
  subcommandTerm: (command) => command.name(),
  subcommandDescription: (command) => command.summary() || command.description(),
  optionDescription: describeOption,
  argumentDescription(argument) {
    const { argChoices: choices, description } = argument;
    return choices === undefined ? description : `${description} (${choices.join(', ')})`.trim();
  },
};

function describeOption(option: Option): string {
  const { argChoices: choices, defaultValue, description } = option;
  const otherwise =
    option.defaultValueDescription ??
    (option.required && defaultValue !== undefined ? String(defaultValue) : undefined);
  const traits = [
    ...(choices === undefined ? [] : [choices.join(', ')]),
    ...(otherwise === undefined ? [] : [`default: ${otherwise}`]),
  ];
  return traits.length === 0 ? description : `${description} (${traits.join('; ')})`;
}
