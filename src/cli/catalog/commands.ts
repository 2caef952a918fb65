import { type Command, Option } from 'commander';
import { addCatalogBuildCommand } from './build-command.js';
import { addCatalogEditCommands } from './edit-commands.js';
import { addCatalogFilterCommand } from './filter-command.js';
import { addCatalogDoctorCommand } from './doctor-command.js';
import type { CommandContext } from '../context.js';
import { catalogForms, outputFormatOf, separated } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds what authors do with whole catalogs to `catalog`. */
export function addCatalogCommands(catalog: Command, context: CommandContext, runner: Runner): void {
  catalog
    .command('diff')
    .description('show the differences between two catalogs; exit with 3 if there are any')
    .argument('<from>', `catalog: ${catalogForms}`)
    .argument('<to>', 'the same')
    .addOption(
      new Option('--package <name,…>', 'compare only these packages, repeatable').argParser(separated),
    )
    .addOption(outputFormatOf('text', 'json', 'markdown').default('text'))
    .action((from: string, to: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./diff.js')).catalogDiff(context, from, to, options),
      ),
    );
  addCatalogBuildCommand(catalog, context, runner);
  addCatalogEditCommands(catalog, context, runner);
  addCatalogFilterCommand(catalog, context, runner);
  addCatalogDoctorCommand(catalog, context, runner);
}
