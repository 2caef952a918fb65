import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { catalogForms, collect, separated, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `filter`, which `prune` is another name of, to `catalog`. */
export function addCatalogFilterCommand(catalog: Command, context: CommandContext, runner: Runner): void {
  const list = (flags: string, description: string): Option =>
    new Option(flags, `${description}, repeatable`).argParser(separated);
  const each = (flags: string, description: string): Option =>
    new Option(flags, `${description}, repeatable`).argParser(collect);
  catalog
    .command('filter')
    .alias('prune')
    .description('keep part of a catalog as a valid catalog')
    .argument('<catalog>', `catalog: ${catalogForms}`)
    .addOption(list('-p, --packages <name,…>', 'keep only these packages'))
    .addOption(
      list('--channels <[package/]channel,…>', 'keep only these channels in packages that have any of them'),
    )
    .addOption(each('--versions <[scope=]range>', "keep versions in a range such as '>=1.2.0 <2.0.0'"))
    .addOption(each('--min-version <[scope=]version>', 'keep this version and higher ones'))
    .addOption(each('--max-version <[scope=]version>', 'keep this version and lower ones'))
    .addOption(
      each('--reachable-from <[scope=]installed>', 'keep bundles reachable from an installed bundle'),
    )
    .addOption(
      new Option(
        '--created-since <date|months>',
        'keep bundles created on or after DATE, or within the last N months',
      ),
    )
    .addOption(each('--latest <[scope=]count>', 'keep only the N newest matching bundles per channel'))
    .addOption(new Option('--heads-only', 'the same as --latest 1'))
    .addOption(
      withChoices(
        new Option('--undated <choice>', 'handling of bundles without a creation date (default: keep)'),
        ['keep', 'drop'],
      ),
    )
    .addOption(each('--default-channel <package=channel>', 'new default channel of a package'))
    .addOption(list('--drop-package <name,…>', 'drop these packages'))
    .addOption(list('--drop-channel <[package/]channel,…>', 'drop these channels'))
    .addOption(list('--drop-bundle <[package/]bundle,…>', 'drop these bundles and rewire edges around them'))
    .addOption(new Option('--drop-deprecated', 'drop deprecated packages, channels and bundles'))
    .addOption(new Option('--exact', 'keep only matching bundles and rewire edges around removed ones'))
    .addOption(new Option('-f, --filter <file>', 'CatalogFilter file with these criteria; - for stdin'))
    .addOption(new Option('-o, --directory <directory>', 'new or empty directory to write to; - for stdout'))
    .addOption(
      withChoices(new Option('--output <format>', 'output format (default: json)'), ['json', 'yaml']),
    )
    .addOption(new Option('--migrate-level <level>', 'run migrations up to this level'))
    .addOption(new Option('--report <file>', 'write kept bundles and reasons to a JSON file'))
    .addOption(new Option('--dry-run', 'print what would be kept, with reasons, without writing a catalog'))
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./filter.js')).catalogFilter(context, reference, options),
      ),
    );
}
