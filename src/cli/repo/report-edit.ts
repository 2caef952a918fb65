import type { RepositoryEdit } from '../../api/repo/release-bundle.js';
import type { CommandContext } from '../context.js';
import { reportEnding, summarizeItems } from '../ending.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import type { CommandSession } from '../session.js';

/** Prints the diff of templates and `ci.yaml`, and logs the changed catalogs. */
export async function reportRepositoryEdit(
  context: CommandContext,
  session: CommandSession,
  { diff, catalogs }: RepositoryEdit,
  { dryRun }: { dryRun: boolean },
): Promise<void> {
  session.logger.close();
  await writeAll(context.stdout, printable(diff), context.signal);
  const changed = catalogs.filter(({ state }) => state !== 'unchanged');
  const lines = changed.map(({ directory, state }) => `${directory}: ${dryRun ? `to be ${state}` : state}`);
  reportEnding(session.logger, [
    ...summarizeItems(lines, 'catalog', session.logger),
    `${count(changed.length, 'catalog')} ${dryRun ? 'to be written' : 'written'}`,
  ]);
}
