import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { collect, outputFormatOf, reportFormatOption, separated, withChoices } from '../options.js';
import type { Runner } from '../runner.js';
import { addComposeOption, addContentOptions, sourceDescription } from '../deployment/content-options.js';
import { addBundleAuthorCommands } from './author-commands.js';
import { addBundleCarryCommands } from './carry-commands.js';
import { addBundleDeploymentCommands } from '../deployment/commands.js';
import { addBundleResolveCommands } from './resolve-commands.js';
import { addBundleShowCommand } from './show-command.js';
import { addBundleValidateCommand } from './validate-command.js';

/** Adds `opmate bundle …`: what one bundle is, and becomes on a cluster. */
export function addBundleCommands(program: Command, context: CommandContext, runner: Runner): void {
  const bundle = program.command('bundle').description('build, check, render and install bundles');
  addBundleAuthorCommands(bundle, context, runner);
  addBundleValidateCommand(bundle, context, runner);
  addBundleCarryCommands(bundle, context, runner);
  addBundleShowCommand(bundle, context, runner);
  addScopeOptions(
    addComposeOption(addContentOptions(bundle.command('render')))
      .description('print the manifests that installing a bundle applies')
      .argument('<source>', sourceDescription),
  )
    .addOption(
      withChoices(
        new Option('--cert-provider <provider>', 'certificate provider of webhooks').default('none'),
        ['none', 'cert-manager', 'service-ca'],
      ),
    )
    .option('--config <file>', 'configuration as in a ClusterExtension, or chart values; - for stdin')
    .addOption(
      withChoices(
        new Option(
          '--format <format>',
          'source format: registry-v1, plain, helm, or NAME of a program opmate-format-NAME',
        ).default('registry-v1'),
        ['registry-v1', 'plain', 'helm'],
      ),
    )
    .option('--release-name <name>', 'Helm release name (default: the chart name)')
    .option('--available-apis <file>', 'kinds available in the cluster, as printed by kubectl api-resources')
    .addOption(
      new Option(
        '--optional-kinds [kind,…]',
        'with --available-apis: omit objects of these kinds (default: any) if unavailable',
      ).argParser(separated),
    )
    .addOption(outputFormatOf('yaml', 'json').default('yaml'))
    .option('--output-dir <directory>', 'write one file per object to this new or empty directory')
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./render.js')).bundleRender(context, reference, options),
      ),
    );

  addScopeOptions(
    addContentOptions(bundle.command('permissions'))
      .description('show the permissions that an installed operator has')
      .argument('<source>', sourceDescription),
  )
    .option('--diff <source>', 'show the difference from this older bundle')
    .addOption(
      new Option(
        '--fail-on <risk,…>',
        'exit with 3 on these risks, e.g. cluster-admin,wildcard,secrets,escalate,host',
      ).argParser(separated),
    )
    .option(
      '--can-i <file>',
      'show permissions that an installer with the roles in this file lacks; - for stdin',
    )
    .option('--installer <name>', 'service account for -o installer (default: PACKAGE-installer)')
    .addOption(outputFormatOf('table', 'json', 'yaml', 'rbac', 'installer').default('table'))
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./permissions.js')).bundlePermissions(context, reference, options),
      ),
    );

  addContentOptions(bundle.command('check-crd-upgrade'))
    .description('check that CRDs can safely replace older ones')
    .argument('<old>', `file of definitions, or bundle: ${sourceDescription}`)
    .argument('<new>', 'the same')
    .addOption(reportFormatOption())
    .action((older: string, newer: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./check-crd-upgrade.js')).bundleCheckCrdUpgrade(context, older, newer, options),
      ),
    );
  addBundleDeploymentCommands(bundle, context, runner);
  addBundleResolveCommands(bundle, context, runner);
}

/** Adds `opmate alpha bundle …`: the commands that `opm` has there. */
export function addAlphaBundleCommands(alpha: Command, context: CommandContext, runner: Runner): void {
  const bundle = alpha.command('bundle').description('build, check, render and install bundles');
  addBundleAuthorCommands(bundle, context, runner);
  addBundleValidateCommand(bundle, context, runner);
  addBundleCarryCommands(bundle, context, runner);
}

/** Where an operator is installed, and what it watches. */
function addScopeOptions(command: Command): Command {
  return command
    .option('--install-namespace <namespace>', 'namespace to install the operator in')
    .addOption(
      new Option(
        '--watch-namespace <namespace>',
        'namespace to watch, repeatable (default: all, if supported)',
      ).argParser(collect),
    );
}
