import { type Command, Option } from 'commander';
import { addBundleApplyCommands } from './apply-commands.js';
import type { CommandContext } from '../context.js';
import { collect, outputFormatOf, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `deployment …` to a group: what deployment documents stand for, and bringing it to a cluster. */
export function addBundleDeploymentCommands(bundle: Command, context: CommandContext, runner: Runner): void {
  const deployment = bundle.command('deployment').description('render, compare and apply BundleDeployments');

  const render = deployment.command('render').description('print the manifests of deployments');
  addInput(render);
  render
    .addOption(outputFormatOf('yaml', 'json').default('yaml'))
    .option('--output-dir <directory>', 'write one file per object to this new or empty directory')
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./render.js')).bundleDeploymentRender(context, options),
      ),
    );

  const diff = deployment
    .command('diff')
    .description('show changes in the manifests of deployments; exit with 3 if there are any');
  addInput(diff);
  diff
    .option('--against <file|directory>', 'earlier render to compare with')
    .addOption(outputFormatOf('diff', 'text', 'json').default('diff'))
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./diff.js')).bundleDeploymentDiff(context, options),
      ),
    );
  addBundleApplyCommands(deployment, context, runner, addInput);
}

/** The options for what deployments are rendered from. */
function addInput(command: Command): void {
  command
    .addOption(
      new Option(
        '-f, --file <file>',
        'file with BundleDeployments, or Bundles and BundleInstances, repeatable; - for stdin',
      ).argParser(collect),
    )
    .option('--install-namespace <namespace>', 'namespace to install operators in; overrides the documents')
    .addOption(
      new Option(
        '--watch-namespace <namespace>',
        'namespace to watch, repeatable (default: as in the documents)',
      ).argParser(collect),
    )
    .addOption(
      withChoices(
        new Option('--cert-provider <provider>', 'certificate provider of webhooks').default('none'),
        ['none', 'cert-manager', 'service-ca'],
      ),
    )
    .option('--config <file>', 'configuration or chart values for documents without any')
    .option('--secrets <directory>', 'directory with manifests of referenced Secrets')
    .option('--config-maps <directory>', 'directory with manifests of referenced ConfigMaps')
    .option('--lock <file>', 'lock file with pinned sources; created if missing')
    .option('--update-lock', 'with --lock: resolve sources again and update the lock file')
    .option('--require-digest', 'refuse sources without a digest, commit or checksum')
    .option('--allow-local', 'allow documents to use layouts, archives and repositories on this machine')
    .option('--allow-insecure', 'allow documents to skip certificate verification');
}
