import type { Logger } from '../../core/log.js';
import type { DeleteReport } from '../../sqlite/remove/delete-bundle.js';
import { list } from '../command/flags.js';
import { summarizeItems } from '../ending.js';
import { formatNames, logRemoved } from './edit-commands.js';

/** `--pull-from` of commands that pull bundles again. */
export const pullFromFlag = list('prefix=other', 'pull bundles from another registry or repository', {
  group: 'Registry',
});

/** Logs deleted bundles of an index, and the channels that changed. */
export function logDeleted(logger: Logger, name: string, report: DeleteReport): void {
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
