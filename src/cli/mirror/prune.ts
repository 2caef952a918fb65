import type { MirrorOptions } from '../../api/mirror/image-set-run.js';
import { listPrunable, pruneMirror } from '../../api/mirror/prune-mirror.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { logError } from '../../core/log.js';
import type { CommandContext } from '../context.js';
import { summarizeItems } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { askOnTerminal } from '../input.js';
import { count } from '../printable.js';
import type { CommandSession } from '../session.js';
import type { ImageSetOptions } from './flags.js';

interface PruneRequest {
  options: ImageSetOptions;
  target: string;
  /** Options of the run that is pruned. */
  mirror: MirrorOptions;
}

const unitsMs: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const agePattern = /^(?:after )?(\d{1,5})([hdw])$/;

/** Returns the age of locks that keep their images, in milliseconds; undefined without `--prune`. Throws UsageError. */
export function readPruneAge({
  options: { prune: age },
  target,
}: Pick<PruneRequest, 'options' | 'target'>): number | undefined {
  if (age === undefined) return undefined;
  if (target.startsWith('file://'))
    throw new UsageError('--prune: deletes images of a registry', { hint: 'use docker://REGISTRY[/PATH]' });
  if (age === true) return 0;
  const [, number, unit = ''] = agePattern.exec(age) ?? [];
  const unitMs = unitsMs[unit];
  if (number !== undefined && unitMs !== undefined) return Number(number) * unitMs;
  throw invalidValue('--prune', age, 'not an age', {
    hint: 'use a number of hours, days or weeks, such as 30d',
  });
}

/** Lists the images that no lock of that age selects, and deletes them once confirmed. Returns the exit code. */
export async function prune(
  context: CommandContext,
  { options, target, mirror }: PruneRequest,
  ageMs: number,
  session: CommandSession,
): Promise<number> {
  const { logger } = session;
  const since = new Date(context.now().getTime() - ageMs);
  const { workspace, lockFile, maxPerRegistry } = mirror;
  const pruning = { workspace, lockFile, since, maxPerRegistry };
  const prunable = await listPrunable(target, session, pruning);
  const amount = count(prunable.images.length, 'image');
  if (prunable.images.length === 0) {
    logger.log('info', 'nothing to prune');
    return exitCodes.done;
  }
  logger.log('info', `to prune: ${amount}, selected by no lock since ${since.toISOString()}:`);
  const names = prunable.images.map(({ name }) => name);
  for (const line of summarizeItems(names, 'image', logger)) logger.log('info', `  ${line}`);
  const approved = options.yes === true || (await askOnTerminal(context, `delete ${amount}?`));
  if (approved === undefined)
    throw new UsageError(`${target}: not pruned: no terminal to confirm`, {
      hint: 'review the images, then add --yes',
    });
  if (!approved) return exitCodes.done;
  const report = await pruneMirror(prunable, target, session, pruning);
  for (const line of report.kept) logger.log('info', line);
  for (const error of report.failed) logError(logger, error);
  if (report.stopped !== undefined) logError(logger, report.stopped);
  const missing = report.missing.length > 0 ? `, ${report.missing.length} not found` : '';
  logger.log('info', `${count(report.done.length, 'image')} pruned${missing}`);
  return report.failed.length > 0 || report.stopped !== undefined ? exitCodes.partly : exitCodes.done;
}
