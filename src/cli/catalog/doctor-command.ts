import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { catalogForms, reportFormatOption, separated, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

const severities = ['error', 'warning', 'notice'];

/** Adds `doctor` to `catalog`. */
export function addCatalogDoctorCommand(catalog: Command, context: CommandContext, runner: Runner): void {
  const list = (flags: string, description: string): Option =>
    new Option(flags, `${description}, repeatable`).argParser(separated);
  catalog
    .command('doctor')
    .description('report errors and risks of a catalog, worst first; exit with 3 on findings')
    .argument('<ref>', `catalog: ${catalogForms}`)
    .addOption(reportFormatOption().default('text'))
    .addOption(new Option('--openshift <version>', 'OpenShift version that the catalog is for, e.g. 4.18'))
    .addOption(list('--check <name,…>', 'run only these checks'))
    .addOption(list('--skip-check <name,…>', 'skip these checks'))
    .addOption(list('--package <name,…>', 'report only on these packages'))
    .addOption(
      withChoices(new Option('--severity <severity>', 'minimum severity to report'), severities).default(
        'notice',
      ),
    )
    .addOption(
      withChoices(
        new Option('--fail-on <severity>', 'minimum severity of findings that set exit code 3'),
        severities,
      ).default('warning'),
    )
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./doctor.js')).catalogDoctor(context, reference, options),
      ),
    );
}
