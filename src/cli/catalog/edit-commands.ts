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
    .description('add bundles to channels of a catalog; only the blobs that this touches change')
    .argument('<directory>', 'file-based catalog')
    .argument('<bundles...>', 'bundle: image, layout, archive or directory')
    .addOption(
      new Option(
        '--channels <name,…>',
        'channels to add to, repeatable (default: those of the bundles)',
      ).argParser(separated),
    )
    .addOption(
      withChoices(
        new Option('--mode <mode>', 'what a bundle replaces: what it says, or what its version says'),
        ['replaces', 'semver', 'semver-skippatch'],
      ).default('replaces'),
    )
    .option('--replaces <bundle>', 'what the bundle replaces (default: what it says); "" for nothing')
    .addOption(
      new Option(
        '--skips <bundle,…>',
        'what the bundle skips, repeatable (default: what it says, in replaces mode); "" for none',
      ).argParser(separatedOrNone),
    )
    .option('--skip-range <range>', 'versions that bundles skip (default: what they say); "" for none')
    .option('--default-channel <name>', 'the default channel from now on')
    .option('--migrate-level <level>', 'migrate the bundles to a level (see render)')
    .option(
      '--alpha-image-ref-template <template>',
      'template of image references of bundles that come from no registry',
    );
  command.option('--overwrite', 'write bundles anew that are there already');
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
      'remove bundles or channels of a package, or the package, and repair the upgrade graph; exit code 3 where clusters would be left behind',
    )
    .argument('<directory>', 'file-based catalog')
    .option('--package <name>', 'the package; all of it where neither bundles nor channels are named')
    .addOption(new Option('--bundle <name,…>', 'bundles to remove, repeatable').argParser(separated))
    .addOption(new Option('--channel <name,…>', 'channels to remove, repeatable').argParser(separated))
    .option('--default-channel <name>', 'the default channel from now on');
  command.option('--force', 'remove even where that leaves clusters without a way to the head');
  addDryRun(command).action((directory: string, _options, self: Command) =>
    runner.run(self, async (options) =>
      (await import('./remove.js')).catalogRemove(context, directory, options),
    ),
  );
}

function addDeprecate(catalog: Command, context: CommandContext, runner: Runner): void {
  const command = catalog
    .command('deprecate')
    .description('tell users that a package, channel or bundle is deprecated')
    .argument('<directory>', 'file-based catalog')
    .option(
      '--package <name>',
      'the package; deprecated itself where neither a channel nor a bundle is named',
    )
    .option('--channel <name>', 'the channel')
    .option('--bundle <name>', 'the bundle')
    .option('--message <text>', 'what users are told')
    .option('--message-file <file>', 'a file with what users are told; - for standard input');
  command.option('--undo', 'take the deprecation back');
  addDryRun(command).action((directory: string, _options, self: Command) =>
    runner.run(self, async (options) =>
      (await import('./deprecate.js')).catalogDeprecate(context, directory, options),
    ),
  );
}

function addDryRun(command: Command): Command {
  return command.option('--dry-run', 'change nothing; print what would change as a unified diff');
}
