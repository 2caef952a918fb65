import { argument, defineCommand } from '../command/declaration.js';
import { grouped, parsed } from '../command/flags.js';
import { duration } from '../command/values.js';
import { waitForDeployment } from '../../api/deployment/deployment-status.js';
import { UsageError } from '../../core/errors.js';
import { asJson } from '../../document/json.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { readCluster } from './approval.js';
import { clusterFlags, dataOutput, namespaceFlags } from './flags.js';
import { unreadyText } from './plan-text.js';

/** Reads a state as `kubectl wait --for` does: `condition=Available`, `delete`, or their names here. */
function readState(text: string): 'available' | 'deleted' {
  const state = text.toLowerCase().replace(/^condition=/, '');
  if (state === 'available' || state === 'available=true') return 'available';
  if (state === 'deleted' || state === 'delete') return 'deleted';
  throw new UsageError('expected available or deleted');
}

/** `opmate deployment wait`; exit code 1 after the time-out. */
export const command = defineCommand({
  summary: 'wait until a deployment is available, or deleted',
  arguments: [argument('<name>', 'name of the deployment')],
  flags: {
    ...namespaceFlags,
    ...clusterFlags,
    ...grouped('Behavior', {
      for: parsed('state', 'state: available or deleted (default: available)', readState),
      timeout: parsed('duration', 'maximum time to wait (default: 5m)', duration('0s')),
    }),
    output: dataOutput,
  },
  examples: {
    'Wait until all objects are ready': 'opmate deployment wait demo -n demo',
    'Wait until all objects are gone': 'opmate deployment wait demo -n demo --for deleted --timeout 2m',
  },
  async runInSession({ context, args: [name], options, session }) {
    const { for: until = 'available', timeout, output } = options;
    const place = { name, namespace: options.namespace };
    const unready = await waitForDeployment(place, readCluster(options, session), {
      until,
      timeoutMs: timeout,
      onProgress: (objects) =>
        session.logger.log('info', `${place.name}: waiting`, { notReady: objects.length }),
    });
    const isDone = unready.length === 0;
    if (output !== 'text')
      await writeAll(
        context.stdout,
        encodeData(asJson({ ...place, state: until, isDone, unready }) as object, output),
        session.signal,
      );
    else if (isDone) await writeAll(context.stdout, printable(`${place.name}: ${until}\n`), session.signal);
    if (isDone) return exitCodes.done;
    await writeAll(context.stderr, unreadyText(place.name, unready), session.signal);
    return exitCodes.failed;
  },
});
