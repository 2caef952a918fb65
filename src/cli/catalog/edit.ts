import { type AppliedEdits, applyEdits, requireValidInput } from '../../catalog/edit/apply-edits.js';
import type { BlobEdit } from '../../catalog/edit/blob-edits.js';
import { type EditableCatalog, readEditableCatalog } from '../../catalog/edit/editable-catalog.js';
import type { EditPlan } from '../../catalog/edit/find-named.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import type { CommandSession } from '../session.js';

/**
 * Reads a catalog directory, lets `plan` say what changes, and writes it; with `--dry-run`, prints it as a diff. A plan
 * of undefined ends with exit code 3, nothing written. Throws OpmateError, as for a catalog that is not valid.
 */
export async function editCatalog(
  context: CommandContext,
  session: CommandSession,
  directory: string,
  options: { dryRun?: boolean },
  plan: (
    catalog: EditableCatalog,
  ) => Promise<EditPlan<BlobEdit> | undefined> | EditPlan<BlobEdit> | undefined,
): Promise<number> {
  const { dryRun = false } = options;
  const catalog = await readEditableCatalog(directory, session);
  try {
    requireValidInput(catalog);
    const planned = await plan(catalog);
    if (planned === undefined) return exitCodes.findings;
    const { temporaryDirectory, signal } = session;
    const applied = await applyEdits(catalog, planned.edits, { dryRun, temporaryDirectory, signal });
    for (const change of planned.changes) session.logger.log('info', change);
    session.logger.log('info', `${directory}: ${summaryOf(applied, dryRun)}`);
    if (dryRun) await writeAll(context.stdout, printable(applied.diff), context.signal);
    return exitCodes.done;
  } finally {
    await catalog.catalog.close();
  }
}

function summaryOf({ files }: AppliedEdits, dryRun: boolean): string {
  if (files.length === 0) return 'nothing to change';
  const parts = (['change', 'create', 'remove'] as const).flatMap((kind) => {
    const amount = files.filter((file) => file.kind === kind).length;
    return amount === 0 ? [] : [`${count(amount, 'file')} ${verbs[kind]}`];
  });
  return `${dryRun ? 'would have ' : ''}${parts.join(', ')}`;
}

const verbs = { change: 'changed', create: 'created', remove: 'removed' } as const;
