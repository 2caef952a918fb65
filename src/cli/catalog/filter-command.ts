import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { collect, separated, withChoices } from '../options.js';
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
    .description('keep a part of a catalog that is a valid catalog by itself')
    .argument('<catalog>', 'catalog: directory, image or sqlite index')
    .addOption(list('-p, --packages <name,…>', 'keep only these packages'))
    .addOption(list('--channels <[package/]channel,…>', 'of packages that have one of these keep only these'))
    .addOption(each('--versions <[scope=]range>', "keep versions in a range such as '>=1.2.0 <2.0.0'"))
    .addOption(each('--min-version <[scope=]version>', 'keep this version and higher ones'))
    .addOption(each('--max-version <[scope=]version>', 'keep this version and lower ones'))
    .addOption(
      each('--reachable-from <[scope=]installed>', 'keep what a cluster with this can still come to'),
    )
    .addOption(
      new Option('--created-since <date|months>', 'keep bundles created since 2024-01-31, or in 6 months'),
    )
    .addOption(each('--latest <[scope=]count>', 'of what the other criteria leave keep the newest so many'))
    .addOption(new Option('--heads-only', 'the same as --latest 1'))
    .addOption(
      withChoices(
        new Option(
          '--undated <choice>',
          'what --created-since does with bundles without a date (default: keep)',
        ),
        ['keep', 'drop'],
      ),
    )
    .addOption(each('--default-channel <package=channel>', 'new default channel of a package'))
    .addOption(list('--drop-package <name,…>', 'drop these packages'))
    .addOption(list('--drop-channel <[package/]channel,…>', 'drop these channels'))
    .addOption(list('--drop-bundle <[package/]bundle,…>', 'drop these bundles; edges then lead past them'))
    .addOption(new Option('--drop-deprecated', 'drop what olm.deprecations names'))
    .addOption(new Option('--exact', 'keep nothing besides; edges then lead past what is between'))
    .addOption(
      new Option('-f, --filter <file>', 'file of kind CatalogFilter that says the same; - for stdin'),
    )
    .addOption(new Option('-o, --directory <directory>', 'new or empty directory to write to; - for stdout'))
    .addOption(
      withChoices(new Option('--output <format>', 'format of what is written (default: json)'), [
        'json',
        'yaml',
      ]),
    )
    .addOption(new Option('--migrate-level <level>', 'bring bundles to a newer form of the format'))
    .addOption(new Option('--report <file>', 'write what is kept and why to a file, as JSON'))
    .addOption(new Option('--dry-run', 'only tell what would be kept, and why'))
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./filter.js')).catalogFilter(context, reference, options),
      ),
    );
}
