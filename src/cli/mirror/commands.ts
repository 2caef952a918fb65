import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { addOcMirrorFlags, readOcMirrorFlags } from './oc-mirror-flags.js';
import { booleanFlag, collect, outputFormatOf, reportFormatOption } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `opmate catalog mirror` and `opmate mirror`. */
export function addMirrorCommands(
  program: Command,
  catalog: Command,
  context: CommandContext,
  runner: Runner,
): void {
  const mirror = program
    .command('mirror')
    .description('copy images to another registry, each as a line of a mapping says')
    .argument('[source=target...]', 'images, as in a line of a mapping')
    .option('-f, --filename <file>', 'read the mapping from a file; - for standard input')
    .option(
      '-c, --config <file>',
      'mirror what an ImageSetConfiguration says: to docker://REGISTRY[/PATH] or file://DIR',
    )
    .option(
      '--from <archive>',
      'copy from an archive on disk, repeatable for its base archives; --config then bounds what it may hold',
      collect,
    )
    .option('--id <digest>', 'with --from: copy only from the archive with this id')
    .option('--verify-key <file>', 'with --from: copy only from an archive signed by this public key')
    .option('--max-per-registry <count>', 'most requests to a registry at a time', '6')
    .option('--dir <directory>', 'root of file:// (default: the working directory)')
    .option('--from-dir <directory>', 'root of file:// sources, where it is another')
    .option('--referrers', 'copy what refers to the images too, such as signatures');
  addImageSetFlags(mirror);
  mirror
    .option(
      '--on-error <way>',
      'with --config, for images that cannot be copied: stop, skip-image or skip-bundle (default: stop)',
    )
    .option('--shard <i/n>', 'with --config and --locked: copy the part of machine I, from 0, of N')
    .option('--base <archive>', 'with --config and file://: leave out what this earlier archive holds')
    .option('--sign-by <file>', 'with --config and file://: sign the archive with this private key, in PEM');
  booleanFlag(mirror, 'strict-archive', 'with --config and file://: refuse a blob larger than archiveSize');
  booleanFlag(
    mirror,
    'remove-signatures',
    'with --config: leave out signatures and what else refers to images',
  );
  addOcMirrorFlags(mirror);
  booleanFlag(mirror, 'continue-on-error', 'copy what can be copied, and report the rest');
  booleanFlag(mirror, 'skip-missing', 'pass over images that are not at the source');
  addCopyFlags(mirror);
  mirror.addOption(new Option('--filter-by-os <pattern>', 'only .*: images keep all platforms').hideHelp());
  mirror.addOption(new Option('--max-registry <count>', 'accepted and not needed').hideHelp());
  for (const name of ['keep-manifest-list', 'skip-multiple-scopes', 'skip-mount', 'force'])
    booleanFlag(mirror, name, 'accepted and not needed', { isHidden: true });
  mirror.action((lines: string[], _options, command: Command) =>
    runner.run(command, async (options) =>
      ['config', 'from'].some((name) => command.getOptionValue(name) !== undefined)
        ? (await import('./mirror.js')).mirrorImageSet(context, lines, readOcMirrorFlags(options, lines[0]))
        : (await import('./file.js')).mirrorFile(context, lines, options),
    ),
  );

  addImageSetCommands(mirror, context, runner);

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
      (await import('./catalog-mirror.js')).catalogMirror(context, source, destination, options),
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

/** Flags of whatever works on an image set. */
function addImageSetFlags(command: Command): void {
  command
    .option('--workspace <file://directory>', 'where to write working-dir (default: file://.)')
    .option('--lock <file>', 'lock file (default: working-dir/opmate.lock.json below the workspace)')
    .option('--locked', 'take what the lock says, and fail where that cannot be had any more')
    .option('--dependencies <mode>', 'packages that bundles need: none, report or add (default: report)')
    .option('--max-nested-paths <count>', 'most components of a path at the target')
    .option('--icsp', 'write an ImageContentSourcePolicy instead of IDMS and ITMS')
    .option('--name <name>', 'what to call CatalogSource and ClusterCatalog')
    .option('--prefix <text>', 'what the names of all objects begin with')
    .option('--poll-interval <time>', 'how often clusters look for a newer catalog, e.g. 30m');
}

/** Adds what else is done with image sets, below `opmate mirror`. */
function addImageSetCommands(mirror: Command, context: CommandContext, runner: Runner): void {
  const plan = mirror
    .command('plan')
    .description('say to the byte what mirroring an image set would copy, and copy nothing')
    .argument('<destination>', 'docker://REGISTRY[/PATH] or file://DIR')
    .option('-c, --config <file>', 'ImageSetConfiguration')
    .option('--base <archive>', 'with file://: leave out what this earlier archive holds')
    .addOption(outputFormatOf('text', 'json'));
  addImageSetFlags(plan);
  plan.action((destination: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./plan.js')).mirrorPlan(context, destination, readOcMirrorFlags(options, destination)),
    ),
  );

  mirror
    .command('status')
    .description('say what of a lock is at a registry, or in an archive, and what is left to copy')
    .argument('<destination>', 'docker://REGISTRY[/PATH] or file://DIR')
    .option('--workspace <file://directory>', 'where working-dir is (default: file://.)')
    .option('--lock <file>', 'lock file (default: working-dir/opmate.lock.json below the workspace)')
    .option('--max-nested-paths <count>', 'most components of a path at the target')
    .addOption(outputFormatOf('text', 'json'))
    .action((destination: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./status.js')).mirrorStatus(
          context,
          destination,
          readOcMirrorFlags(options, destination),
        ),
      ),
    );

  mirror
    .command('diff')
    .description('say what differs between two locks or archives: packages, channels, bundles, images, bytes')
    .argument('<from>', 'lock file, or directory of an archive')
    .argument('<to>', 'lock file, or directory of an archive')
    .addOption(outputFormatOf('text', 'json'))
    .action((from: string, to: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./diff.js')).mirrorDiff(context, from, to, options),
      ),
    );

  const remove = mirror
    .command('delete')
    .description(
      'list with --generate what of an image set to delete, or delete what --delete-yaml-file lists',
    )
    .argument('<destination>', 'docker://REGISTRY[/PATH]')
    .option('-c, --config <file>', 'with --generate: DeleteImageSetConfiguration')
    .option(
      '--workspace <file://directory>',
      'with --generate: where to write working-dir (default: file://.)',
    )
    .option('--delete-id <text>', 'with --generate: part of the names of the files')
    .option('--delete-yaml-file <file>', 'delete what this file lists')
    .option('--max-nested-paths <count>', 'most components of a path at the target')
    .option('--keep <lock>', 'keep what this lock needs, repeatable', collect)
    .option('--dry-run', 'with --delete-yaml-file: look for every image, and delete nothing');
  booleanFlag(remove, 'generate', 'write working-dir/delete/delete-images.yaml, and delete nothing');
  booleanFlag(remove, 'delete-signatures', 'the signatures of the images too');
  booleanFlag(remove, 'delete-v1-images', 'with --generate: by the tags that oc-mirror v1 gave');
  booleanFlag(remove, 'force-cache-delete', 'accepted; there is no cache', { isHidden: true });
  remove.action((destination: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./delete.js')).mirrorDelete(
        context,
        destination,
        readOcMirrorFlags(options, destination),
      ),
    ),
  );

  mirror
    .command('list')
    .description('list what can be mirrored')
    .command('operators')
    .description('list the packages, channels or versions of a catalog as tables')
    .option('--catalog <reference>', 'catalog image, layout or directory')
    .option('--package <name>', 'with --catalog: its channels and their heads')
    .option('--channel <name>', 'with --package: the versions in this channel')
    .option('--catalogs', 'with --version: which of the well-known catalogs there are')
    .option('--version <version>', 'with --catalogs: version of the cluster, e.g. 4.18')
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./list-operators.js')).mirrorListOperators(
          context,
          readOcMirrorFlags(options, undefined),
        ),
      ),
    );
}

/** Adds `opmate archive`. */
export function addArchiveCommands(program: Command, context: CommandContext, runner: Runner): void {
  program
    .command('archive')
    .description('work with archives that mirror has written to disk')
    .command('verify')
    .description('read all of an archive and report what is damaged or missing')
    .argument('<archive>', 'directory of the archive')
    .option('--id <digest>', 'fail unless the archive has this id')
    .option('--verify-key <file>', 'fail unless the archive is signed by this public key')
    .addOption(reportFormatOption())
    .action((directory: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('../archive/verify.js')).archiveVerify(context, directory, options),
      ),
    );
}
