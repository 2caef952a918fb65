import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { catalogForms, collect, outputFormatOf, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

const catalogDescription = `${catalogForms}: REF or NAME=REF`;

/** Adds `resolve` and `successors` to a group. */
export function addBundleResolveCommands(bundle: Command, context: CommandContext, runner: Runner): void {
  const channel = (): Option =>
    new Option('--channel <channel>', 'use only this channel, repeatable (default: all)').argParser(collect);

  bundle
    .command('resolve')
    .description('print the bundle of a package that OLM v1 would install')
    .argument('<package>', 'name of the package')
    .addOption(
      new Option(
        '--catalog <catalog>',
        `${catalogDescription}[,priority=N][,labels=KEY=VALUE,…], repeatable`,
      ).argParser(collect),
    )
    .option('--version <range>', 'version range, e.g. "1.2.3", "~1.2" or ">=1.2, <2"')
    .addOption(channel())
    .option('--installed <bundle>', 'installed bundle: NAME, or NAME@VERSION if no catalog has it')
    .addOption(
      withChoices(new Option('--policy <policy>', 'upgrade constraint policy').default('catalog-provided'), [
        'catalog-provided',
        'self-certified',
      ]),
    )
    .option('--selector <labels>', 'use only catalogs with these labels: KEY=VALUE,…')
    .option('--fail-on-deprecated', 'exit with 3 if the bundle, its package or its channel is deprecated')
    .addOption(outputFormatOf('text', 'json', 'yaml'))
    .action((packageName: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./resolve.js')).bundleResolve(context, packageName, options),
      ),
    );

  bundle
    .command('successors')
    .description('show the bundles that can replace a bundle, and the upgrade path to the newest')
    .argument('<package>', 'name of the package')
    .argument('<bundle>', 'NAME, or NAME@VERSION if the catalog does not have it')
    .option('--catalog <catalog>', catalogDescription)
    .addOption(channel())
    .option('--path-to <version>', 'show the shortest upgrade path to this version')
    .addOption(outputFormatOf('text', 'json', 'yaml'))
    .action((packageName: string, name: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./successors.js')).bundleSuccessors(context, packageName, name, options),
      ),
    );
}
