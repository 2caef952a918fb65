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
    new Option('--output-db <file>', 'write the result to this file instead of editing in place');
  const containerTool = (): Option =>
    new Option('-c, --container-tool <tool>', 'ignored; accepted for compatibility').default('none');
  const permissive = (): Option => new Option('--permissive', 'continue on errors and report them');

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
    .option('--from-file <file>', 'file with one bundle per line, # begins a comment; - for stdin')
    .addOption(
      withChoices(new Option('--mode <mode>', 'how channels are updated'), [
        'replaces',
        'semver',
        'semver-skippatch',
      ]).default('replaces'),
    )
    .option('--minimal', 'store the manifests of channel heads only')
    .option('--all-in-one', 'store the manifests of all bundles in every mode')
    .addOption(
      new Option(
        '--pull-from <prefix=other>',
        'pull images of one prefix from another; the index keeps the original name',
      ).argParser(separated),
    )
    .option('--require-digest', 'refuse images without a digest')
    .option('--overwrite-latest', 'replace channel heads with bundles of the same name')
    .option('--enable-alpha', 'allow bundles that substitute for others')
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
        .option('--bundle <name>', 'remove one bundle and rewire edges around it')
        .addOption(
          new Option('--pull-from <prefix=other>', 'pull from another registry or repository').argParser(
            separated,
          ),
        );
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
    .addOption(
      new Option('--pull-from <prefix=other>', 'pull from another registry or repository').argParser(
        separated,
      ),
    )
    .addOption(outputDatabase())
    .action((packageName: string, file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./delete-latest.js')).registryDeleteLatest(context, packageName, file, options),
      ),
    );

  registry
    .command('prune')
    .description('remove all other packages')
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
    .description('deprecate bundles and remove older ones')
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
    .description('create an empty index')
    .argument('<database>')
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./create.js')).registryCreate(context, file, options),
      ),
    );

  registry
    .command('migrate')
    .description('migrate an index to a newer schema version')
    .argument('<database>')
    .option('--to <version>', 'schema version (default: the newest)')
    .addOption(outputDatabase())
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./migrate.js')).registryMigrate(context, file, options),
      ),
    );

  registry
    .command('init')
    .description('create an index from package manifests, like initializer')
    .option('-m, --manifests <directory>', 'directory of package manifests (default: manifests)')
    .option('--configmap <file>', 'ConfigMap with package manifests')
    .option('--appregistry-namespace <directory>', 'directory of downloaded app-registry archives')
    .addOption(new Option('-o, --output <file>', databaseDescription).default('bundles.db'))
    .addOption(permissive())
    .action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./init.js')).registryInit(context, options)),
    );

  const build = registry
    .command('build')
    .description('build an index image from an app registry, package manifests or bundles')
    .option(
      '--appregistry-namespace <[host/]namespace>',
      'app-registry namespace, or ./DIR with downloaded archives',
    )
    .option('--appregistry-endpoint <url>', 'address of the app registry (default: https://quay.io/cnr)')
    .option('--auth-token <token>', 'app registry token, sent verbatim')
    .option('--manifests <directory>', 'directory of package manifests')
    .option('--bundles <bundle,…>', 'bundle images or directories, or a file that lists them')
    .option('--from <image>', 'base image, or scratch (default: quay.io/operator-framework/opm:v1.73.0)')
    .option('--to <reference>', 'push the image to a reference, oci:DIR:TAG or oci-archive:FILE')
    .option('--save <path>', 'save the image as an archive for docker load')
    .addOption(permissive());
  booleanFlag(build, 'db-only', 'write only bundles.db to the --save directory');
  build.action((_options, command: Command) =>
    runner.run(command, async (options) => (await import('./build.js')).registryBuild(context, options)),
  );
  const serve = registry
    .command('serve')
    .description('serve an index over the gRPC registry API')
    .argument('[database]', databaseDescription)
    .option('-d, --database <file>', `${databaseDescription} (default: bundles.db)`)
    .option('--configmap <file>', 'serve the manifests in a ConfigMap, like configmap-server')
    .option(
      '--appregistry-namespace <directory>',
      'serve downloaded app-registry archives, like appregistry-server',
    )
    .addOption(permissive());
  addServerOptions(serve);
  serve
    .option('--timeout-seconds <seconds>', 'exit after this many seconds', 'infinite')
    .addOption(new Option('--skip-migrate', 'ignored; the file is never changed').hideHelp())
    .addOption(containerTool().hideHelp())
    .action((file: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./serve.js')).registryServe(context, file, options),
      ),
    );

  registry
    .command('images')
    .description('list the images of a catalog, or map them to a mirror and write cluster manifests')
    .option('--from <image>', 'catalog image, directory, layout or database')
    .option('--from-archive <file>', 'catalog image in an archive or layout; no registry is contacted')
    .option('--from-db <file>', databaseDescription)
    .option('--to <registry[/namespace]>', 'print SOURCE=TARGET lines for a mirror and write the manifests')
    .option('--manifests <directory>', 'output directory', './manifests')
    .option(
      '--catalog-image <reference>',
      'catalog image in catalogsource.yaml (default: --from, or its name in the archive)',
    )
    .option('--idms', 'write imagedigestmirrorset.yaml instead of imagecontentsourcepolicy.yaml')
    .option(
      '--tag-digests',
      'tag every digest at the target, like oc adm catalog mirror (default: only where several share a repository)',
    )
    .addOption(new Option('--packages <package,…>', 'select these packages').argParser(separated))
    .addOption(new Option('--channels <channel,…>', 'select bundles in these channels').argParser(separated))
    .addOption(new Option('--bundle <name,…>', 'select these bundles').argParser(separated))
    .option(
      '--include-undeclared',
      'add images named only in deployments (RELATED_IMAGE_* variables, init containers)',
    )
    .action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./images.js')).registryImages(context, options)),
    );

  registry
    .command('bundles')
    .description('list all bundle references, one per line for registry add --from-file')
    .argument('<database>')
    .action((file: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./bundles.js')).registryBundles(context, file, options),
      ),
    );
}
