import { defineCommand } from '../command/declaration.js';
import { type AppliedDeployment, applyDeployment } from '../../api/deployment/apply-deployment.js';
import { pruneDeployments } from '../../api/deployment/prune-deployments.js';
import type { Cluster } from '../../api/deployment/cluster.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import type { FlagValues } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import type { CommandSession } from '../session.js';
import { areSound, printApplied, readApproval, readCluster, readPlanOptions, readWait } from './approval.js';
import { printDeleted, readDeletionApproval } from './deletion.js';
import { applyFlags, packageArgument } from './flags.js';
import { renderInput } from './input.js';
import { pausedText } from './plan-text.js';

/** `opmate deployment apply`; on findings, nothing is changed and the exit code is 3. */
export const command = defineCommand({
  summary: 'render deployments, and apply them to a cluster with kubectl',
  arguments: [packageArgument],
  flags: applyFlags,
  commonFlags: [
    'file',
    'catalog',
    'installNamespace',
    'yes',
    'approve',
    'wait',
    'timeout',
    'heal',
    'takeOver',
    'prune',
    'kubeconfig',
    'output',
  ],
  examples: {
    'Show the changes, ask for confirmation, and apply them': 'opmate deployment apply -f deployment.yaml',
    'Install a package of a catalog': 'opmate deployment apply demo --catalog ./catalog -n demo',
    'Apply and wait until all objects are ready':
      'opmate deployment apply -f deployment.yaml --yes --timeout 5m',
    'Keep the cluster in sync with the documents': 'opmate deployment apply -f deployment.yaml --watch --yes',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const { prune } = options;
    const cluster = readCluster(options, session);
    if (options.watch) {
      const { watchFiles } = await import('./watch-files.js');
      await watchFiles(context, session, { cluster, packageName, options });
      return exitCodes.done;
    }
    const deployments = await renderInput(context, session, { options, packageName, cluster });
    if (!(await areSound(context, session, deployments))) return exitCodes.findings;
    let code: number = exitCodes.done;
    for (const deployment of deployments) {
      const made = await applyOne(context, session, { cluster, deployment, options });
      code = code === exitCodes.done ? made : code;
    }
    if (prune === undefined || code !== exitCodes.done) return code;
    return pruneSet(context, session, { cluster, set: prune, deployments, options });
  },
});

type ApplyValues = FlagValues<typeof applyFlags>;

async function applyOne(
  context: CommandContext,
  session: CommandSession,
  {
    cluster,
    deployment,
    options,
  }: { cluster: Cluster; deployment: RenderedDeployment; options: ApplyValues },
): Promise<number> {
  const { output, prune: set } = options;
  if (deployment.isPaused)
    await writeAll(context.stdout, printable(`${pausedText(deployment)}\n`), session.signal);
  const applied: AppliedDeployment = await applyDeployment(deployment, cluster, {
    ...readPlanOptions(options),
    ...readApproval(context, options, session, output),
    ...(set !== undefined && { set }),
    waitMs: readWait(options, context, deployment),
    onProgress: (unready) =>
      session.logger.log('info', `${deployment.name}: waiting`, { notReady: unready.length }),
  });
  return printApplied(context, deployment.name, applied, session, output);
}

/** Deletes the deployments of a set that the files no longer contain. Returns the exit code. */
async function pruneSet(
  context: CommandContext,
  session: CommandSession,
  run: { cluster: Cluster; set: string; deployments: readonly RenderedDeployment[]; options: ApplyValues },
): Promise<number> {
  const { cluster, set, deployments, options } = run;
  const kept = deployments.map(({ name, installNamespace }) => ({ name, namespace: installNamespace }));
  const approval = readDeletionApproval(context, options, session, options.output);
  const pruned = await pruneDeployments(set, kept, cluster, approval);
  let code: number = exitCodes.done;
  for (const { place, deleted } of pruned) {
    const made = await printDeleted(context, place.name, deleted, session, options.output);
    code = code === exitCodes.done ? made : code;
  }
  return code;
}
