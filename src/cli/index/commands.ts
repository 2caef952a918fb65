import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { eachChannelOption, separated, separatedOrNone, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `opmate index …`: the commands on index images. */
export function addIndexCommands(program: Command, context: CommandContext, runner: Runner): void {
  const index = program
    .command('index')
    .description('build and edit images of sqlite indexes')
    .addHelpText(
      'after',
      `
Images are built on quay.io/operator-framework/opm:v1.73.0, the last release of opm that serves databases. Name
another with --binary-image, best by digest (…@sha256:…): the same inputs make the same image only on the same base.
A base for several platforms makes an image for each of them; --platform takes one.`,
    );
  const list = (flags: string, description: string): Option =>
    new Option(flags, description).argParser(separated);
  const fromIndex = (description: string): Option => new Option('-f, --from-index <image>', description);
  const outputs = (command: Command): Command =>
    command
      .option('-t, --tag <reference>', 'image reference to push to')
      .option('--save <file>', 'write the image to an oci-archive file')
      .option('--generate', 'write ./database/index.db and a Dockerfile instead of an image')
      .option('-d, --out-dockerfile <file>', 'Dockerfile name (default: index.Dockerfile)')
      .option('-i, --binary-image <image>', 'base image, from a registry or layout, or scratch');
  const tool = (flags: string): Option =>
    withChoices(new Option(flags, 'ignored; accepted for compatibility'), ['none', 'docker', 'podman']);
  const tools = (command: Command): Command =>
    command
      .addOption(tool('-c, --container-tool <tool>'))
      .addOption(tool('-u, --build-tool <tool>'))
      .addOption(tool('-p, --pull-tool <tool>'));
  const permissive = (): Option => new Option('--permissive', 'continue on errors and report them');

  const add = index
    .command('add')
    .description('add bundles to an index image, or create one')
    .addOption(
      new Option('-b, --bundles <bundle,…>', "bundle images, directories or layouts; '' for none").argParser(
        separatedOrNone,
      ),
    )
    .option('--from-file <file>', 'file with one bundle per line, # begins a comment; - for stdin')
    .addOption(fromIndex('index image to add to (default: an empty index)'))
    .addOption(
      withChoices(
        new Option('--mode <mode>', 'how channels are updated: replaces, semver or semver-skippatch'),
        ['replaces', 'semver', 'semver-skippatch'],
      ).default('replaces'),
    )
    .option('--minimal', 'store the manifests of channel heads only')
    .option('--all-in-one', 'store the manifests of all bundles in every mode')
    .addOption(list('--pull-from <prefix=other>', 'pull bundles from another registry or repository'))
    .option('--require-digest', 'refuse bundle images without a digest')
    .option('--overwrite-latest', 'replace channel heads with bundles of the same name')
    .option('--enable-alpha', 'allow bundles that substitute for others')
    .addOption(permissive());
  tools(outputs(add)).action((_options, command: Command) =>
    runner.run(command, async (options) => (await import('./add.js')).indexAdd(context, options)),
  );

  for (const name of ['rm', 'delete']) {
    const remove = index
      .command(name)
      .description(
        name === 'rm'
          ? 'remove packages from an index image'
          : 'remove packages, or one bundle, from an index image',
      )
      .addOption(list('-o, --operators <package,…>', 'packages to remove'))
      .addOption(fromIndex('index image to edit'))
      .addOption(permissive());
    if (name === 'delete') {
      remove
        .option('--bundle <name>', 'remove one bundle and rewire edges around it')
        .addOption(list('--pull-from <prefix=other>', 'pull bundles from another registry or repository'));
    }
    tools(outputs(remove)).action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./rm.js')).indexRemove(context, options)),
    );
  }

  const deleteLatest = index
    .command('delete-latest')
    .description('remove the newest version of a package from an index image')
    .argument('<package>')
    .addOption(fromIndex('index image to edit'))
    .addOption(eachChannelOption())
    .addOption(list('--pull-from <prefix=other>', 'pull bundles from another registry or repository'));
  tools(outputs(deleteLatest)).action((packageName: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./delete-latest.js')).indexDeleteLatest(context, packageName, options),
    ),
  );

  const prune = index
    .command('prune')
    .description('remove all other packages from an index image')
    .addOption(list('-p, --packages <package,…>', 'packages to keep'))
    .addOption(fromIndex('index image to prune'))
    .addOption(permissive());
  outputs(prune)
    .addOption(tool('-c, --container-tool <tool>'))
    .action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./prune.js')).indexPrune(context, options)),
    );

  const pruneStranded = index
    .command('prune-stranded')
    .description('remove bundles that are in no channel from an index image')
    .addOption(fromIndex('index image to prune'));
  outputs(pruneStranded)
    .addOption(tool('-c, --container-tool <tool>'))
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./prune-stranded.js')).indexPruneStranded(context, options),
      ),
    );

  const deprecate = index
    .command('deprecatetruncate')
    .description('deprecate bundles of an index image and remove older ones')
    .addOption(
      new Option('-b, --bundles <image,…>', 'images of the bundles to deprecate').argParser(separatedOrNone),
    )
    .addOption(fromIndex('index image to edit'))
    .option('--allow-package-removal', 'remove a package whose channel heads are all deprecated')
    .addOption(permissive());
  tools(outputs(deprecate)).action((_options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./deprecate-truncate.js')).indexDeprecateTruncate(context, options),
    ),
  );

  const build = index
    .command('build')
    .description('build an index image from a database file')
    .argument('<database>', 'database file of the index');
  outputs(build).action((file: string, _options, command: Command) =>
    runner.run(command, async (options) => (await import('./build.js')).indexBuild(context, file, options)),
  );

  index
    .command('export')
    .description('export the bundles of an index as package manifest directories')
    .option('-i, --index <image>', 'index image, or a database file')
    .addOption(list('-p, --package <package,…>', 'packages to export (default: all)'))
    .addOption(list('-o, --xpackage <package,…>', 'the old name of --package').hideHelp())
    .option('-f, --download-folder <directory>', 'output directory', 'downloaded')
    .addOption(tool('-c, --container-tool <tool>'))
    .action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./export.js')).indexExport(context, options)),
    );
}
