import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { unknownCommand } from '../help.js';
import { addOcMirrorFlags, readOcMirrorFlags } from './oc-mirror-flags.js';
import { booleanFlag, collect, outputFormatOf } from '../options.js';
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
    .description('mirror images, catalogs and image sets')
    .argument('[source=target...]', 'images to copy, as in a mapping line')
    .option('-f, --filename <file>', 'mapping file; - for stdin')
    .option(
      '-c, --config <file>',
      'mirror an ImageSetConfiguration to docker://REGISTRY[/PATH] or file://DIR',
    )
    .option(
      '--from <archive>',
      'mirror from an archive on disk, repeatable for base archives; --config limits its content',
      collect,
    )
    .option('--id <digest>', 'with --from: require this archive ID')
    .option('--verify-key <file>', 'with --from: require a signature by this public key')
    .option('--max-per-registry <count>', 'maximum number of concurrent requests per registry', '6')
    .option('--dir <directory>', 'root of file:// (default: the working directory)')
    .option('--from-dir <directory>', 'root of file:// sources, if different')
    .option('--referrers', 'also copy referrers such as signatures');
  addImageSetFlags(mirror);
  mirror
    .option(
      '--on-error <way>',
      'with --config: action for images that cannot be copied: stop, skip-image or skip-bundle (default: stop)',
    )
    .option('--shard <i/n>', 'with --config and --locked: copy shard I of N (zero-based)')
    .option('--base <archive>', 'with --config and file://: omit content of this base archive')
    .option('--sign-by <file>', 'with --config and file://: sign the archive with this private key, in PEM');
  booleanFlag(mirror, 'strict-archive', 'with --config and file://: refuse a blob larger than archiveSize');
  booleanFlag(mirror, 'remove-signatures', 'with --config: do not copy signatures and other referrers');
  addOcMirrorFlags(mirror);
  booleanFlag(mirror, 'continue-on-error', 'continue on errors and report them');
  booleanFlag(mirror, 'skip-missing', 'skip images that are missing at the source');
  addCopyFlags(mirror);
  mirror.addOption(
    new Option('--filter-by-os <pattern>', 'only .* is supported: images keep all platforms').hideHelp(),
  );
  mirror.addOption(new Option('--max-registry <count>', 'ignored; accepted for compatibility').hideHelp());
  for (const name of ['keep-manifest-list', 'skip-multiple-scopes', 'skip-mount', 'force'])
    booleanFlag(mirror, name, 'ignored; accepted for compatibility', { isHidden: true });
  mirror.action((lines: string[], _options, command: Command) =>
    runner.run(command, async (options) => {
      const isImageSet = ['config', 'from'].some((name) => command.getOptionValue(name) !== undefined);
      const [word, ...rest] = lines;
      // A lone word without a place is a mistyped command, never an image.
      if (!isImageSet && word !== undefined && rest.length === 0 && /^[a-z-]+$/.test(word)) {
        throw unknownCommand(command, word);
      }
      return isImageSet
        ? (await import('./mirror.js')).mirrorImageSet(context, lines, readOcMirrorFlags(options, lines[0]))
        : (await import('./file.js')).mirrorFile(context, lines, options);
    }),
  );

  addImageSetCommands(mirror, context, runner);

  const catalogMirror = catalog
    .command('mirror')
    .description('mirror a catalog and its images, and write the manifests for a cluster')
    .argument('<source>', 'catalog image, or with --source-name a directory, layout or database file')
    .argument('<destination>', 'registry[/path], or file://path')
    .option('--source-name <reference>', 'name of the catalog; no registry is contacted for it')
    .option(
      '--to-manifests <directory>',
      'output directory of mapping and manifests (default: manifests-NAME-TIME)',
    )
    .option('--path <in:out>', 'catalog directory in the image, and directory to unpack it to')
    .option('--index-filter-by-os <pattern>', 'platform of the catalog image to read', 'linux/amd64')
    .addOption(new Option('--filter-by-os <pattern>', 'the old name of --index-filter-by-os').hideHelp())
    .option('--max-components <count>', 'maximum path components at the destination; 0 for no limit', '2')
    .option('--merge-repositories', 'merge repositories that map to the same name')
    .option('--idms-scope <scope>', 'scope of entries: repository or registry', 'repository')
    .option('--icsp-scope <scope>', 'scope of ImageContentSourcePolicy entries', 'repository')
    .option('--max-idms-size <bytes>', 'maximum size of a document, in bytes', '250000')
    .option('--max-icsp-size <bytes>', 'scope of ImageContentSourcePolicy entries', '250000')
    .option('--max-per-registry <count>', 'maximum number of concurrent requests per registry', '4')
    .option('--dir <directory>', 'root of file:// (default: the working directory)')
    .option('--from-dir <directory>', 'root of a file:// source, if different')
    .option('--referrers', 'also copy referrers such as signatures');
  booleanFlag(catalogMirror, 'manifests-only', 'write mapping and manifests without copying images');
  booleanFlag(catalogMirror, 'continue-on-error', 'continue on errors (default: true)');
  addCopyFlags(catalogMirror);
  catalogMirror.action((source: string, destination: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./catalog-mirror.js')).catalogMirror(context, source, destination, options),
    ),
  );
}

