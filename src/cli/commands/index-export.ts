import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function indexExport(context: CommandContext, options: GlobalOptions): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `index-export: not there yet`, { cause: [context, options] });
}
