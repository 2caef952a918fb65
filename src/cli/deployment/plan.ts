import { defineCommand } from '../command/declaration.js';
import { planDeployment } from '../../api/deployment/apply-deployment.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { printFindings } from '../bundle/findings.js';
import { areSound, readCluster, readPlanOptions, writePlan } from './approval.js';
import { dataOutput, deploymentFlags, planFlags, packageArgument } from './flags.js';
import { renderInput } from './input.js';
import { pausedText } from './plan-text.js';

/** `opmate deployment plan`; exit code 3 for findings and changes. */
export const command = defineCommand({
  summary: 'show what applying deployments would change; exit with 3 for changes',
  arguments: [packageArgument],
  flags: { ...deploymentFlags, ...planFlags, output: dataOutput },
  commonFlags: [
    'file',
    'catalog',
    'installNamespace',
    'heal',
    'takeOver',
    'optionalKinds',
    'kubeconfig',
    'context',
    'lock',
    'output',
  ],
  examples: {
    'Show the changes and their approval hash': 'opmate deployment plan -f deployment.yaml',
    'Show the changes of installing or upgrading a package':
      'opmate deployment plan demo --catalog ./catalog -n demo',
    'Print them as data': 'opmate deployment plan -f deployment.yaml -o json',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const { output } = options;
    const cluster = readCluster(options, session);
    const deployments = await renderInput(context, session, { options, packageName, cluster });
    if (!(await areSound(context, session, deployments))) return exitCodes.findings;
    let hasChanges = false;
    for (const deployment of deployments) {
      if (deployment.isPaused) {
        await writeAll(context.stderr, printable(`${pausedText(deployment)}\n`), session.signal);
        continue;
      }
      const planned = await planDeployment(deployment, cluster, readPlanOptions(options));
      const { findings, changes, isCurrent } = planned.plan;
      if (findings.length === 0 || output !== 'text') await writePlan(context, planned, output, session);
      await printFindings(context, findings);
      hasChanges ||= findings.length > 0 || changes.length > 0 || !isCurrent;
    }
    return hasChanges ? exitCodes.findings : exitCodes.done;
  },
});
