import { type Command, Option } from 'commander';
import type { CommandContext } from './context.js';
import { booleanFlag } from './options.js';
import type { Runner } from './runner.js';

/** Adds `opmate catalog mirror` and `opmate mirror`. */
export function addMirrorCommands(program: Command, context: CommandContext, runner: Runner): void {
  const mirror = program
    .command('mirror')
    .description('copy images to another registry, each as a line of a mapping says')
    .argument('[source=target...]', 'images, as in a line of a mapping')
    .option('-f, --filename <file>', 'read the mapping from a file; - for standard input')
    .option('-c, --config <file>', 'mirror what an ImageSetConfiguration says to docker://REGISTRY[/PATH]')
    .option('--workspace <file://directory>', 'with --config: where to write working-dir (default: file://.)')
    .option('--max-nested-paths <count>', 'with --config: most components of a path at the target')
    .option('--icsp', 'with --config: write an ImageContentSourcePolicy instead of IDMS and ITMS')
    .option('--name <name>', 'with --config: what to call CatalogSource and ClusterCatalog')
    .option('--prefix <text>', 'with --config: what the names of all objects begin with')
    .option('--poll-interval <time>', 'with --config: how often clusters look for a newer catalog, e.g. 30m')
    .addOption(new Option('--v2', 'accepted, as by oc-mirror').hideHelp())
    .option('--max-per-registry <count>', 'most requests to a registry at a time', '6')
    .option('--dir <directory>', 'root of file:// (default: the working directory)')
    .option('--from-dir <directory>', 'root of file:// sources, where it is another')
    .option('--referrers', 'copy what refers to the images too, such as signatures');
  booleanFlag(mirror, 'continue-on-error', 'copy what can be copied, and report the rest');
  booleanFlag(mirror, 'skip-missing', 'pass over images that are not at the source');
  addCopyFlags(mirror);
  mirror.addOption(new Option('--filter-by-os <pattern>', 'only .*: images keep all platforms').hideHelp());
  mirror.addOption(new Option('--max-registry <count>', 'accepted and not needed').hideHelp());
  for (const name of ['keep-manifest-list', 'skip-multiple-scopes', 'skip-mount', 'force'])
    booleanFlag(mirror, name, 'accepted and not needed', { isHidden: true });
  mirror.action((lines: string[], _options, command: Command) =>
    runner.run(command, async (options) =>
      command.getOptionValue('config') !== undefined
        ? (await import('./commands/mirror.js')).mirrorImageSet(context, lines, options)
        : (await import('./commands/mirror-file.js')).mirrorFile(context, lines, options),
    ),
  );

  const catalog = program.command('catalog').description('work with whole catalogs');
  const catalogMirror = catalog
    .command('mirror')
    .description(
      'copy a catalog and all its images to another registry, with what a cluster needs to use them',
    )
    .argument('<source>', 'catalog image, or with --source-name a directory, layout or database file')
    .argument('<destination>', 'registry[/path], or file://path')
    .option('--source-name <reference>', 'what the catalog is called; no registry is asked for it then')
    .option(
      '--to-manifests <directory>',
      'where to write mapping and manifests (default: manifests-NAME-TIME)',
    )
    .option('--path <in:out>', 'directory of the catalog in the image, and where to unpack it to')
    .option('--index-filter-by-os <pattern>', 'platform to read the catalog of', 'linux/amd64')
    .addOption(new Option('--filter-by-os <pattern>', 'the old name of --index-filter-by-os').hideHelp())
    .option('--max-components <count>', 'most path components at the destination; 0 for any number', '2')
    .option('--merge-repositories', 'let repositories that get the same name share it')
    .option('--idms-scope <scope>', 'entries a repository or a registry', 'repository')
    .option('--icsp-scope <scope>', 'the same for the ImageContentSourcePolicy', 'repository')
    .option('--max-idms-size <bytes>', 'most bytes of a document', '250000')
    .option('--max-icsp-size <bytes>', 'the same for the ImageContentSourcePolicy', '250000')
    .option('--max-per-registry <count>', 'most requests to a registry at a time', '4')
    .option('--dir <directory>', 'root of file:// (default: the working directory)')
    .option('--from-dir <directory>', 'root of a file:// source, where it is another')
    .option('--referrers', 'copy what refers to the images too, such as signatures');
  booleanFlag(catalogMirror, 'manifests-only', 'write mapping and manifests, and copy nothing');
  booleanFlag(catalogMirror, 'continue-on-error', 'copy what can be copied (default: true)');
  addCopyFlags(catalogMirror);
  catalogMirror.action((source: string, destination: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./commands/catalog-mirror.js')).catalogMirror(context, source, destination, options),
    ),
  );
}

/** Flags that `oc` has for whatever copies images. */
function addCopyFlags(command: Command): void {
  booleanFlag(command, 'dry-run', 'look for every image at its source, and copy nothing');
  booleanFlag(command, 'insecure', 'use HTTP, and take any certificate, where a registry asks for it');
  booleanFlag(command, 'skip-verification', 'accepted; digests are always verified');
  command
    .option('-a, --registry-config <file>', 'credentials file; the same as --authfile')
    .addOption(new Option('--certificate-authority <file>', 'the same as --ca-file').hideHelp());
}
