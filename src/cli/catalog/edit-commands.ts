import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { separated, separatedOrNone, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds what changes catalogs in directories to `catalog`: `add`, `remove` and `deprecate`. */
export function addCatalogEditCommands(catalog: Command, context: CommandContext, runner: Runner): void {
  addAdd(catalog, context, runner);
  addRemove(catalog, context, runner);
  addDeprecate(catalog, context, runner);
}

function addAdd(catalog: Command, context: CommandContext, runner: Runner): void {
  const command = catalog
    .command('add')
    .description('add bundles to channels of a catalog; unrelated blobs keep their bytes')
    .argument('<directory>', 'file-based catalog')
    .argument('<bundles...>', 'bundle: image, layout, archive or directory')
    .addOption(
      new Option(
        '--channels <name,…>',
        'channels to add to, repeatable (default: those of the bundles)',
      ).argParser(separated),
    )
    .addOption(
      withChoices(new Option('--mode <mode>', 'update mode: replaces (as declared) or semver (by version)'), [
        'replaces',
        'semver',
        'semver-skippatch',
      ]).default('replaces'),
    )
    .option('--replaces <bundle>', 'bundle to replace (default: as declared); "" for none')
    .addOption(
      new Option(
        '--skips <bundle,…>',
        'bundles to skip, repeatable (default: as declared, in replaces mode); "" for none',
      ).argParser(separatedOrNone),
    )
    .option('--skip-range <range>', 'versions to skip (default: as declared); "" for none')
    .option('--default-channel <name>', 'new default channel')
    .option('--migrate-level <level>', 'run migrations on the bundles up to this level')
    .option(
      '--alpha-image-ref-template <template>',
      'image reference template for bundles that are not from a registry',
    );
  command.option('--overwrite', 'replace bundles that already exist');
  addDryRun(command).action((directory: string, bundles: string[], _options, self: Command) =>
    runner.run(self, async (options) =>
      (await import('./add.js')).catalogAdd(context, directory, bundles, options),
    ),
  );
}

function addRemove(catalog: Command, context: CommandContext, runner: Runner): void {
  const command = catalog
    .command('remove')
    .description(
      'remove bundles, channels or a package and repair the upgrade graph; exit with 3 if installed bundles would be stranded',
    )
    .argument('<directory>', 'file-based catalog')
    .option('--package <name>', 'package; removed completely if neither bundles nor channels are given')
    .addOption(new Option('--bundle <name,…>', 'bundles to remove, repeatable').argParser(separated))
    .addOption(new Option('--channel <name,…>', 'channels to remove, repeatable').argParser(separated))
    .option('--default-channel <name>', 'new default channel');
  command.option('--force', 'remove even if installed bundles are stranded');
  addDryRun(command).action((directory: string, _options, self: Command) =>
    runner.run(self, async (options) =>
      (await import('./remove.js')).catalogRemove(context, directory, options),
    ),
  );
}

function addDeprecate(catalog: Command, context: CommandContext, runner: Runner): void {
  const command = catalog
    .command('deprecate')
    .description('deprecate a package, channel or bundle')
    .argument('<directory>', 'file-based catalog')
    .option('--package <name>', 'package; deprecated itself if neither channel nor bundle is given')
    .option('--channel <name>', 'channel to deprecate')
    .option('--bundle <name>', 'bundle to deprecate')
    .option('--message <text>', 'deprecation message')
    .option('--message-file <file>', 'file with the deprecation message; - for stdin');
  command.option('--undo', 'remove the deprecation');
  addDryRun(command).action((directory: string, _options, self: Command) =>
    runner.run(self, async (options) =>
      (await import('./deprecate.js')).catalogDeprecate(context, directory, options),
    ),
  );
}

function addDryRun(command: Command): Command {
  return command.option('--dry-run', 'print the changes as a unified diff without writing them');
}
