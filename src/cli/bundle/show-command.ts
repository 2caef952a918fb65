import type { Command } from 'commander';
import { addContentOptions, sourceDescription } from '../deployment/content-options.js';
import type { CommandContext } from '../context.js';
import { outputFormatOf } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `show` to a group. */
export function addBundleShowCommand(group: Command, context: CommandContext, runner: Runner): void {
  addContentOptions(group.command('show'))
    .description('show a bundle: versions, APIs, images, sizes, permissions in brief')
    .argument('<source>', sourceDescription)
    .addOption(outputFormatOf('text', 'json', 'yaml').default('text'))
    .action((source: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./show.js')).bundleShow(context, source, options),
      ),
    );
}
