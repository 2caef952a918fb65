import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

/** `opmate mirror plan`: what mirroring an image set would copy, to the byte. */
export function mirrorPlan(
  context: CommandContext,
  destination: string,
  options: GlobalOptions,
): Promise<number> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [context, destination, options] });
}
