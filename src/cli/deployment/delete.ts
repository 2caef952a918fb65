import { argument, defineCommand } from '../command/declaration.js';
import { choice, flag, grouped, parsed } from '../command/flags.js';
import { duration } from '../command/values.js';
import { deleteDeployment } from '../../api/deployment/delete-deployment.js';
import { readCluster } from './approval.js';
import { printDeleted, readDeletionApproval } from './deletion.js';
import { approvalFlags, clusterFlags, dataOutput, namespaceFlags } from './flags.js';

/** `opmate deployment delete`; an interrupted deletion is continued by the next one. */
export const command = defineCommand({
  summary: 'delete a deployment from a cluster, and wait until its objects are gone',
  arguments: [argument('<name>', 'name of the deployment')],
  flags: {
    ...namespaceFlags,
    ...clusterFlags,
    ...approvalFlags,
    ...grouped('Behavior', {
      crds: flag('also delete CRDs, with all their custom resources'),
      cascade: choice('strategy', ['foreground', 'orphan'], 'delete the objects, or leave them to nobody', {
        default: 'foreground',
      }),
      timeout: parsed('duration', 'maximum time per phase for finalizers (default: 2m)', duration('1s')),
    }),
    output: dataOutput,
  },
  examples: {
    'Show what would be deleted, ask for confirmation, and delete it':
      'opmate deployment delete demo -n demo',
    'End the deployment, and leave its objects on the cluster':
      'opmate deployment delete demo -n demo --cascade orphan',
    'Delete CRDs and custom resources too': 'opmate deployment delete demo -n demo --crds --yes',
  },
  async runInSession({ context, args: [name], options, session }) {
    const { crds, cascade, timeout, output } = options;
    const place = { name, namespace: options.namespace };
    const deleted = await deleteDeployment(place, readCluster(options, session), {
      ...readDeletionApproval(context, options, session, output),
      isWithDefinitions: crds,
      isOrphaning: cascade === 'orphan',
      timeoutSeconds: timeout === undefined ? undefined : Math.ceil(timeout / 1000),
    });
    return printDeleted(context, place.name, deleted, session, output);
  },
});
