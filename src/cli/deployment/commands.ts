import { type Command, Option } from 'commander';
import { addBundleApplyCommands } from './apply-commands.js';
import type { CommandContext } from '../context.js';
import { collect, outputFormatOf, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `deployment …` to a group: what deployment documents stand for, and bringing it to a cluster. */
export function addBundleDeploymentCommands(bundle: Command, context: CommandContext, runner: Runner): void {
  const deployment = bundle
    .command('deployment')
    .description('work with BundleDeployments: documents that say what is to be installed');

  const render = deployment.command('render').description('write the manifests that deployments stand for');
  addInput(render);
  render
    .addOption(outputFormatOf('yaml', 'json').default('yaml'))
    .option('--output-dir <directory>', 'write one file an object into this directory: absent or empty')
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./render.js')).bundleDeploymentRender(context, options),
      ),
    );

  const diff = deployment
    .command('diff')
    .description('show what of the manifests of deployments has changed; exit code 3 where anything has');
  addInput(diff);
  diff
    .option('--against <file|directory>', 'what was rendered before')
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
    .option('--install-namespace <namespace>', 'where operators are installed, whatever the documents say')
    .addOption(
      new Option(
        '--watch-namespace <namespace>',
        'namespace that operators watch, repeatable (default: as the documents say)',
      ).argParser(collect),
    )
    .addOption(
      withChoices(
        new Option('--cert-provider <provider>', 'who makes the certificates of webhooks').default('none'),
        ['none', 'cert-manager', 'service-ca'],
      ),
    )
    .option('--config <file>', 'configuration, for charts their values, where the documents have none')
    .option('--secrets <directory>', 'directory with manifests of the Secrets that documents name')
    .option('--config-maps <directory>', 'directory with manifests of the ConfigMaps that documents name')
    .option('--lock <file>', 'take what this file pins; write it where it is not there yet')
    .option('--update-lock', 'with --lock: look anew, and write what is found')
    .option('--require-digest', 'refuse sources that name no digest, commit or checksum')
    .option('--allow-local', 'allow documents to name layouts, archives and repositories on this machine')
    .option('--allow-insecure', 'allow documents to skip the verification of certificates');
}
