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
  const bundle = program.command('bundle').description('work with one bundle');
  addBundleAuthorCommands(bundle, context, runner);
  addBundleValidateCommand(bundle, context, runner);
  addBundleCarryCommands(bundle, context, runner);
  addBundleShowCommand(bundle, context, runner);
  addScopeOptions(
    addComposeOption(addContentOptions(bundle.command('render')))
      .description('write the manifests that installing a bundle applies')
      .argument('<source>', sourceDescription),
  )
    .addOption(
      withChoices(
        new Option('--cert-provider <provider>', 'who makes the certificates of webhooks').default('none'),
        ['none', 'cert-manager', 'service-ca'],
      ),
    )
    .option(
      '--config <file>',
      'watchNamespace and deploymentConfig, as in a ClusterExtension, or values of a chart; - for stdin',
    )
    .addOption(
      withChoices(
        new Option(
          '--format <format>',
          'what the source is: registry-v1, plain, helm, or NAME for a program opmate-format-NAME',
        ).default('registry-v1'),
        ['registry-v1', 'plain', 'helm'],
      ),
    )
    .option('--release-name <name>', 'name of the release of a chart (default: that of the chart)')
    .option('--available-apis <file>', 'kinds that the cluster has, as kubectl api-resources prints them')
    .addOption(
      new Option(
        '--optional-kinds [kind,…]',
        'with --available-apis: leave out objects of these kinds, or of any, that the cluster lacks',
      ).argParser(separated),
    )
    .addOption(outputFormatOf('yaml', 'json').default('yaml'))
    .option('--output-dir <directory>', 'write one file an object into this directory: absent or empty')
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./render.js')).bundleRender(context, reference, options),
      ),
    );

  addScopeOptions(
    addContentOptions(bundle.command('permissions'))
      .description('show what the accounts of an operator may do once it is installed')
      .argument('<source>', sourceDescription),
  )
    .option('--diff <source>', 'show what differs from this older bundle')
    .addOption(
      new Option(
        '--fail-on <risk,…>',
        'exit with 3 where such a permission is shown, e.g. cluster-admin,wildcard,secrets,escalate,host',
      ).argParser(separated),
    )
    .option('--can-i <file>', 'show what an installer who holds the roles in this file lacks; - for stdin')
    .option('--installer <name>', 'account that -o installer is for (default: PACKAGE-installer)')
    .addOption(outputFormatOf('table', 'json', 'yaml', 'rbac', 'installer').default('table'))
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./permissions.js')).bundlePermissions(context, reference, options),
      ),
    );

  addContentOptions(bundle.command('check-crd-upgrade'))
    .description('check whether custom resource definitions may take the place of older ones')
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
  const bundle = alpha.command('bundle').description('work with one bundle');
  addBundleAuthorCommands(bundle, context, runner);
  addBundleValidateCommand(bundle, context, runner);
  addBundleCarryCommands(bundle, context, runner);
}

/** Where an operator is installed, and what it watches. */
function addScopeOptions(command: Command): Command {
  return command
    .option('--install-namespace <namespace>', 'where the operator is installed')
    .addOption(
      new Option(
        '--watch-namespace <namespace>',
        'namespace that the operator watches, repeatable (default: all, if it can)',
      ).argParser(collect),
    );
}
