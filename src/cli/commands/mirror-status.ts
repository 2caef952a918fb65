import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

/** `opmate mirror status`: what of a lock is at a target. */
export function mirrorStatus(
  context: CommandContext,
  destination: string,
  options: GlobalOptions,
): Promise<number> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [context, destination, options] });
}
