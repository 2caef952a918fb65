import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function indexDeprecateTruncate(context: CommandContext, options: GlobalOptions): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `index-deprecate-truncate: not there yet`, {
    cause: [context, options],
  });
}
