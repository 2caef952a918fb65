import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { collect, separated } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `build` to `catalog`. */
export function addCatalogBuildCommand(catalog: Command, context: CommandContext, runner: Runner): void {
  catalog
    .command('build')
    .description('build the image of a catalog directory, for all platforms, and push or save it')
    .argument('<directory>', 'catalog directory')
    .option('-t, --tag <reference>', 'what to call the image; pushed there unless it is saved')
    .option('--push', 'push the image to --tag also where it is saved')
    .option('--save <place>', 'keep it in oci:DIR[:TAG], oci-archive:FILE[:TAG] or docker-archive:FILE')
    .option(
      '-i, --base-image <image>',
      'image that has opm, or scratch (default: "quay.io/operator-framework/opm:latest")',
    )
    .option('--platforms <os/arch,…>', 'platforms to build for (default: all of the base)', separated)
    .option('-l, --extra-labels <key=value>', 'further labels, repeatable or separated by commas', collect)
    .option('--cache', 'put the cache into the image that opm serves from')
    .option('--created <time>', 'time that the image says it was made at (default: 1970-01-01T00:00:00Z)')
    .option('--skip-validation', 'build the image also of a catalog that is not valid')
    .action((directory: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./build.js')).catalogBuild(context, directory, options),
      ),
    );
}
