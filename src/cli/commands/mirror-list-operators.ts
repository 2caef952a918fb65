import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

/** `opmate mirror list operators`: packages, channels or versions of a catalog as tables. */
export function mirrorListOperators(context: CommandContext, options: GlobalOptions): Promise<void> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [context, options] });
}
