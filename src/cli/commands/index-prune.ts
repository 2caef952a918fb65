import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function indexPrune(context: CommandContext, options: GlobalOptions): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `index-prune: not there yet`, { cause: [context, options] });
}
