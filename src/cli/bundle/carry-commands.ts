import { type Command, InvalidArgumentError, Option } from 'commander';
import { addContentOptions, sourceDescription } from '../deployment/content-options.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { outputFormatOf } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `unpack` and `extract` to a group: what carries a bundle elsewhere. */
export function addBundleCarryCommands(group: Command, context: CommandContext, runner: Runner): void {
  const isAlpha = group.parent?.name() === 'alpha';
  addContentOptions(group.command('unpack'))
    .description('validate a bundle and extract its files to a directory')
    .argument('<source>', sourceDescription)
    .option('-o, --out <directory>', 'output directory; existing files are never replaced', './')
    .option('-v, --skip-validation', 'skip validation')
    .option('-c, --root-ca <file>', 'the same as --ca-file')
    .addOption(new Option('-d, --debug').hideHelp())
    .addOption(new Option('-s, --skip-tls').hideHelp())
    .action((source: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./unpack.js')).bundleUnpack(
          context,
          source,
          isShortVerbose(command) ? skippingValidation(options) : options,
          isAlpha,
        ),
      ),
    );

  addContentOptions(group.command('extract'))
    .description('write a bundle as a ConfigMap')
    .argument('[source]', sourceDescription)
    .option('-m, --manifestsdir <directory>', 'bundle directory, if no source is given')
    .option('-c, --configmapname <name>', 'name of the ConfigMap')
    .addOption(
      new Option('-n, --namespace <namespace>', 'namespace of the ConfigMap').default(
        'openshift-operator-lifecycle-manager',
      ),
    )
    .addOption(
      new Option('-l, --datalimit <bytes>', 'maximum size of the files in a ConfigMap, in bytes')
        .default(1024 * 1024)
        .argParser(byteCount),
    )
    .option('-z, --gzip', 'compress the files')
    .option('--split', 'split a bundle that is too large into several ConfigMaps')
    .addOption(outputFormatOf('yaml', 'json').default('yaml'))
    .option('--output-file <file>', 'write to this file')
    .action((source: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./extract.js')).bundleExtract(context, source, options, isAlpha),
      ),
    );
}

/**
 * Whether `-v` was given: to `opm` it skips the validation here, but the option of all commands with that letter
 * takes it first.
 */
function isShortVerbose(command: Command): boolean {
  let root = command;
  while (root.parent !== null) root = root.parent;
  return (root as unknown as { rawArgs: readonly string[] }).rawArgs.includes('-v');
}

function skippingValidation(options: GlobalOptions): GlobalOptions {
  const changes = { skipValidation: true, verbose: false };
  return { ...options, ...changes };
}

function byteCount(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new InvalidArgumentError('expected a number of bytes');
  }
  return value;
}
