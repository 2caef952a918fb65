import { type ScheduleMirrorOptions, scheduleMirror } from '../../api/cluster/schedule-mirror.js';
import { argument, defineCommand } from '../command/declaration.js';
import { grouped, parsed, repeated, required, text } from '../command/flags.js';
import { integer } from '../command/values.js';
import { exitCodes } from '../exit-codes.js';
import { shellWord } from '../printable.js';
import { lockFlags, mirrorFlags } from './flags.js';
import { readMirrorOptions } from './oc-mirror-flags.js';
import { writeTo } from './options.js';
import { checkRun, getPassedFlags, refuseDropped } from './schedule-flags.js';

const flags = {
  config: required(text('file', 'ImageSetConfiguration file', { short: 'c', group: 'Input' })),
  image: required(text('reference', 'image with opmate', { group: 'Input' })),
  ...grouped('Cluster', {
    schedule: text('cron', 'times of the runs (default: 0 3 * * *)'),
    namespace: text('name', 'namespace of the objects (default: that of kubectl)', { short: 'n' }),
    name: text('name', 'name of the objects (default: mirror)'),
    secret: text('name', 'Secret with the registry credentials (default: mirror-credentials)'),
    storage: text('quantity', 'size of the volume of the workspace (default: 10Gi)'),
  }),
  workspace: lockFlags.workspace,
  lock: lockFlags.lock,
  shards: parsed('n', 'also a Job in which N pods copy the lock first', integer(1), {
    group: 'Selection',
  }),
  runFlag: repeated('flag', 'pass this flag to opmate mirror, such as --prune=30d', { group: 'Behavior' }),
  to: text('file', 'write to this file (default: stdout)', { group: 'Output' }),
};

/** `opmate mirror schedule`. */
export const command = defineCommand({
  summary: 'generate a CronJob that repeats a mirror run',
  arguments: [argument('<destination>', 'docker://REGISTRY[/PATH]')],
  inherits: mirrorFlags,
  flags,
  examples: {
    'Run an image set every night, and prune the mirror':
      'opmate mirror schedule -c imageset.yaml --image registry.example.com/tools/opmate:v1 --run-flag=--prune=30d --run-flag=--yes docker://registry.example.com/mirror',
    'Write the manifests to a file':
      "opmate mirror schedule -c imageset.yaml --image registry.example.com/tools/opmate:v1 --schedule '30 1 * * 6' -n mirror --to schedule.yaml docker://registry.example.com/mirror",
  },
  readOptions({ context, args: [destination], options }) {
    const read = readMirrorOptions(options, [destination], context);
    refuseDropped(options, Object.keys(flags));
    return read;
  },
  async runInSession({ context, commands, args: [destination], options, session }) {
    const { config, image, schedule, namespace, name, secret, storage, shards, lock, workspace } = options;
    const runFlags = [...getPassedFlags(options), ...(options.runFlag ?? [])];
    const toArguments = (paths: PodPaths): string[] => {
      const { configuration, credentials, workspace: work } = paths;
      const common = [
        ...['mirror', '--config', configuration, '--workspace', `file://${work}`],
        ...['--authfile', credentials, destination],
      ];
      return paths.lock === undefined
        ? [...common, '--log-format', 'json', ...runFlags]
        : [...common, '--locked', '--lock', paths.lock, ...runFlags.filter(isOfCopy)];
    };
    const files = { configuration: 'image-set', credentials: 'credentials', workspace: '/work' };
    await checkRun(toArguments({ ...files, lock: undefined }), commands);
    if (shards !== undefined) await checkRun(toArguments({ ...files, lock: 'lock' }), commands);
    const manifests = await scheduleMirror(config, destination, session, {
      ...{ image, schedule, namespace, name, secret, storage, shards, lock, workspace },
      toArguments,
    });
    await writeTo(options.to, manifests, context, session.logger, (file) => [
      `wrote ${file}`,
      `kubectl apply -f ${shellWord(file)}`,
    ]);
    return exitCodes.done;
  },
});

type PodPaths = Parameters<ScheduleMirrorOptions['toArguments']>[0];

/** Reports whether a flag applies to the copies of a lock too. */
function isOfCopy(item: string): boolean {
  return !/^--(?:prune|yes|retry-failed)\b/.test(item);
}
