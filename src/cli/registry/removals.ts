/** What the commands that remove from an index have in common: on database files, and on index images. */
import type { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { DeleteReport } from '../../sqlite/remove/delete-bundle.js';
import type { DeprecateReport } from '../../sqlite/remove/deprecate.js';
import type { PruneReport } from '../../sqlite/remove/prune.js';
import type { RemoveReport } from '../../sqlite/remove/remove.js';
import type { StrandedReport } from '../../sqlite/remove/stranded.js';
import { summarizeItems } from '../ending.js';
import { count } from '../printable.js';

function list(names: readonly string[]): string {
  return names.slice(0, 10).join(', ') + (names.length > 10 ? ` and ${names.length - 10} more` : '');
}

function logRemoved(
  logger: Logger,
  name: string,
  packages: readonly string[],
  bundles: readonly string[],
): void {
  if (packages.length > 0) {
    const text = `removed ${count(packages.length, 'package')} with ${count(bundles.length, 'bundle')}: ${list(packages)}`;
    logger.log('info', `${name}: ${text}`);
  } else {
    const text =
      bundles.length === 0
        ? 'nothing to remove'
        : `removed ${count(bundles.length, 'bundle')}: ${list(bundles)}`;
    logger.log('info', `${name}: ${text}`);
  }
}

function logFailures(logger: Logger, failures: readonly OpmateError[]): void {
  for (const { message, hint } of failures) {
    logger.log('warn', `skipped because of --permissive: ${message}`, hint === undefined ? {} : { hint });
  }
}

/** Tells what `removePackages` did. `name` is that of the database or index. */
export function reportRemoved(logger: Logger, name: string, report: RemoveReport): void {
  logFailures(
    logger,
    report.failures.map(({ error }) => error),
  );
  logRemoved(logger, name, report.packages, report.bundles);
}

/** Tells what `prunePackages` did. */
export function reportPruned(logger: Logger, name: string, report: PruneReport): void {
  for (const text of report.unknown)
    logger.log('warn', `${name}: no package found for packagename ${text}, which was to be kept`);
  logRemoved(logger, name, report.packages, report.bundles);
}

/** Tells what `pruneStranded` did. */
export function reportStranded(logger: Logger, name: string, { bundles, nameless }: StrandedReport): void {
  if (bundles.length > 0 || nameless === 0) logRemoved(logger, name, [], bundles);
  if (nameless === 0) return;
  const rows = nameless === 1 ? '1 row of a bundle' : `${nameless} rows of bundles`;
  logger.log('info', `${name}: removed ${rows} without a name`);
}

/** Tells what `deprecateTruncate` did. */
export function reportDeprecated(logger: Logger, name: string, report: DeprecateReport): void {
  logFailures(logger, report.failures);
  if (report.packages.length > 0 || report.bundles.length > 0)
    logRemoved(logger, name, report.packages, report.bundles);
  const { deprecated } = report;
  const text = deprecated.length === 0 ? 'nothing to deprecate' : `deprecated ${list(deprecated)}`;
  logger.log('info', `${name}: ${text}`);
}

/** Tells what `deleteBundle` or `deleteLatest` did. */
export function reportDeleted(logger: Logger, name: string, report: DeleteReport): void {
  logRemoved(logger, name, [], report.bundles);
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
    logger.log('info', `${name}: pulled the manifests of ${list(report.restored)} again`);
}
