/** Edits that remove from an index, each for a database file and for an index image: what they do, and what they log. */
import type { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { createManifestFetcher, parsePullFrom } from '../../source/bundles.js';
import { type DeleteReport, deleteBundle } from '../../sqlite/remove/delete-bundle.js';
import { deleteLatest } from '../../sqlite/remove/delete-latest.js';
import { type DeprecateReport, deprecateTruncate } from '../../sqlite/remove/deprecate.js';
import { type PruneReport, prunePackages } from '../../sqlite/remove/prune.js';
import { type RemoveReport, removePackages } from '../../sqlite/remove/remove.js';
import { type StrandedReport, pruneStranded } from '../../sqlite/remove/stranded.js';
import type { Database } from '../../sqlite/schema/database.js';
import { requireFlag } from '../command/require-flag.js';
import { summarizeItems } from '../ending.js';
import { count } from '../printable.js';
import type { CommandSession } from '../session.js';

/** An edit of an index. */
export interface IndexEdit<R> {
  change(database: Database, session: CommandSession): R | Promise<R>;
  /** Logs what was done. `name` is that of the database or index. */
  report(logger: Logger, name: string, result: R): void;
}

/** Removes packages. Throws UsageError where none is named, as the others do for what they need. */
export function planRemove({
  package: packages,
  permissive,
}: {
  package: readonly string[] | undefined;
  permissive: boolean;
}): IndexEdit<RemoveReport> {
  const names = requireFlag(packages, 'package');
  return {
    change: (database, { signal }) => removePackages(database, names, { permissive, signal }),
    report: reportRemoved,
  };
}

/** Removes all packages but those that are named. */
export function planPrune({
  package: packages,
}: {
  package: readonly string[] | undefined;
}): IndexEdit<PruneReport> {
  const names = requireFlag(packages, 'package');
  return {
    change: (database, { signal }) => prunePackages(database, names, { signal }),
    report: reportPruned,
  };
}

/** Removes the bundles that are in no channel. */
export function planPruneStranded(): IndexEdit<StrandedReport> {
  return { change: pruneStranded, report: reportStranded };
}

/** Flags of the edits after which bundles may have to be pulled. */
interface PullFlags {
  pullFrom: readonly string[] | undefined;
}

/** Removes one bundle. */
export function planDelete(bundle: string, flags: PullFlags): IndexEdit<DeleteReport> {
  const pullFrom = parsePullFrom(flags.pullFrom ?? []);
  return {
    change: (database, session) =>
      deleteBundle(database, bundle, { fetchManifests: createManifestFetcher(session, { pullFrom }) }),
    report: reportDeleted,
  };
}

/** Removes the newest version of a package. */
export function planDeleteLatest(
  packageName: string,
  { eachChannel, ...flags }: PullFlags & { eachChannel: boolean },
): IndexEdit<DeleteReport> {
  const pullFrom = parsePullFrom(flags.pullFrom ?? []);
  return {
    change: (database, session) =>
      deleteLatest(database, packageName, createManifestFetcher(session, { pullFrom }), { eachChannel }),
    report: reportDeleted,
  };
}

/** Deprecates bundles, and removes what is older. */
export function planDeprecate(
  images: readonly string[],
  { permissive, allowPackageRemoval }: { permissive: boolean; allowPackageRemoval: boolean },
): IndexEdit<DeprecateReport> {
  return {
    change: (database, { signal }) =>
      deprecateTruncate(database, images, { permissive, allowPackageRemoval, signal }),
    report: reportDeprecated,
  };
}

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

function reportRemoved(logger: Logger, name: string, report: RemoveReport): void {
  logFailures(
    logger,
    report.failures.map(({ error }) => error),
  );
  logRemoved(logger, name, report.packages, report.bundles);
}

function reportPruned(logger: Logger, name: string, report: PruneReport): void {
  for (const text of report.unknown)
    logger.log('warn', `${name}: no package found for packagename ${text}, which was to be kept`);
  logRemoved(logger, name, report.packages, report.bundles);
}

function reportStranded(logger: Logger, name: string, { bundles, nameless }: StrandedReport): void {
  if (bundles.length > 0 || nameless === 0) logRemoved(logger, name, [], bundles);
  if (nameless === 0) return;
  const rows = nameless === 1 ? '1 row of a bundle' : `${nameless} rows of bundles`;
  logger.log('info', `${name}: removed ${rows} without a name`);
}

function reportDeprecated(logger: Logger, name: string, report: DeprecateReport): void {
  logFailures(logger, report.failures);
  if (report.packages.length > 0 || report.bundles.length > 0)
    logRemoved(logger, name, report.packages, report.bundles);
  const { deprecated } = report;
  const text = deprecated.length === 0 ? 'nothing to deprecate' : `deprecated ${list(deprecated)}`;
  logger.log('info', `${name}: ${text}`);
}

function reportDeleted(logger: Logger, name: string, report: DeleteReport): void {
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
