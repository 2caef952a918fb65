import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

/** `opmate mirror diff`: what differs between two locks or archives. */
export function mirrorDiff(
  context: CommandContext,
  from: string,
  to: string,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [context, from, to, options] });
}
