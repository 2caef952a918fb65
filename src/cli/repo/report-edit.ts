import type { RepositoryEdit } from '../../api/repo/release-bundle.js';
import type { CommandContext } from '../context.js';
import { reportEnding, summarizeItems } from '../ending.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import type { CommandSession } from '../session.js';

interface ReportOptions {
  dryRun: boolean;
  /** Says of a template or `ci.yaml` why it is unchanged. */
  unchanged: string;
  /** Command that usually follows a change. */
  next?: string | undefined;
}

/** Prints the diff of templates and `ci.yaml`, and logs the changed catalogs and what is up to date. */
export async function reportRepositoryEdit(
  context: CommandContext,
  session: CommandSession,
  { diff, unchanged: same, catalogs }: RepositoryEdit,
  { dryRun, unchanged, next }: ReportOptions,
): Promise<void> {
  session.logger.close();
  await writeAll(context.stdout, printable(diff), context.signal);
  const changed = catalogs.filter(({ state }) => state !== 'unchanged');
  const lines = changed.map(({ directory, state }) => `${directory}: ${dryRun ? `to be ${state}` : state}`);
  const sameLines = same.map((file) => `${file}: ${unchanged}`);
  const ending =
    changed.length === 0
      ? `${count(catalogs.length, 'catalog')} up to date`
      : `${count(changed.length, 'catalog')} ${dryRun ? 'to be written' : 'written'}`;
  const summary = [
    ...summarizeItems(sameLines, 'file', session.logger),
    ...summarizeItems(lines, 'catalog', session.logger),
    ending,
  ];
  reportEnding(session.logger, summary, dryRun || changed.length === 0 ? undefined : next);
}
