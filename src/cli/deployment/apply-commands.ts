import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { milliseconds, outputFormatOf, separated } from '../options.js';
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
    .option('--watch', 'render and apply again and again, until told to stop; needs --yes or --approve')
    .option('--interval <duration>', 'with --watch: time from one to the next (default: 5m)', milliseconds)
    .action((_options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./apply.js')).bundleDeploymentApply(context, options),
      ),
    );

  const history = deployment
    .command('history')
    .description('show what was applied of a deployment')
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
    .description('apply again what was applied of a deployment before')
    .argument('<name>', 'name of the deployment')
    .option('--to <revision>', 'revision to go back to (default: the one before)');
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
  command.option('-n, --namespace <namespace>', 'namespace that it is installed in');
}

function addClusterOptions(command: Command): void {
  command
    .option('--kubeconfig <file>', 'as for kubectl')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--kubectl <program>', 'the program kubectl (default: from PATH)');
}

function addApprovalOptions(command: Command): void {
  command
    .option('--yes', 'do not ask')
    .addOption(
      new Option('--approve <hash,…>', 'do not ask, and apply only renders with these hashes').argParser(
        separated,
      ),
    )
    .option('--force-conflicts', 'take over fields that others manage')
    .option('--force', 'delete definitions and namespaces too that nobody asks for any more');
}
