import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

/** `opmate mirror delete`: lists what of an image set to delete, or deletes what a list says. */
export function mirrorDelete(
  context: CommandContext,
  destination: string,
  options: GlobalOptions,
): Promise<number> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [context, destination, options] });
}
