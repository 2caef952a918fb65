import { argument, defineCommand } from '../command/declaration.js';
import { readDeploymentStatus } from '../../api/deployment/deployment-status.js';
import type { DeploymentStatus } from '../../cluster/status.js';
import { describeId, describeUnready } from '../../cluster/objects.js';
import { exitCodes } from '../exit-codes.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { writePieces } from '../session.js';
import { formatTable } from '../table.js';
import { readCluster } from './approval.js';
import { toStatusObject } from './data.js';
import { clusterFlags, dataOutput, namespaceFlags } from './flags.js';
import { fieldLines } from './plan-text.js';

/** `opmate deployment status`; exit code 3 unless the deployment is installed, available and as applied. */
export const command = defineCommand({
  summary: 'show version, conditions, unready objects and drift; exit with 3 if unhealthy',
  arguments: [argument('<name>', 'name of the deployment')],
  flags: { ...namespaceFlags, ...clusterFlags, output: dataOutput },
  examples: {
    'Show the status of a deployment': 'opmate deployment status demo -n demo',
    'Print it as data': 'opmate deployment status demo -n demo -o yaml',
  },
  async runInSession({ context, args: [name], options, session }) {
    const { output } = options;
    const place = { name, namespace: options.namespace };
    const status = await readDeploymentStatus(place, readCluster(options, session));
    const text = output === 'text' ? statusText(status) : encodeData(toStatusObject(status), output);
    await writePieces(context, session, text);
    return status.isHealthy ? exitCodes.done : exitCodes.findings;
  },
});

function statusText({
  name,
  namespace,
  current,
  conditions,
  unready,
  drift,
  objects,
}: DeploymentStatus): string {
  const rows = conditions.map(({ type, status, reason, message }) => [type, status, reason, message]);
  const lines = [
    `${name} in namespace ${namespace}: ${objects} objects`,
    ...(current === undefined
      ? []
      : [
          `revision: ${current.revision} of ${current.time}${current.version === undefined ? '' : `, version ${current.version}`}`,
          ...current.pins.map(({ type, ref }) => `source: ${type} ${ref}`),
        ]),
  ];
  const details = [
    ...(unready.length === 0
      ? []
      : ['not ready:', ...unready.map((object) => `  ${describeUnready(object)}`)]),
    ...(drift.length === 0
      ? []
      : [
          'drift:',
          ...drift.flatMap(({ id, change, fields }) => [
            `  ${describeId(id)}${change === 'add' ? ': missing' : ''}`,
            ...fieldLines(fields),
          ]),
        ]),
  ];
  const table = formatTable(['CONDITION', 'STATUS', 'REASON', 'MESSAGE'], rows).replace(/ +$/gm, '');
  return printable(`${lines.join('\n')}\n${table}${details.map((line) => `${line}\n`).join('')}`);
}
