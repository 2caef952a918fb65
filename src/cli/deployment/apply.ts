import { defineCommand } from '../command/declaration.js';
import { applyFlags } from './flags.js';
import { applyDeployment } from '../../api/deployment/apply-deployment.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { areSound, pausedText, printApplied, readApproval, readCluster } from './approval.js';
import { renderDeploymentFile } from './input.js';

/** `opmate bundle deployment apply`; on findings, nothing is changed and the exit code is 3. */
export const command = defineCommand({
  summary: 'render deployments, and apply them to a cluster with kubectl',
  flags: applyFlags,
  examples: {
    'Show the changes, ask for confirmation, and apply them':
      'opmate bundle deployment apply -f deployment.yaml',
    'Keep the cluster in sync with the documents':
      'opmate bundle deployment apply -f deployment.yaml --watch --yes',
  },
  async runInSession({ context, options, session }) {
    const cluster = readCluster(options, session);
    if (options.watch) {
      const { watchFiles } = await import('./watch.js');
      await watchFiles(context, cluster, options, session);
      return exitCodes.done;
    }
    const deployments = await renderDeploymentFile(context, session, options);
    if (!(await areSound(context, session, deployments))) return exitCodes.findings;
    const approval = readApproval(context, options, session);
    let code: number = exitCodes.done;
    for (const deployment of deployments) {
      const { name } = deployment;
      if (deployment.isPaused) {
        await writeAll(context.stdout, printable(`${pausedText(deployment)}\n`), session.signal);
      }
      const applied = await applyDeployment(deployment, cluster, approval);
      const made = await printApplied(context, name, applied, session);
      code = code === exitCodes.done ? made : code;
    }
    return code;
  },
});
