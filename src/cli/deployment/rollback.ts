import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { approvalFlags, dataOutput, namespaceFlags, planFlags, waitFlags } from './flags.js';
import { rollBackDeployment } from '../../api/deployment/deployment-history.js';
import { invalidValue } from '../../core/errors.js';
import { printApplied, readApproval, readCluster, readPlanOptions, readWait } from './approval.js';

/** `opmate deployment rollback`; applies an earlier render as a new revision. */
export const command = defineCommand({
  summary: 'roll a deployment back to an earlier revision',
  arguments: [argument('<name>', 'name of the deployment')],
  flags: {
    ...namespaceFlags,
    ...planFlags,
    // Revisions are stored on the cluster, where others may change them: each is reviewed.
    approve: {
      ...approvalFlags.approve,
      summary: 'approve only plans with these hashes, without confirmation',
    },
    ...waitFlags,
    output: dataOutput,
    toRevision: text('revision', 'revision to roll back to (default: the previous one)', {
      aliases: ['to'],
      group: 'Selection',
    }),
  },
  commonFlags: [
    'namespace',
    'toRevision',
    'approve',
    'wait',
    'timeout',
    'heal',
    'kubeconfig',
    'context',
    'output',
  ],
  examples: {
    'Go back to the previous revision': 'opmate deployment rollback demo -n demo',
    'Go back to a revision, as reviewed in its plan':
      'opmate deployment rollback demo -n demo --to-revision 2 --approve sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
  },
  async runInSession({ context, args: [name], options, session }) {
    const place = { name, namespace: options.namespace };
    if (options.toRevision !== undefined && !/^[1-9]\d{0,8}$/.test(options.toRevision)) {
      throw invalidValue('--to-revision', options.toRevision, 'not a revision', {
        hint: 'run opmate deployment history to list them',
      });
    }
    const applied = await rollBackDeployment(place, readCluster(options, session), {
      ...readPlanOptions(options),
      ...readApproval(context, options, session, options.output),
      waitMs: readWait(options, context),
      toRevision: options.toRevision === undefined ? undefined : Number(options.toRevision),
    });
    return printApplied(context, place.name, applied, session, options.output);
  },
});
