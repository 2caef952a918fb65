import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { outputFormatOf, separated } from '../options.js';
import { milliseconds } from '../command/values.js';
import type { Runner } from '../runner.js';

/** Adds what works on a cluster to `bundle deployment`: `apply`, `history`, `rollback`. */
export function addBundleApplyCommands(
  deployment: Command,
  context: CommandContext,
  runner: Runner,
  addInput: (command: Command) => void,
): void {
  const apply = deployment
    .command('apply')
    .description('render deployments, and apply them to a cluster with kubectl');
  addInput(apply);
  addClusterOptions(apply);
  addApprovalOptions(apply);
  apply
    .option('--watch', 'keep rendering and applying until stopped; requires --yes or --approve')
    .option('--interval <duration>', 'with --watch: interval (default: 5m)', milliseconds)
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./apply.js')).bundleDeploymentApply(context, options),
      ),
    );

  const history = deployment
    .command('history')
    .description('show the revisions of a deployment')
    .argument('<name>', 'name of the deployment');
  addPlaceOptions(history);
  addClusterOptions(history);
  history
    .addOption(outputFormatOf('text', 'json').default('text'))
    .action((name: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./history.js')).bundleDeploymentHistory(context, name, options),
      ),
    );

  const rollback = deployment
    .command('rollback')
    .description('roll a deployment back to an earlier revision')
    .argument('<name>', 'name of the deployment')
    .option('--to <revision>', 'revision to roll back to (default: the previous one)');
  addPlaceOptions(rollback);
  addClusterOptions(rollback);
  addApprovalOptions(rollback);
  rollback.action((name: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./rollback.js')).bundleDeploymentRollback(context, name, options),
    ),
  );
}

function addPlaceOptions(command: Command): void {
  command.option('-n, --namespace <namespace>', 'namespace of the deployment');
}

function addClusterOptions(command: Command): void {
  command
    .option('--kubeconfig <file>', 'kubeconfig file')
    .option('--context <name>', 'kubeconfig context')
    .option('--kubectl <program>', 'kubectl program (default: from PATH)');
}

function addApprovalOptions(command: Command): void {
  command
    .option('--yes', 'apply without confirmation')
    .addOption(
      new Option(
        '--approve <hash,…>',
        'apply without confirmation, only renders with these hashes',
      ).argParser(separated),
    )
    .option('--force-conflicts', 'take over fields managed by others')
    .option('--force', 'also prune CRDs and namespaces');
}
