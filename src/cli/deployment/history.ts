import { writePieces } from '../session.js';
import { argument, defineCommand } from '../command/declaration.js';
import { clusterFlags, dataOutput, namespaceFlags } from './flags.js';
import { type DeploymentHistory, readDeploymentHistory } from '../../api/deployment/deployment-history.js';
import { encodeData } from '../reports/encode-data.js';
import { printable } from '../printable.js';
import { formatTable } from '../table.js';
import { readCluster } from './approval.js';

/** `opmate deployment history`, oldest first. */
export const command = defineCommand({
  summary: 'show the revisions of a deployment',
  arguments: [argument('<name>', 'name of the deployment')],
  flags: {
    ...namespaceFlags,
    ...clusterFlags,
    output: dataOutput,
  },
  examples: {
    'Show the revisions of a deployment': 'opmate deployment history demo -n demo',
    'Print them as data': 'opmate deployment history demo -n demo -o json',
  },
  async runInSession({ context, args: [name], options, session }) {
    const { output } = options;
    const place = { name, namespace: options.namespace };
    const history = await readDeploymentHistory(place, readCluster(options, session));
    const text = output === 'text' ? formatText(history) : encodeData(toData(place.name, history), output);
    await writePieces(context, session, text);
  },
});

function toData(name: string, history: DeploymentHistory): object {
  return {
    name,
    current: history.current?.revision ?? null,
    objects: history.objects.length,
    ...(history.unfinished !== undefined && {
      unfinished: { time: history.unfinished.time, hash: history.unfinished.hash },
    }),
    revisions: history.revisions.map(({ render, ...revision }) => ({
      ...revision,
      isKept: render !== undefined,
    })),
  };
}

function formatText({ current, revisions, unfinished }: DeploymentHistory): string {
  const rows = revisions.map((revision) => [
    `${revision.revision}`,
    revision.time,
    revision.result + (revision.rollbackTo === undefined ? '' : ` (rollback to ${revision.rollbackTo})`),
    revision.version ?? '',
    revision.hash,
    revision.reason ?? '',
    [revision === current ? 'current' : '', revision.render === undefined ? '' : 'kept']
      .filter((word) => word !== '')
      .join(', '),
    revision.pins.map(({ ref }) => ref).join(' '),
  ]);
  const text = formatTable(
    ['REVISION', 'TIME', 'RESULT', 'VERSION', 'RENDER', 'REASON', 'STATE', 'SOURCES'],
    rows,
  );
  const more = unfinished === undefined ? '' : `a run that began at ${unfinished.time} did not end\n`;
  return text.replace(/ +$/gm, '') + printable(more);
}
