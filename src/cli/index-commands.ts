import { type Command, Option } from 'commander';
import type { CommandContext } from './context.js';
import { separated } from './options.js';
import type { Runner } from './runner.js';

/** Adds `opmate index …`: the commands on index images. */
export function addIndexCommands(program: Command, context: CommandContext, runner: Runner): void {
  const index = program.command('index').description('build and edit images of sqlite indexes');
  const imageOptions = (command: Command): Command =>
    command
      .option('-i, --binary-image <image>', 'image to build on, or scratch')
      .option('-t, --tag <reference>', 'push the image there')
      .option('--save <file>', 'write the image to an oci-archive file')
      .option('--generate', 'write database and Dockerfile instead of an image')
      .addOption(new Option('-c, --container-tool <tool>', 'accepted and not needed'));
  const add = imageOptions(
    index
      .command('add')
      .description('add bundles to an index image')
      .addOption(new Option('-b, --bundles <bundle,…>', 'bundles to add').argParser(separated)),
  );
  add.action((_options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./commands/index-add.js')).indexAdd(context, options),
    ),
  );
}
