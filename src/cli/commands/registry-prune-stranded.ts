import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryPruneStranded(context: CommandContext, options: GlobalOptions): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-prune-stranded: not there yet`, {
    cause: [context, options],
  });
}
