import { type Command, InvalidArgumentError, Option } from 'commander';
import { addContentOptions, sourceDescription } from './content-options.js';
import type { CommandContext } from './context.js';
import { outputFormatOf } from './options.js';
import type { Runner } from './runner.js';

/** Adds `unpack` and `extract` to a group: what carries a bundle elsewhere. */
export function addBundleCarryCommands(group: Command, context: CommandContext, runner: Runner): void {
  const isAlpha = group.parent?.name() === 'alpha';
  addContentOptions(group.command('extract'))
    .description('write a bundle as a ConfigMap')
    .argument('[source]', sourceDescription)
    .option('-m, --manifestsdir <directory>', 'bundle directory, where no source is given')
    .option('-c, --configmapname <name>', 'name of the ConfigMap')
    .addOption(
      new Option('-n, --namespace <namespace>', 'namespace of the ConfigMap').default(
        'openshift-operator-lifecycle-manager',
      ),
    )
    .addOption(
      new Option('-l, --datalimit <bytes>', 'most bytes of files in a ConfigMap')
        .default(1024 * 1024)
        .argParser(byteCount),
    )
    .option('-z, --gzip', 'compress the files')
    .option('--split', 'write several ConfigMaps where one does not hold the bundle')
    .addOption(outputFormatOf('yaml', 'json').default('yaml'))
    .option('--output-file <file>', 'write to this file')
    .action((source: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./commands/bundle-extract.js')).bundleExtract(context, source, options, isAlpha),
      ),
    );
}

function byteCount(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new InvalidArgumentError('expected a number of bytes');
  }
  return value;
}
