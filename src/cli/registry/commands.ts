import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { booleanFlag, eachChannelOption, separated, separatedOrNone, withChoices } from '../options.js';
import type { Runner } from '../runner.js';
import { addServerOptions } from '../serve/commands.js';

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
        separatedOrNone,
      ),
    )
    .addOption(new Option('--batch <bundle,…>', 'the same').argParser(separatedOrNone))
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
        (await import('./add.js')).registryAdd(context, images, file, options),
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
        (await import('./rm.js')).registryRemove(context, packageName, file, options),
      ),
    );
  };
  addRemove('rm');
  addRemove('delete');

  registry
    .command('delete-latest')
    .description('remove the newest version of a package')
    .argument('<package>')
    .argument('[database]', databaseDescription)
    .addOption(database())
    .addOption(eachChannelOption())
    .addOption(new Option('--pull-from <prefix=other>', 'pull from another place').argParser(separated))
    .addOption(outputDatabase())
    .action((packageName: string, file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./delete-latest.js')).registryDeleteLatest(context, packageName, file, options),
      ),
    );

  registry
    .command('prune')
    .description('remove all packages but these')
    .argument('[database]', databaseDescription)
    .addOption(database())
    .addOption(new Option('-p, --packages <package,…>', 'packages to keep').argParser(separated))
    .addOption(permissive())
    .addOption(outputDatabase())
    .action((file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./prune.js')).registryPrune(context, file, options),
      ),
    );

  registry
    .command('prune-stranded')
    .description('remove bundles that are in no channel')
    .argument('[database]', databaseDescription)
    .addOption(database())
    .addOption(outputDatabase())
    .action((file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./prune-stranded.js')).registryPruneStranded(context, file, options),
      ),
    );

  registry
    .command('deprecatetruncate')
    .description('deprecate bundles, and remove what is older')
    .argument('[database]', databaseDescription)
    .addOption(database('index.db'))
    .addOption(
      new Option('-b, --bundle-images <image,…>', 'images of the bundles to deprecate').argParser(
        separatedOrNone,
      ),
    )
    .option('--allow-package-removal', 'remove a package whose channel heads are all deprecated')
    .addOption(permissive())
    .addOption(outputDatabase())
    .action((file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./deprecate-truncate.js')).registryDeprecateTruncate(context, file, options),
      ),
    );

  registry
    .command('create')
    .description('make an empty index')
    .argument('<database>')
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./create.js')).registryCreate(context, file, options),
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
        (await import('./migrate.js')).registryMigrate(context, file, options),
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
      runner.run(command, async (options) => (await import('./init.js')).registryInit(context, options)),
    );

  const build = registry
    .command('build')
    .description(
      'make an index image of the operators of an app registry, of package manifests or of bundles',
    )
    .option(
      '--appregistry-namespace <[host/]namespace>',
      'all operators of this namespace; or a directory of downloaded archives, as ./DIR',
    )
    .option('--appregistry-endpoint <url>', 'address of the app registry (default: https://quay.io/cnr)')
    .option('--auth-token <token>', 'token for the app registry, sent as it is')
    .option('--manifests <directory>', 'take the operators from a directory of package manifests instead')
    .option('--bundles <bundle,…>', 'take them from bundle images or directories, or a file that lists them')
    .option(
      '--from <image>',
      'image to build on (default: quay.io/operator-framework/opm:v1.73.0); scratch for the data only',
    )
    .option('--to <reference>', 'push the image there; oci:DIR:TAG and oci-archive:FILE are taken, too')
    .option('--save <path>', 'write the image as an archive for docker load')
    .addOption(permissive());
  booleanFlag(build, 'db-only', 'write only bundles.db, into the directory that --save names');
  build.action((_options, command: Command) =>
    runner.run(command, async (options) => (await import('./build.js')).registryBuild(context, options)),
  );
  const serve = registry
    .command('serve')
    .description('serve an index to clusters: the gRPC registry API')
    .argument('[database]', databaseDescription)
    .option('-d, --database <file>', `${databaseDescription} (default: bundles.db)`)
    .option('--configmap <file>', 'serve the manifests in a ConfigMap, as configmap-server did')
    .option(
      '--appregistry-namespace <directory>',
      'serve a directory of downloaded app-registry archives, as appregistry-server did',
    )
    .addOption(permissive());
  addServerOptions(serve);
  serve
    .option('--timeout-seconds <seconds>', 'end after this long', 'infinite')
    .addOption(new Option('--skip-migrate', 'accepted: the file is never changed').hideHelp())
    .addOption(containerTool().hideHelp())
    .action((file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./serve.js')).registryServe(context, file, options),
      ),
    );

  registry
    .command('images')
    .description(
      'list the images that a catalog needs, or where a mirror puts them, with what a cluster needs',
    )
    .option('--from <image>', 'catalog image; a directory, a layout or a database is taken, too')
    .option('--from-archive <file>', 'catalog image in an archive or layout; no registry is contacted')
    .option('--from-db <file>', databaseDescription)
    .option('--to <registry[/namespace]>', 'print SOURCE=TARGET lines for a mirror, and write the manifests')
    .option('--manifests <directory>', 'where to write them', './manifests')
    .option(
      '--catalog-image <reference>',
      'image of the catalog for catalogsource.yaml (default: that of --from, or its name in the archive)',
    )
    .option('--idms', 'write imagedigestmirrorset.yaml instead of imagecontentsourcepolicy.yaml')
    .option(
      '--tag-digests',
      'tag every digest at the target as oc adm catalog mirror does (default: where several share a repository)',
    )
    .addOption(new Option('--packages <package,…>', 'only those of these packages').argParser(separated))
    .addOption(
      new Option('--channels <channel,…>', 'only those of bundles in these channels').argParser(separated),
    )
    .addOption(new Option('--bundle <name,…>', 'only those of these bundles').argParser(separated))
    .option(
      '--include-undeclared',
      'add images that only deployments name, in RELATED_IMAGE_* variables or init containers',
    )
    .action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./images.js')).registryImages(context, options)),
    );

  registry
    .command('bundles')
    .description('list the references of all bundles, as registry add --from-file takes them')
    .argument('<database>')
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./bundles.js')).registryBundles(context, file, options),
      ),
    );
}
