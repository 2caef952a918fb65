import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { approvalFlags, namespaceFlags } from './flags.js';
import { rollBackDeployment } from '../../api/deployment/deployment-history.js';
import { invalidValue } from '../../core/errors.js';
import { printApplied, readApproval, readCluster, readPlace } from './approval.js';

/** `opmate bundle deployment rollback`; applies an earlier render as a new revision. */
export const command = defineCommand({
  summary: 'roll a deployment back to an earlier revision',
  arguments: [argument('<name>', 'name of the deployment')],
  flags: {
    ...namespaceFlags,
    ...approvalFlags,
    toRevision: text('revision', 'revision to roll back to (default: the previous one)', {
      aliases: ['to'],
      group: 'Selection',
    }),
  },
  examples: {
    'Go back to the previous revision': 'opmate bundle deployment rollback demo -n demo',
    'Go back to a revision without confirmation':
      'opmate bundle deployment rollback demo -n demo --to-revision 2 --yes',
  },
  async runInSession({ context, args: [nameText], options, session }) {
    const place = readPlace(nameText, options.namespace);
    if (options.toRevision !== undefined && !/^[1-9]\d{0,8}$/.test(options.toRevision)) {
      throw invalidValue('--to-revision', options.toRevision, 'not a revision', {
        hint: 'run opmate bundle deployment history to list them',
      });
    }
    const applied = await rollBackDeployment(place, readCluster(options, session), {
      ...readApproval(context, options, session),
      toRevision: options.toRevision === undefined ? undefined : Number(options.toRevision),
    });
    return printApplied(context, place.name, applied, session);
  },
});
