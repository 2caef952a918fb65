import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `generate`, `build` and, outside of `alpha`, `push` to a group: what makes a bundle. */
export function addBundleAuthorCommands(group: Command, context: CommandContext, runner: Runner): void {
  const isAlpha = group.parent?.name() === 'alpha';
  // opm has no code of its own for what is wrong with a bundle.
  const refused = isAlpha ? exitCodes.failed : exitCodes.findings;
  const described = (command: Command): Command =>
    command
      .option('-d, --directory <directory>', 'directory of the bundle manifests')
      .option('-p, --package <name>', 'package name')
      .option('-c, --channels <channel,…>', 'channels of the bundle')
      .option('-e, --default <channel>', 'default channel of the package')
      .option(
        '-u, --output-dir <directory>',
        'copy the manifests to this directory and write the metadata next to them',
      )
      .option('--base-image <image>', 'image to build on (default: scratch)');

  described(group.command('generate'))
    .description('write annotations and a Dockerfile for a directory of manifests')
    .addHelpText(
      'after',
      `
Writes metadata/annotations.yaml beside the directory, and bundle.Dockerfile into the working directory; both replace
what is there. Package and channels may be left away where the directory stands beside those of the other versions and a
package manifest.`,
    )
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./generate.js')).bundleGenerate(context, options),
      ),
    );

  const build = described(group.command('build'))
    .description('build the image of a bundle, without a container engine')
    .option('-t, --tag <reference>', 'image reference; pushed to it unless --save is given')
    .option('--push', 'also push the image when --save is given')
    .option(
      '--save <destination>',
      'save the image to oci:DIR[:TAG], oci-archive:FILE[:TAG] or docker-archive:FILE',
    )
    .option('-o, --overwrite', 'overwrite existing annotations, Dockerfile and copies')
    .addOption(
      withChoices(new Option('-b, --image-builder <tool>', 'ignored; accepted for compatibility'), [
        'docker',
        'podman',
        'buildah',
      ]),
    )
    .addHelpText(
      'after',
      `
Missing annotations are generated for the image. No file is written but the image, unless --output-dir asks for copies and
annotations, or --overwrite for the Dockerfile too. A bundle.Dockerfile that is there gives its base image, its labels, and
further directories that it copies. The same files make the same digest.`,
    );
  for (const value of ['true', 'false']) build.addOption(new Option(`--overwrite=${value}`).hideHelp());
  build.action((_options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./build.js')).bundleBuild(context, options, refused),
    ),
  );
  if (isAlpha) return;

  group
    .command('push')
    .description('push a saved bundle image, or build and push one from a directory')
    .argument(
      '<source>',
      'oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, or a directory with manifests/ and metadata/',
    )
    .argument('<reference>', 'image reference to push to')
    .action((source: string, reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./push.js')).bundlePush(context, source, reference, options),
      ),
    );
}
