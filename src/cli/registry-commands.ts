import { type Command, Option } from 'commander';
import type { CommandContext } from './context.js';
import { separated, withChoices } from './options.js';
import type { Runner } from './runner.js';

const databaseDescription = 'database file of the index';

/** Adds `opmate registry …`: the commands on database files. */
export function addRegistryCommands(program: Command, context: CommandContext, runner: Runner): void {
  const registry = program.command('registry').description('build, edit and query sqlite indexes');
  const database = (name = 'bundles.db'): Option =>
    new Option('-d, --database <file>', databaseDescription).default(name);
  const outputDatabase = (): Option =>
    new Option('--output-db <file>', 'write the result there, and leave the input as it is');
  const containerTool = (): Option =>
    new Option('-c, --container-tool <tool>', 'accepted and not needed').default('none');
  const permissive = (): Option => new Option('--permissive', 'do what can be done, and report the rest');

  registry
    .command('add')
    .description('add bundles to an index')
    .argument('[images]', 'bundles, separated by commas')
    .argument('[database]', databaseDescription)
    .addOption(database())
    .addOption(
      new Option('-b, --bundle-images <bundle,…>', 'bundle images, directories or layouts').argParser(
        separated,
      ),
    )
    .addOption(new Option('--batch <bundle,…>', 'the same').argParser(separated))
    .option(
      '--from-file <file>',
      'read the bundles from a file, or - for standard input: one a line, # begins a comment',
    )
    .addOption(
      withChoices(new Option('--mode <mode>', 'how channels are updated'), [
        'replaces',
        'semver',
        'semver-skippatch',
      ]).default('replaces'),
    )
    .option('--minimal', 'keep the manifests of channel heads only')
    .option('--all-in-one', 'keep the manifests of all bundles in every mode')
    .addOption(
      new Option(
        '--pull-from <prefix=other>',
        'pull images under one name from another; the index keeps the name that was given',
      ).argParser(separated),
    )
    .option('--require-digest', 'refuse images that are not named by digest')
    .option('--overwrite-latest', 'replace channel heads by bundles of the same name')
    .option('--enable-alpha', 'take bundles that substitute for others')
    .addOption(permissive())
    .addOption(containerTool())
    .addOption(outputDatabase())
    .action((images: string | undefined, file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-add.js')).registryAdd(context, images, file, options),
      ),
    );

  const addRemove = (name: string): void => {
    const command = registry
      .command(name)
      .description('remove packages')
      .argument('[package]', 'package to remove')
      .argument('[database]', databaseDescription)
      .addOption(database())
      .addOption(new Option('-o, --packages <package,…>', 'packages to remove').argParser(separated))
      .addOption(permissive())
      .addOption(outputDatabase());
    if (name === 'delete') {
      command
        .option('--bundle <name>', 'remove one bundle, and repair the edges around it')
        .addOption(new Option('--pull-from <prefix=other>', 'pull from another place').argParser(separated));
    }
    command.action((packageName: string | undefined, file: string | undefined) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-rm.js')).registryRemove(context, packageName, file, options),
      ),
    );
  };
  addRemove('rm');
  addRemove('delete');

  registry
    .command('delete-latest')
    .description('remove the newest bundle of each channel of a package')
    .argument('<package>')
    .argument('[database]', databaseDescription)
    .addOption(database())
    .addOption(new Option('--pull-from <prefix=other>', 'pull from another place').argParser(separated))
    .addOption(outputDatabase())
    .action((packageName: string, file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-delete-latest.js')).registryDeleteLatest(
          context,
          packageName,
          file,
          options,
        ),
      ),
    );

  registry
    .command('prune')
    .description('remove all packages but these')
    .addOption(database())
    .addOption(new Option('-p, --packages <package,…>', 'packages to keep').argParser(separated))
    .addOption(permissive())
    .addOption(outputDatabase())
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-prune.js')).registryPrune(context, options),
      ),
    );

  registry
    .command('prune-stranded')
    .description('remove bundles that are in no channel')
    .addOption(database())
    .addOption(outputDatabase())
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-prune-stranded.js')).registryPruneStranded(context, options),
      ),
    );

  registry
    .command('deprecatetruncate')
    .description('deprecate bundles, and remove what is older')
    .addOption(database('index.db'))
    .addOption(
      new Option('-b, --bundle-images <image,…>', 'images of the bundles to deprecate').argParser(separated),
    )
    .option('--allow-package-removal', 'remove a package whose channel heads are all deprecated')
    .addOption(permissive())
    .addOption(outputDatabase())
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-deprecate-truncate.js')).registryDeprecateTruncate(
          context,
          options,
        ),
      ),
    );

  registry
    .command('create')
    .description('make an empty index')
    .argument('<database>')
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-create.js')).registryCreate(context, file, options),
      ),
    );

  registry
    .command('migrate')
    .description('bring an index to a newer schema version')
    .argument('<database>')
    .option('--to <version>', 'schema version; the newest unless told')
    .addOption(outputDatabase())
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-migrate.js')).registryMigrate(context, file, options),
      ),
    );

  registry
    .command('init')
    .description('make an index of package manifests, as initializer did')
    .option('-m, --manifests <directory>', 'directory of package manifests (default: manifests)')
    .option('--configmap <file>', 'a ConfigMap that holds them')
    .option('--appregistry-namespace <directory>', 'a directory of downloaded app-registry archives')
    .addOption(new Option('-o, --output <file>', databaseDescription).default('bundles.db'))
    .addOption(permissive())
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-init.js')).registryInit(context, options),
      ),
    );

  registry
    .command('images')
    .description('list the images that an index, or one bundle of it, needs')
    .requiredOption('--from-db <file>', databaseDescription)
    .option('--bundle <name>', 'only those of this bundle')
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-images.js')).registryImages(context, options),
      ),
    );

  registry
    .command('bundles')
    .description('list the references of all bundles, as registry add --from-file takes them')
    .argument('<database>')
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/registry-bundles.js')).registryBundles(context, file, options),
      ),
    );
}
