import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { approvalFlags, namespaceFlags } from './flags.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import {
  type Inventory,
  type Revision,
  currentRevision,
  loadRender,
} from '../../deployment/cluster/inventory.js';
import type { Applicable } from '../../deployment/cluster/apply.js';
import { hashOfObjects } from '../../deployment/render-deployments.js';
import { useSession } from '../session.js';
import { applyOne, openKubectl } from './approval.js';
import { checkInventoryName, requireInventory } from './inventory.js';

/** `opmate bundle deployment rollback`: a render that was applied before is applied again, as a new revision. */
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
  examples: [
    ['Go back to the previous revision', 'opmate bundle deployment rollback demo -n demo'],
    [
      'Go back to one revision without asking',
      'opmate bundle deployment rollback demo -n demo --to-revision 2 --yes',
    ],
  ],
  async run({ context, args: [nameText], options }) {
    const place = checkInventoryName(nameText, options.namespace);
    if (options.toRevision !== undefined && !/^[1-9]\d{0,8}$/.test(options.toRevision)) {
      throw new UsageError(`--to-revision ${options.toRevision}: not a revision`, {
        hint: 'opmate bundle deployment history lists them',
      });
    }
    return useSession(context, options, async (session) => {
      const kubectl = openKubectl(context, options, session);
      const target = getTarget(
        place.name,
        await requireInventory(kubectl, place),
        options.toRevision === undefined ? undefined : Number(options.toRevision),
      );
      const objects = await loadRender(kubectl, place, target.render);
      if ((await hashOfObjects(objects, session)) !== target.hash) {
        throw new OpmateError(
          'DIGEST',
          `${place.name}: stored objects differ from those of revision ${target.revision}`,
          {
            hint: 'the inventory was changed; apply the deployment from its document',
          },
        );
      }
      const deployment: Applicable = {
        name: place.name,
        installNamespace: place.namespace,
        ...(target.version !== undefined && { version: target.version }),
        objects,
        pins: target.pins,
        hash: target.hash,
      };
      return applyOne(context, kubectl, deployment, options, session, target.revision);
    });
  },
});

function getTarget(
  name: string,
  inventory: Inventory,
  wanted: number | undefined,
): Revision & Required<Pick<Revision, 'render'>> {
  const current = currentRevision(inventory);
  const target = inventory.revisions.findLast((item) =>
    wanted === undefined
      ? item !== current && item.render !== undefined && item.hash !== current?.hash
      : item.revision === wanted,
  );
  const hint = 'opmate bundle deployment history lists what is kept';
  if (target === undefined) {
    const what = wanted === undefined ? 'nothing to go back to' : `revision ${wanted} not found`;
    throw new OpmateError('NOT_FOUND', `${name}: ${what}`, { hint });
  }
  const { render } = target;
  if (render !== undefined) return { ...target, render };
  const why = target.result === 'failed' ? 'was not applied' : 'is kept no longer';
  throw new OpmateError('NOT_FOUND', `${name}: revision ${target.revision} ${why}`, { hint });
}