/** Flags that `oc` has for whatever copies images. */
function addCopyFlags(command: Command): void {
  booleanFlag(command, 'dry-run', 'check that every image exists without copying');
  booleanFlag(command, 'insecure', 'allow plain HTTP and unverified certificates');
  booleanFlag(command, 'skip-verification', 'ignored; digests are always verified');
  command
    .option('-a, --registry-config <file>', 'credentials file; the same as --authfile')
    .addOption(new Option('--certificate-authority <file>', 'the same as --ca-file').hideHelp());
}

/** Flags of whatever works on an image set. */
function addImageSetFlags(command: Command): void {
  command
    .option('--workspace <file://directory>', 'parent directory of working-dir (default: file://.)')
    .option('--lock <file>', 'lock file (default: working-dir/opmate.lock.json below the workspace)')
    .option('--locked', 'mirror what the lock pins; fail if unavailable')
    .option('--dependencies <mode>', 'handling of required packages: none, report or add (default: report)')
    .option('--max-nested-paths <count>', 'maximum path components at the target')
    .option('--icsp', 'write an ImageContentSourcePolicy instead of IDMS and ITMS')
    .option('--name <name>', 'name of CatalogSource and ClusterCatalog')
    .option('--prefix <text>', 'name prefix of all objects')
    .option('--poll-interval <time>', 'catalog polling interval of clusters, e.g. 30m')
    .option('--helm-charts', 'also mirror Helm charts to a registry, as OCI artifacts below helm/');
}

/** Adds what else is done with image sets, below `opmate mirror`. */
function addImageSetCommands(mirror: Command, context: CommandContext, runner: Runner): void {
  const plan = mirror
    .command('plan')
    .description('show what a mirror run would copy, in bytes')
    .argument('<destination>', 'docker://REGISTRY[/PATH] or file://DIR')
    .option('-c, --config <file>', 'ImageSetConfiguration')
    .option('--base <archive>', 'with file://: omit content of this base archive')
    .addOption(outputFormatOf('text', 'json'));
  addImageSetFlags(plan);
  plan.action((destination: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./plan.js')).mirrorPlan(context, destination, readOcMirrorFlags(options, destination)),
    ),
  );

  mirror
    .command('status')
    .description('show which locked images a registry or archive has, and what is left to copy')
    .argument('<destination>', 'docker://REGISTRY[/PATH] or file://DIR')
    .option('--workspace <file://directory>', 'parent directory of working-dir (default: file://.)')
    .option('--lock <file>', 'lock file (default: working-dir/opmate.lock.json below the workspace)')
    .option('--max-nested-paths <count>', 'maximum path components at the target')
    .option('--helm-charts', 'also look for Helm charts in a registry')
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
    .description('show the differences between two locks or archives')
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
    .description('generate a list of images to delete, or delete the images of such a list')
    .argument('<destination>', 'docker://REGISTRY[/PATH]')
    .option('-c, --config <file>', 'with --generate: DeleteImageSetConfiguration')
    .option(
      '--workspace <file://directory>',
      'with --generate: parent directory of working-dir (default: file://.)',
    )
    .option('--delete-id <text>', 'with --generate: suffix of file names')
    .option('--delete-yaml-file <file>', 'list of images to delete')
    .option('--max-nested-paths <count>', 'maximum path components at the target')
    .option('--keep <lock>', 'keep images of this lock, repeatable', collect)
    .option('--dry-run', 'with --delete-yaml-file: check every image without deleting');
  booleanFlag(remove, 'generate', 'write working-dir/delete/delete-images.yaml without deleting');
  booleanFlag(remove, 'delete-signatures', 'also delete signatures');
  booleanFlag(remove, 'delete-v1-images', 'with --generate: use the tags of oc-mirror v1');
  booleanFlag(remove, 'force-cache-delete', 'ignored; there is no cache', { isHidden: true });
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
    .description('list catalogs, packages and versions that can be mirrored')
    .command('operators')
    .description('list the packages, channels or versions of a catalog as tables')
    .option('--catalog <reference>', 'catalog image, layout or directory')
    .option('--package <name>', 'with --catalog: list channels and heads of this package')
    .option('--channel <name>', 'with --package: list versions in this channel')
    .option('--catalogs', 'with --version: list the well-known catalogs')
    .option('--version <version>', 'with --catalogs: cluster version, e.g. 4.18')
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./list-operators.js')).mirrorListOperators(
          context,
          readOcMirrorFlags(options, undefined),
        ),
      ),
    );
}
