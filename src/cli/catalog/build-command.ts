import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { collect, separated } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `build` to `catalog`. */
export function addCatalogBuildCommand(catalog: Command, context: CommandContext, runner: Runner): void {
  catalog
    .command('build')
    .description('build a catalog image for all platforms and push or save it')
    .argument('<directory>', 'catalog directory')
    .option('-t, --tag <reference>', 'image reference; pushed to it unless --save is given')
    .option('--push', 'also push the image to --tag when --save is given')
    .option(
      '--save <place>',
      'save the image to oci:DIR[:TAG], oci-archive:FILE[:TAG] or docker-archive:FILE',
    )
    .option(
      '-i, --base-image <image>',
      'base image with opm, or scratch (default: "quay.io/operator-framework/opm:latest")',
    )
    .option(
      '--platforms <os/arch,…>',
      'platforms to build for (default: all platforms of the base image)',
      separated,
    )
    .option('-l, --extra-labels <key=value>', 'additional labels, repeatable or comma-separated', collect)
    .option('--cache', 'include the serve cache in the image')
    .option('--created <time>', 'creation time of the image (default: 1970-01-01T00:00:00Z)')
    .option('--skip-validation', 'build an image even if the catalog is invalid')
    .action((directory: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./build.js')).catalogBuild(context, directory, options),
      ),
    );
}
