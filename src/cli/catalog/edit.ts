import type { CatalogEdit } from '../../api/edit-catalog.js';
import type { AppliedEdits } from '../../catalog/edit/apply-edits.js';
import type { CommandContext } from '../context.js';
import { reportEnding, summarizeItems } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import type { CommandSession } from '../session.js';

/** Logs the changes of a catalog directory in a few lines, all with `--verbose`; with `--dry-run`, prints them as a diff. */
export async function reportEdit(
  context: CommandContext,
  session: CommandSession,
  directory: string,
  { dryRun }: { dryRun: boolean },
  edit: CatalogEdit,
): Promise<number> {
  const { logger } = session;
  const changes = summarizeItems(edit.changes, 'change', logger);
  reportEnding(logger, [...changes, `${directory}: ${formatSummary(edit, dryRun)}`]);
  if (dryRun) await writeAll(context.stdout, printable(edit.diff), context.signal);
  return exitCodes.done;
}

function formatSummary({ files }: AppliedEdits, dryRun: boolean): string {
  if (files.length === 0) return 'nothing to change';
  const parts = (['change', 'create', 'remove'] as const).flatMap((kind) => {
    const amount = files.filter((file) => file.kind === kind).length;
    const counted = count(amount, 'file');
    return amount === 0 ? [] : [dryRun ? `${kind} ${counted}` : `${counted} ${kind.replace(/e?$/, 'ed')}`];
  });
  return `${dryRun ? 'would ' : ''}${parts.join(', ')}`;
}
