import type { Logger } from '../../core/log.js';
import { UsageError } from '../../core/errors.js';
import type { ChangeReports } from '../../api/indexes/edit-index.js';
import { parsePullFrom } from '../../api/indexes/add-to-index.js';
import { argument } from '../command/declaration.js';
import { type FlagValues, flag, text } from '../command/flags.js';
import { summarizeItems } from '../ending.js';
import {
  type EditedDatabase,
  type IndexEdit,
  editCommands,
  formatNames,
  logRemoved,
} from './edit-commands.js';
import { pullFrom } from './add-bundles.js';
import { createRemoval, readRemovedPackages, removeArguments, removeFlags } from './rm.js';

const flags = {
  ...removeFlags,
  bundle: text('name', 'remove one bundle and rewire edges around it', {
    group: 'Selection',
    excludes: ['package'],
  }),
  pullFrom,
};

type DeleteOptions = FlagValues<typeof flags>;

/** `opmate registry delete` and `opmate index delete`. */
export const { registryCommand, command } = editCommands(
  {
    name: 'delete',
    flags,
    examples: {
      'Remove a package': '--package demo',
      'Remove one bundle': '--bundle demo.v1.1.0',
    },
    plan(options): IndexEdit<'remove'> | IndexEdit<'delete'> {
      const { bundle } = options;
      if (bundle === undefined) return createRemoval(options);
      return { change: { kind: 'delete', bundle, pullFrom: readRules(options) }, report: logDeleted };
    },
  },
  { summary: 'remove packages, or one bundle', arguments: removeArguments, read: readDeleted },
  { summary: 'remove packages, or one bundle, from an index image' },
);

/** `opmate registry delete-latest` and `opmate index delete-latest`. */
export const { registryCommand: registryDeleteLatest, command: deleteLatestCommand } = editCommands(
  {
    name: 'delete-latest',
    arguments: [argument('<package>', 'name of the package')],
    flags: {
      eachChannel: flag('remove every channel head instead of the newest version only', {
        group: 'Selection',
      }),
      pullFrom,
    },
    examples: {
      'Remove the newest version': 'demo',
    },
    plan: (options, [name]): IndexEdit<'delete-latest'> => ({
      change: {
        kind: 'delete-latest',
        package: name as string,
        eachChannel: options.eachChannel,
        pullFrom: readRules(options),
      },
      report: logDeleted,
    }),
  },
  { summary: 'remove the newest version of a package' },
  { summary: 'remove the newest version of a package from an index image' },
);

function readDeleted(
  words: readonly (string | undefined)[],
  options: DeleteOptions,
): EditedDatabase<DeleteOptions> {
  if (options.bundle === undefined) return readRemovedPackages(words, options);
  const [file, ...more] = words;
  if (more.some((word) => word !== undefined)) throw bundleWithPackages();
  return { file, args: [], options };
}

function bundleWithPackages(): UsageError {
  return new UsageError('--bundle removes one bundle, and no package', { hint: 'remove the packages' });
}

/** Reads the rules of `--pull-from`. Throws UsageError. */
function readRules({ pullFrom: rules = [] }: { pullFrom: string[] | undefined }) {
  return parsePullFrom(rules);
}

function logDeleted(logger: Logger, name: string, report: ChangeReports['delete']): void {
  logRemoved(logger, name, { bundles: report.bundles });
  const heads = report.heads.map(
    ({ packageName, channel, head }) =>
      `${name}: package ${packageName}, channel ${channel}: the head is now ${head}`,
  );
  for (const line of summarizeItems(heads, 'head', logger)) logger.log('info', line);
  for (const { packageName, channel } of report.emptied)
    logger.log(
      'warn',
      `${name}: package ${packageName}: removed channel ${channel}, which had no bundle left`,
    );
  for (const { packageName, channel } of report.defaults)
    logger.log('warn', `${name}: package ${packageName}: the default channel is now ${channel}`);
  if (report.restored.length > 0)
    logger.log('info', `${name}: pulled the manifests of ${formatNames(report.restored)} again`);
}
