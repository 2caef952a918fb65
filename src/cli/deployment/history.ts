import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { clusterFlags, namespaceFlags } from './flags.js';
import { checkInventoryName, requireInventory } from './inventory.js';
import { encodeGoJson } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { type Inventory, currentRevision } from '../../deployment/cluster/inventory.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';
import { openKubectl } from './approval.js';

/** `opmate bundle deployment history`: the revisions of a deployment that the cluster knows, oldest first. */
export const command = defineCommand({
  summary: 'show the revisions of a deployment',
  arguments: [argument('<name>', 'name of the deployment')],
  flags: {
    ...namespaceFlags,
    ...clusterFlags,
    output: outputFormat(['text', 'json'], { default: 'text' }),
  },
  examples: [
    ['Show the revisions of a deployment', 'opmate bundle deployment history demo -n demo'],
    ['Print them as data', 'opmate bundle deployment history demo -n demo -o json'],
  ],
  async run({ context, args: [nameText], options }) {
    const { output } = options;
    const place = checkInventoryName(nameText, options.namespace);
    await useSession(context, options, async (session) => {
      const inventory = await requireInventory(openKubectl(context, options, session), place);
      session.logger.close();
      const text = output === 'json' ? formatJson(place.name, inventory) : formatText(inventory);
      await writeAll(context.stdout, text, session.signal);
    });
  },
});

function formatJson(name: string, inventory: Inventory): string {
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

function formatText(inventory: Inventory): string {
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
