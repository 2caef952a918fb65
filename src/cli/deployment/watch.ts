import { defineCommand } from '../command/declaration.js';
import { exitCodes } from '../exit-codes.js';
import { readCluster } from './approval.js';
import { parsed } from '../command/flags.js';
import { duration } from '../command/values.js';
import { approvalFlags, deploymentFlags, packageArgument, planFlags } from './flags.js';

/** `opmate deployment watch`: `deployment apply --watch`. */
export const command = defineCommand({
  summary: 'keep rendering and applying deployments until stopped',
  arguments: [packageArgument],
  flags: {
    ...deploymentFlags,
    ...planFlags,
    ...approvalFlags,
    yes: { ...approvalFlags.yes, isRequired: true, requiredUnless: ['approve'] },
    interval: parsed('duration', 'interval (default: 5m)', duration('1s'), { group: 'Behavior' }),
  },
  commonFlags: ['file', 'catalog', 'yes', 'approve', 'interval', 'heal', 'takeOver', 'kubeconfig', 'context'],
  examples: {
    'Keep the cluster in sync with the documents': 'opmate deployment watch -f deployment.yaml --yes',
    'Also restore fields that others have changed':
      'opmate deployment watch -f deployment.yaml --yes --heal own --interval 1m',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const cluster = readCluster(options, session);
    const { watchFiles } = await import('./watch-files.js');
    await watchFiles(context, session, { cluster, packageName, options });
    return exitCodes.done;
  },
});
