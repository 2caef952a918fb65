import { type Command, Option } from 'commander';
import type { CommandContext } from './context.js';
import { outputFormatOf, separated, withChoices } from './options.js';
import type { Runner } from './runner.js';

/** Adds `doctor` to `catalog`. */
export function addCatalogDoctorCommand(catalog: Command, context: CommandContext, runner: Runner): void {
  const list = (flags: string, description: string): Option =>
    new Option(flags, `${description}, repeatable`).argParser(separated);
  catalog
    .command('doctor')
    .description(
      'show what is wrong with a catalog, and what is valid but will bite later; exit code 3 where something is',
    )
    .argument('<ref>', 'catalog: directory, image or sqlite index')
    .addOption(outputFormatOf('text', 'json', 'sarif', 'junit').default('text'))
    .addOption(
      new Option('--openshift <version>', 'version of OpenShift that the catalog is for, such as 4.18'),
    )
    .addOption(list('--check <name,…>', 'look for these only'))
    .addOption(list('--skip-check <name,…>', 'do not look for these'))
    .addOption(list('--package <name,…>', 'tell of these packages only'))
    .addOption(
      withChoices(new Option('--fail-on <severity>', 'least severity that makes the exit code 3'), [
        'error',
        'warning',
        'notice',
      ]).default('warning'),
    )
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/catalog-doctor.js')).catalogDoctor(context, reference, options),
      ),
    );
}
