import { labelFault, subdomainFault } from '../../kube/names.js';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { type Inventory, currentRevision, readInventory } from '../../deployment/cluster/inventory.js';
import type { Kubectl } from '../../deployment/cluster/kubectl.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';
import { UsageError } from '../../core/errors.js';
import { type ClusterOptions, openKubectl, requireName } from './approval.js';

interface HistoryOptions extends ClusterOptions {
  namespace?: string;
  output?: string;
}

/** `opmate bundle deployment history`: the revisions of a deployment that the cluster knows, oldest first. */
export async function bundleDeploymentHistory(
  context: CommandContext,
  given: string,
  globals: GlobalOptions,
): Promise<void> {
  const options = globals as HistoryOptions;
  const { output = 'text' } = options;
  if (output !== 'text' && output !== 'json') {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json)`);
  }
  const place = placeOf(given, options.namespace);
  await useSession(context, options, async (session) => {
    const inventory = await requireInventory(openKubectl(context, options, session), place);
    session.logger.close();
    const text = output === 'json' ? jsonOf(place.name, inventory) : textOf(inventory);
    await writeAll(context.stdout, text, session.signal);
  });
}

/** Where the inventory of a deployment is. Throws UsageError. */
export function placeOf(name: string, namespace: string | undefined): { name: string; namespace: string } {
  return {
    name: requireName('the name of the deployment', name, subdomainFault),
    namespace: requireName('--namespace', namespace, labelFault),
  };
}

/** The inventory of a deployment. Throws OpmateError NOT_FOUND if missing. */
export async function requireInventory(
  kubectl: Kubectl,
  place: { name: string; namespace: string },
): Promise<Inventory> {
  const { inventory, resourceVersion } = await readInventory(kubectl, place);
  if (resourceVersion !== undefined) return inventory;
  throw new OpmateError(
    'NOT_FOUND',
    `${place.name}: no deployment of this name was applied in namespace ${quoteGo(place.namespace)}`,
    { hint: 'name the namespace that it is installed in with --namespace' },
  );
}

function jsonOf(name: string, inventory: Inventory): string {
  const value = {
    name,
    current: currentRevision(inventory)?.revision ?? null,
    objects: inventory.objects.length,
    ...(inventory.unfinished !== undefined && {
      unfinished: { time: inventory.unfinished.time, hash: inventory.unfinished.hash },
    }),
    revisions: inventory.revisions.map(({ render, ...revision }) => ({
      ...revision,
      isKept: render !== undefined,
    })),
  };
  return `${encodeGoJson(value as unknown as JsonObject, { indent: 2 })}\n`;
}

function textOf(inventory: Inventory): string {
  const current = currentRevision(inventory);
  const rows = inventory.revisions.map((revision) => [
    `${revision.revision}`,
    revision.time,
    revision.result + (revision.rollbackTo === undefined ? '' : ` (rollback to ${revision.rollbackTo})`),
    revision.version ?? '',
    revision.hash,
    [revision === current ? 'current' : '', revision.render === undefined ? '' : 'kept']
      .filter((word) => word !== '')
      .join(', '),
    revision.pins.map(({ ref }) => ref).join(' '),
  ]);
  const { unfinished } = inventory;
  const text = formatTable(['REVISION', 'TIME', 'RESULT', 'VERSION', 'RENDER', 'STATE', 'SOURCES'], rows);
  const more = unfinished === undefined ? '' : `a run that began at ${unfinished.time} did not end\n`;
  return text.replace(/ +$/gm, '') + printable(more);
}
